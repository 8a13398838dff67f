#include "trainer/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

// The bytes of a file with this header and this number of data bytes.
std::string file_with(const std::string& header, size_t data) {
  std::string text(8, '\0');
  for (size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  return text + header + std::string(data, 'x');
}

class Safetensors : public ::testing::Test {
 protected:
  std::string error_of(const std::string& contents) {
    write_file_atomically(path_, contents);
    return test::error_of([this] { SafetensorsFile{path_}; });
  }

  const std::string directory_ = test::scratch_directory("safetensors");
  const std::string path_ = directory_ + "/f.safetensors";
};

TEST_F(Safetensors, WhatIsWrittenIsReadWhateverTheNames) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<uint16_t> b = {7, 8, 9};
  {
    SafetensorsWriter writer(
        path_, {{"b \"quoted\" \n", "BF16", {3}}, {"a", "F32", {2, 3}}, {"none", "F64", {0, 4}}},
        {{"format", "pt"}});
    writer.write("none", nullptr, 0);
    EXPECT_THROW(writer.write("b \"quoted\" \n", b.data(), 6), std::logic_error) << "narrow types come last";
    writer.write("a", a.data(), 24);
    writer.write("b \"quoted\" \n", b.data(), 6);
    EXPECT_FALSE(std::filesystem::exists(path_)) << "half a file under its name";
    writer.finish();
  }
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  const StoredTensor* read = file.find("a");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read->first_byte % 8, 0);
  std::vector<float> rows(3);
  file.read(*read, 12, 12, rows.data());
  EXPECT_EQ(rows, (std::vector<float>{4, 5, 6}));
  std::vector<uint16_t> halves(3);
  file.read(*file.find("b \"quoted\" \n"), 0, 6, halves.data());
  EXPECT_EQ(halves, b);
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_THROW(file.read(*read, 20, 8, rows.data()), std::logic_error);
}

