#include "trainer/data/token_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "planner/spec/error.h"

namespace sailor {
namespace {

class TokenFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ("tokens-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
  }
  static std::string tokens16(const std::vector<uint16_t>& tokens) {
    return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2};
  }
  JobSpec job(const std::string& train, const std::string& format) const {
    JobSpec spec;
    spec.file = (directory_ / "job.yaml").string();
    spec.model.sequence = 4;
    spec.model.vocabulary = 256;
    spec.training.global_batch = 3;
    spec.data.train = train;
    spec.data.format = format;
    return spec;
  }
  static std::string error_of(const JobSpec& spec) {
    try {
      TokenData::open(spec);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path directory_;
};

TEST_F(TokenFiles, BytesAreTokensAndAWindowOverlapsTheNextByItsTarget) {
  write("a.txt", "abcdefghi");
  const TokenData data = TokenData::open(job("a.txt", "bytes"));
  EXPECT_EQ(data.num_tokens(), 9);
  EXPECT_EQ(data.num_windows(), 2);
  std::set<std::vector<int64_t>> windows = {data.sequence(0, 0), data.sequence(0, 1)};
  EXPECT_THAT(windows, ::testing::UnorderedElementsAre(std::vector<int64_t>{'a', 'b', 'c', 'd', 'e'},
                                                       std::vector<int64_t>{'e', 'f', 'g', 'h', 'i'}));
}

TEST_F(TokenFiles, AGlobIsReadInTheOrderOfNamesAsOneRow) {
  write("t_1.bin", tokens16({1, 2, 3}));
  write("t_2.bin", tokens16({4, 5, 255}));
  JobSpec spec = job("t_*.bin", "nanogpt");
  spec.model.sequence = 5;
  const TokenData data = TokenData::open(spec);
  EXPECT_THAT(data.sequence(0, 0), ::testing::ElementsAre(1, 2, 3, 4, 5, 255));
}

TEST_F(TokenFiles, AnEpochVisitsEveryWindowOnceAndTheNextInAnotherOrder) {
  std::vector<uint16_t> tokens;
  for (uint16_t i = 0; i <= 4 * 30; ++i) tokens.push_back(i);
  const TokenData data = TokenData::from_tokens(tokens, 4, 3, 256, 77);
  std::vector<int64_t> first, second;
  for (int64_t step = 0; step < 20; ++step) {
    for (int64_t index = 0; index < 3; ++index)
      (step < 10 ? first : second).push_back(data.sequence(step, index)[0]);
  }
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 30u);
  EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 30u);
  const TokenData again = TokenData::from_tokens(tokens, 4, 3, 256, 77),
                  other = TokenData::from_tokens(tokens, 4, 3, 256, 78);
  int differing = 0;
  for (int64_t step = 0; step < 10; ++step) {
    EXPECT_EQ(data.sequence(step, 1), again.sequence(step, 1));
    differing += data.sequence(step, 1) != other.sequence(step, 1);
  }
  EXPECT_GT(differing, 5);
}

TEST_F(TokenFiles, WhatIsWrongIsSaidOnceWithTheFile) {
  write("odd.bin", "abc");
  write("short.bin", tokens16({1, 2}));
  EXPECT_THAT(error_of(job("missing*.bin", "nanogpt")), ::testing::HasSubstr("data.train: no file matches"));
  EXPECT_THAT(error_of(job("odd.bin", "nanogpt")), ::testing::HasSubstr("odd.bin: data.train: 3 bytes"));
  EXPECT_THAT(error_of(job("short.bin", "nanogpt")), ::testing::HasSubstr("fewer than one sequence"));
  EXPECT_THAT(error_of(job(".", "nanogpt")), ::testing::HasSubstr("not a file"));
  EXPECT_THAT(error_of(job("odd.bin", "parquet")), ::testing::HasSubstr("data.format: unknown format"));
  write("empty.bin", "");
  EXPECT_THAT(error_of(job("empty.bin", "auto")),
              ::testing::HasSubstr("0 tokens are fewer than one sequence"));
}

TEST_F(TokenFiles, ATokenOutsideTheVocabularyNamesFileAndPosition) {
  write("t.bin", tokens16({1, 2, 3, 999, 5}));
  const TokenData data = TokenData::open(job("t.bin", "nanogpt"));
  try {
    data.sequence(0, 0);
    FAIL() << "token 999 of 256";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(
                                  "t.bin, token 3: data.train: token 999 is outside model.vocabulary 256"));
  }
}

TEST_F(TokenFiles, SequencesForValidationLieEvenlyOverTheData) {
  std::vector<uint16_t> tokens;
  for (uint16_t i = 0; i <= 4 * 10; ++i) tokens.push_back(i);
  const TokenData data = TokenData::from_tokens(tokens, 4, 3, 256, 77);
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < 5; ++i) starts.push_back(data.spread_sequence(i, 5)[0]);
  EXPECT_THAT(starts, ::testing::ElementsAre(0, 8, 16, 24, 32));
  EXPECT_EQ(data.spread_sequence(2, 3)[0], 24);
  EXPECT_EQ(data.spread_sequence(9, 10), (std::vector<int64_t>{36, 37, 38, 39, 40}));
}

TEST_F(TokenFiles, ValidationFilesAreOpenedAsTheTrainingFilesAre) {
  write("train.bin", tokens16({1, 2, 3, 4, 5}));
  write("val.bin", tokens16({6, 7, 8, 9, 10}));
  JobSpec spec = job("train.bin", "auto");
  spec.data.validation = "val*.bin";
  EXPECT_THAT(TokenData::open_validation(spec).sequence(0, 0), ::testing::ElementsAre(6, 7, 8, 9, 10));
  spec.data.validation = "nothing.bin";
  try {
    TokenData::open_validation(spec);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("data.validation: no file matches"));
  }
}

TEST_F(TokenFiles, UnigramEntropyIsThatOfTheTokenFrequencies) {
  write("text.txt", std::string(64, 'a') + std::string(32, 'b') + std::string(32, 'c'));
  const TokenData data = TokenData::open(job("text.txt", "bytes"));
  EXPECT_NEAR(data.unigram_entropy(), 1.5 * std::log(2.0), 1e-12);
  // Every second token has the same frequencies here.
  EXPECT_NEAR(data.unigram_entropy(64), 1.5 * std::log(2.0), 1e-12);
}

}  // namespace
}  // namespace sailor
