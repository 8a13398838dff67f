#include "planner/spec/framework_style.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

FrameworkStyle parse(const std::string& keys) {
  return parse_framework_style("sailor_framework: 1\nname: some\n" + keys, "/d/some.yaml");
}

std::string style_error(const std::string& keys) {
  return test::error_of([&] { parse(keys); });
}

TEST(FrameworkStyle, EveryKeyHasADefault) {
  const FrameworkStyle style = parse("");
  EXPECT_EQ(style.name, "some");
  EXPECT_EQ(style.file, "/d/some.yaml");
  EXPECT_EQ(style.sends, FrameworkStyle::Sends::asynchronous);
  EXPECT_EQ(style.sync_bucket_bytes, 32 << 20);
  EXPECT_EQ(style.master_bytes, 4);
}

TEST(FrameworkStyle, ReadsWordsNumbersSizesAndFlags) {
  const FrameworkStyle style = parse(
      "sends: blocking_in_turn\n"
      "gradient_sync: overlapped\n"
      "attention: unfused\n"
      "sync_bucket: 50MB\n"
      "overlap: 0.5\n"
      "sequence_parallel: true\n"
      "buffered_messages: 4MiB\n"
      "backward_gathers: 2\n"
      "vocabulary_multiple: 128\n");
  EXPECT_EQ(style.sends, FrameworkStyle::Sends::blocking_in_turn);
  EXPECT_EQ(style.gradient_sync, FrameworkStyle::Sync::overlapped);
  EXPECT_EQ(style.attention, FrameworkStyle::Attention::unfused);
  EXPECT_EQ(style.sync_bucket_bytes, 50'000'000);
  EXPECT_EQ(style.overlap, 0.5);
  EXPECT_TRUE(style.sequence_parallel);
  EXPECT_EQ(style.vocabulary_multiple, 128);
  EXPECT_EQ(style.buffered_message_bytes, 4 << 20);
  EXPECT_EQ(style.forward_gathers, 0);
  EXPECT_EQ(style.backward_gathers, 2);
}

TEST(FrameworkStyle, BytesThatAreNotGivenFollowThePrecision) {
  FrameworkStyle style;
  EXPECT_EQ(style.weight_bytes(Precision::bf16), 2);
  EXPECT_EQ(style.gradient_bytes_at(Precision::bf16), 2);
  EXPECT_EQ(style.gradient_bytes_at(Precision::fp64), 8);
  EXPECT_EQ(style.sync_bytes_at(Precision::fp32), 4);
  EXPECT_EQ(style.master_bytes_at(Precision::bf16), 4);
  EXPECT_EQ(style.master_bytes_at(Precision::fp32), 0);
  style.gradient_bytes = 4;
  EXPECT_EQ(style.gradient_bytes_at(Precision::bf16), 4);
  EXPECT_EQ(style.sync_bytes_at(Precision::bf16), 4);
  style.sync_bytes = 2;
  EXPECT_EQ(style.sync_bytes_at(Precision::bf16), 2);
}

