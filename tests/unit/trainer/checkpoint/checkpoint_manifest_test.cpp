#include "trainer/checkpoint/checkpoint_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "trainer/checkpoint/block_checksums.h"

namespace sailor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// One tensor of six elements in two files.
CheckpointManifest two_files() {
  CheckpointManifest manifest;
  manifest.step = manifest.optimizer_steps = 3;
  manifest.optimizer = "adamw";
  manifest.tensors = {{"0.a", "F32", {2, 3}}};
  const std::string checksum(kChecksumDigits, '0');
  manifest.files = {{"rank-0", 100, checksum, {{0, 0, 4, 84}}}, {"rank-1", 92, checksum, {{0, 4, 2, 84}}}};
  return manifest;
}

std::string refusal(const std::function<void(CheckpointManifest&)>& change) {
  CheckpointManifest manifest = two_files();
  change(manifest);
  try {
    parse_manifest(to_json(manifest), "manifest.json");
  } catch (const CheckpointDamaged& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CheckpointManifestFile, IsReadAsItWasWritten) {
  const std::string written = to_json(two_files());
  EXPECT_EQ(to_json(parse_manifest(written, "manifest.json")), written);
}

TEST(CheckpointManifestFile, EveryElementMustBeInOnePlace) {
  EXPECT_THAT(refusal([](auto& m) { m.files[1].pieces.clear(); }), HasSubstr("4 of the 6 elements"));
  EXPECT_THAT(refusal([](auto& m) { m.files[1].pieces[0].first = 3; }), HasSubstr("stored twice"));
  EXPECT_THAT(refusal([](auto& m) { m.files[0].pieces[0].byte = 88; }), HasSubstr("outside of rank-0"));
}

TEST(CheckpointManifestFile, SizesThatNoFileHasAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{kHuge, 6}, {kHuge, 4}, {-2, -3}})
    EXPECT_THAT(refusal([&](auto& m) { m.tensors[0].shape = shape; }), HasSubstr("an impossible shape"));
  for (const int64_t bytes : {kHuge, int64_t{-1}})
    EXPECT_THAT(refusal([&](auto& m) { m.files[0].bytes = bytes; }), HasSubstr("an impossible size"));
}

TEST(CheckpointManifestFile, AnErrorIsOneLineWhateverTheFileHas) {
  const std::string name = "a\nb" + std::string(100'000, 'x');
  EXPECT_THAT(
      refusal([&](auto& m) {
        m.tensors[0].name = name;
        m.tensors[0].shape = {-1};
      }),
      AllOf(HasSubstr("manifest.json: a bxx"), Not(HasSubstr("\n")), testing::SizeIs(testing::Lt(4096u))));
}

}  // namespace
}  // namespace sailor