TEST_F(Safetensors, AnUnfinishedFileLeavesNothingBehind) {
  write_file_atomically(path_, "old");
  {
    SafetensorsWriter writer(path_, {{"a", "F32", {2}}}, {});
    EXPECT_THROW(writer.finish(), std::logic_error);
    EXPECT_THROW(writer.write("a", nullptr, 4), std::logic_error);
  }
  EXPECT_EQ(read_text_file(path_), "old");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory_)) ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(Safetensors, BrokenFilesAreRefusedWithTheReason) {
  const auto entry = [](const std::string& name, const std::string& shape, int first, int end) {
    return "\"" + name + R"(": {"dtype": "F32", "shape": [)" + shape + R"(], "data_offsets": [)" +
           std::to_string(first) + ", " + std::to_string(end) + "]}";
  };
  EXPECT_EQ(error_of(file_with("{" + entry("a", "2", 0, 8) + "}", 8)), "no error");
  EXPECT_EQ(error_of(file_with("{}   ", 0)), "no error");
  EXPECT_THAT(error_of("short"), HasSubstr("fewer than any safetensors file"));
  EXPECT_THAT(error_of(std::string(8, '\xff')), HasSubstr("says that its header has"));
  EXPECT_THAT(error_of(file_with("[1]", 0)), HasSubstr("not a JSON map"));
  EXPECT_THAT(error_of(file_with("{\"a\": ", 0)), HasSubstr("f.safetensors"));
  EXPECT_THAT(error_of(file_with(std::string("{\"\0\": 1}", 8), 0)), HasSubstr("f.safetensors"));
  EXPECT_THAT(error_of(file_with("{" + entry("a", "2", 0, 8) + "}", 7)), HasSubstr("has 7 bytes of data"));
  EXPECT_THAT(error_of(file_with("{" + entry("a", "2", 0, 8) + "}", 9)), HasSubstr("has 9 bytes of data"));
  EXPECT_THAT(error_of(file_with("{" + entry("a", "3", 0, 8) + "}", 8)), HasSubstr("need 12"));
  EXPECT_THAT(error_of(file_with("{" + entry("a", "-2", 0, 8) + "}", 8)), HasSubstr("a.shape[0]"));
  EXPECT_THAT(error_of(file_with("{" + entry("a", "2", 8, 0) + "}", 8)), HasSubstr("data_offsets[1]"));
  EXPECT_THAT(error_of(file_with("{" + entry("a", "1073741824, 1073741824, 1073741824", 0, 8) + "}", 8)),
              HasSubstr("more than any file has"));
  EXPECT_THAT(error_of(file_with("{" + entry("a", "2", 0, 8) + "," + entry("b", "2", 4, 12) + "}", 12)),
              HasSubstr("overlap"));
  EXPECT_THAT(error_of(file_with("{" + entry("a", "2", 0, 8) + "," + entry("b", "2", 12, 20) + "}", 20)),
              HasSubstr("leave a hole"));
  EXPECT_THAT(error_of(file_with("{" + entry("a", "2", 0, 8) + "," + entry("a", "2", 8, 16) + "}", 16)),
              HasSubstr("a"));
  EXPECT_THAT(error_of(file_with(R"({"a": {"dtype": "F31", "shape": [], "data_offsets": [0, 4]}})", 4)),
              HasSubstr("the type \"F31\""));
  EXPECT_THAT(error_of(file_with(R"({"a": {"dtype": "F32", "shape": [1]}})", 4)),
              HasSubstr("missing key \"data_offsets\""));
  EXPECT_THAT(test::error_of([] { SafetensorsFile{"/nowhere/x"}; }), HasSubstr("cannot be opened"));
  EXPECT_THAT(test::error_of([] { SafetensorsFile{"/dev/null"}; }), HasSubstr("is not a regular file"));
}

// For any damage, the file is rejected or every tensor is inside it.
TEST_F(Safetensors, DamagedHeadersNeverReachOutsideTheFile) {
  {
    SafetensorsWriter writer(path_, {{"first", "F32", {3, 2}}, {"second", "F16", {5}}, {"third", "I64", {2}}},
                             {{"format", "pt"}});
    const std::string zeros(64, '\0');
    writer.write("third", zeros.data(), 16);
    writer.write("first", zeros.data(), 24);
    writer.write("second", zeros.data(), 10);
    writer.finish();
  }
  std::string good(std::filesystem::file_size(path_), '\0');
  FILE* file = fopen(path_.c_str(), "rb");
  ASSERT_EQ(fread(good.data(), 1, good.size(), file), good.size());
  fclose(file);
  std::mt19937 random(3);
  int accepted = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string bad = good;
    for (unsigned i = random() % 3 + 1; i > 0; --i) {
      const size_t at = random() % (bad.size() - 50);
      const std::string digits = "0123456789-[]{}\",:";
      if (random() % 3 == 0) {
        bad[at] = static_cast<char>(random());
      } else {
        bad[at] = digits[random() % digits.size()];
      }
    }
    if (random() % 8 == 0) bad.resize(random() % bad.size());
    FILE* out = fopen(path_.c_str(), "wb");
    fwrite(bad.data(), 1, bad.size(), out);
    fclose(out);
    try {
      const SafetensorsFile read(path_);
      ++accepted;
      std::string bytes;
      for (const StoredTensor& tensor : read.tensors()) {
        ASSERT_LE(tensor.first_byte + tensor.bytes, static_cast<int64_t>(bad.size()));
        bytes.resize(static_cast<size_t>(tensor.bytes));
        read.read(tensor, 0, tensor.bytes, bytes.data());
      }
    } catch (const InputError& error) {
      ASSERT_THAT(error.what(), HasSubstr("f.safetensors"));
    }
  }
  EXPECT_GT(accepted, 0) << "names may change";
  EXPECT_LT(accepted, 2000);
}

}  // namespace
}  // namespace sailor
