#include "trainer/data/token_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "planner/spec/error.h"
#include "trainer/data/blend.h"

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
    spec.data.train = {{train}};
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

// Sources whose tokens tell them apart, of 40, 6 and 25 windows.
class Blends : public TokenFiles {
 protected:
  void SetUp() override {
    TokenFiles::SetUp();
    const std::vector<std::pair<uint16_t, uint16_t>> sources = {{0, 160}, {161, 24}, {0, 100}};
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::vector<uint16_t> tokens;
      for (uint16_t k = 0; k <= sources[i].second; ++k)
        tokens.push_back(static_cast<uint16_t>(sources[i].first + 256 * i + k));
      write("s" + std::to_string(i) + ".bin", tokens16(tokens));
    }
  }
  JobSpec blend(const std::vector<double>& weights) const {
    JobSpec spec = job("", "auto");
    spec.model.vocabulary = 1024;
    spec.data.train.clear();
    for (std::size_t i = 0; i < weights.size(); ++i)
      spec.data.train.push_back({"s" + std::to_string(i) + ".bin", weights[i]});
    return spec;
  }
};

TEST_F(Blends, SourcesHaveTheirSharesAndEveryWindowOfOneComesOncePerEpoch) {
  const TokenData data = TokenData::open(blend({7, 1, 2}));
  EXPECT_EQ(data.describe(), "nanogpt: 3 files, 287 tokens, blended 70 %, 10 %, 20 %");
  std::vector<std::map<int64_t, int>> seen(3);
  std::vector<int64_t> samples(3);
  constexpr int64_t kSteps = Blend::kBlock / 3;
  for (int64_t step = 0; step < kSteps; ++step) {
    for (int64_t index = 0; index < 3; ++index) {
      const int64_t token = data.sequence(step, index)[0];
      ++samples[static_cast<std::size_t>(token / 256)];
      ++seen[static_cast<std::size_t>(token / 256)][token];
    }
  }
  // All but one sample of a block.
  EXPECT_NEAR(static_cast<double>(samples[0]), 0.7 * Blend::kBlock, 1.5);
  EXPECT_NEAR(static_cast<double>(samples[1]), 0.1 * Blend::kBlock, 1.5);
  EXPECT_NEAR(static_cast<double>(samples[2]), 0.2 * Blend::kBlock, 1.5);
  const std::vector<std::size_t> windows = {40, 6, 25};
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(seen[i].size(), windows[i]);
    for (const auto& [token, times] : seen[i])
      EXPECT_NEAR(times, static_cast<double>(samples[i]) / static_cast<double>(windows[i]), 1.5) << token;
  }
}

TEST_F(Blends, SequencesDependOnSeedStepAndIndexAlone) {
  JobSpec spec = blend({1, 1, 1});
  const TokenData data = TokenData::open(spec), again = TokenData::open(spec);
  spec.training.seed = 5;
  const TokenData other = TokenData::open(spec);
  spec.training.seed = 1;
  spec.training.global_batch = 6;
  const TokenData larger_batch = TokenData::open(spec);
  int differ = 0;
  for (int64_t sample = 200000; sample-- > 199700;) {
    const auto sequence = data.sequence(sample / 3, sample % 3);
    EXPECT_EQ(sequence, again.sequence(sample / 3, sample % 3));
    EXPECT_EQ(sequence, larger_batch.sequence(sample / 6, sample % 6));
    differ += sequence != other.sequence(sample / 3, sample % 3);
  }
  EXPECT_GT(differ, 200);
}

TEST_F(Blends, UnigramEntropyIsThatOfTheBlend) {
  write("s0.bin", tokens16(std::vector<uint16_t>(64, 1)));
  write("s1.bin", tokens16(std::vector<uint16_t>(8, 2)));
  const double expected = -(0.25 * std::log(0.25) + 0.75 * std::log(0.75));
  EXPECT_NEAR(TokenData::open(blend({1, 3})).unigram_entropy(), expected, 1e-12);
}

TEST_F(Blends, ErrorsNameTheSource) {
  JobSpec spec = blend({1, 1});
  spec.data.train[1].files = "none*.bin";
  EXPECT_THAT(error_of(spec), ::testing::HasSubstr("data.train[1].files: no file matches"));
  write("s1.bin", "abc");
  EXPECT_THAT(error_of(blend({1, 1})), ::testing::HasSubstr("s1.bin: data.train[1].files: 3 bytes"));
  EXPECT_THAT(error_of(blend({1, 1e-9})),
              ::testing::HasSubstr("data.train[1].weight: is less than one of 65536"));
  EXPECT_THAT(error_of(blend({})), ::testing::HasSubstr("job.yaml: data.train: missing"));
}

TEST(BlendTest, EverySourceIsReadWithoutGapsOverBlocks) {
  const Blend blend({0.3, 1, 2.2}, 9);
  std::vector<std::set<int64_t>> samples(3);
  for (int64_t sample = 0; sample < 3 * Blend::kBlock; ++sample) {
    const auto [source, own] = blend.at(sample);
    EXPECT_TRUE(samples[source].insert(own).second);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(static_cast<int64_t>(samples[i].size()), 3 * blend.per_block(i));
    EXPECT_EQ(*samples[i].rbegin(), 3 * blend.per_block(i) - 1);
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