TEST(FrameworkStyle, BrokenFilesAreErrorsWithFileAndLine) {
  EXPECT_THAT(style_error("overlaps: 1\n"),
              StartsWith("/d/some.yaml:3: unknown key \"overlaps\", did you mean \"overlap\"?"));
  EXPECT_THAT(style_error("overlap: 1\nsends: loud\n"),
              AllOf(StartsWith("/d/some.yaml:4: sends: must be "), HasSubstr("blocking_in_turn")));
  EXPECT_THAT(style_error("attention: fuzed\n"), HasSubstr("did you mean \"fused\"?"));
  EXPECT_THAT(style_error("zero1: maybe\n"), StartsWith("/d/some.yaml:3: zero1: must be true or false"));
  EXPECT_THAT(style_error("overlap: -1\n"), StartsWith("/d/some.yaml:3: overlap: must be a number"));
  EXPECT_THAT(style_error("logit_bytes: many\n"),
              StartsWith("/d/some.yaml:3: logit_bytes: must be a finite number"));
  EXPECT_THAT(style_error("sync_bucket: 5 apples\n"),
              StartsWith("/d/some.yaml:3: sync_bucket: must be a size"));
  EXPECT_THAT(style_error("overlap: .nan\n"), StartsWith("/d/some.yaml:3: overlap: "));
  // What would divide by nothing, overflow or hide more than there is.
  EXPECT_THAT(style_error("vocabulary_multiple: 0\n"), StartsWith("/d/some.yaml:3: vocabulary_multiple: "));
  EXPECT_THAT(style_error("vocabulary_multiple: 1.5\n"), StartsWith("/d/some.yaml:3: vocabulary_multiple: "));
  EXPECT_THAT(style_error("norm_bytes: 1e18\n"), StartsWith("/d/some.yaml:3: norm_bytes: "));
  EXPECT_THAT(style_error("overlap: 1.5\n"), StartsWith("/d/some.yaml:3: overlap: "));
  EXPECT_THAT(test::error_of([] { parse_framework_style("sailor_framework: 2\nname: x\n", "/d/f.yaml"); }),
              StartsWith("/d/f.yaml:1: sailor_framework: version 2 is not supported"));
  EXPECT_THAT(test::error_of([] { parse_framework_style("sailor_framework: 1\n", "/d/f.yaml"); }),
              HasSubstr("missing key \"name\""));
  EXPECT_THAT(test::error_of([] { load_framework_style("/nowhere/f.yaml"); }),
              StartsWith("/nowhere/f.yaml: "));
}

TEST(FrameworkStyle, OneKeyIsSetAsInTheFile) {
  FrameworkStyle style;
  const Where where{"runs.jsonl", 7};
  style.set("sequence_parallel", "true", where);
  style.set("gradient_bytes", "4", where);
  style.set("attention", "unfused", where);
  style.set("sync_bucket", "1GiB", where);
  EXPECT_TRUE(style.sequence_parallel);
  EXPECT_EQ(style.gradient_bytes, 4);
  EXPECT_EQ(style.attention, FrameworkStyle::Attention::unfused);
  EXPECT_EQ(style.sync_bucket_bytes, int64_t{1} << 30);
  const auto error = [&](const char* key, const char* value) {
    return test::error_of([&] { style.set(key, value, where); });
  };
  EXPECT_THAT(error("zero2", "true"),
              StartsWith("runs.jsonl:7: options: unknown key \"zero2\", did you mean \"zero\"?"));
  EXPECT_THAT(error("zero", "true"), StartsWith("runs.jsonl:7: zero: must be none, optimizer, gradients"));
  style.set("zero1", "true", where);
  EXPECT_EQ(style.zero, Zero::optimizer);
  style.set("zero", "parameters", where);
  EXPECT_EQ(style.zero, Zero::parameters);
  EXPECT_THAT(error("zero1", "perhaps"), StartsWith("runs.jsonl:7: zero1: must be true or false"));
  EXPECT_THAT(error("logit_bytes", ""), StartsWith("runs.jsonl:7: logit_bytes: "));
}

TEST(FrameworkStyle, OurTrainersDescriptionIsTheShippedFile) {
  const FrameworkStyle& own = own_framework();
  const FrameworkStyle shipped = load_framework_style(SAILOR_SOURCE_DIR "/etc/frameworks/sailor.yaml");
  EXPECT_EQ(own.name, "sailor");
  EXPECT_EQ(own.sends, FrameworkStyle::Sends::asynchronous);
  EXPECT_EQ(own.sync_copies, shipped.sync_copies);
  EXPECT_EQ(own.sync_bucket_bytes, shipped.sync_bucket_bytes);
  EXPECT_EQ(own.keeps_received, shipped.keeps_received);
  EXPECT_EQ(own.message_buffers, shipped.message_buffers);
  EXPECT_EQ(own.attention, shipped.attention);
}

TEST(FrameworkStyle, EveryShippedDescriptionIsReadAndNamedAsItsFile) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SAILOR_SOURCE_DIR "/etc/frameworks")) {
    ASSERT_EQ(entry.path().extension(), ".yaml");
    EXPECT_EQ(load_framework_style(entry.path().string()).name, entry.path().stem().string());
    ++files;
  }
  EXPECT_GE(files, 8);
}

}  // namespace
}  // namespace sailor
