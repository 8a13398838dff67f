#include "trainer/data/token_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "planner/spec/error.h"
#include "tests/unit/trainer/data/megatron_index.h"
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
  for (int64_t i = 0; i < 5; ++i) starts.push_back(data.tokens(data.spread_place(i, 5))[0]);
  EXPECT_THAT(starts, ::testing::ElementsAre(0, 8, 16, 24, 32));
  EXPECT_EQ(data.tokens(data.spread_place(2, 3))[0], 24);
  EXPECT_EQ(data.tokens(data.spread_place(9, 10)), (std::vector<int64_t>{36, 37, 38, 39, 40}));
}

using Ranges = std::vector<TokenRange>;

TokenData documents_in_memory(std::size_t tokens, const std::vector<int64_t>& starts,
                              const Ranges& answers = {}) {
  JobSpec job;
  job.model.sequence = 4;
  job.model.vocabulary = 256;
  job.training.global_batch = 3;
  job.data.document_mask = true;
  if (!answers.empty()) job.training.task = Task::sft;
  TokensInMemory memory{{}, starts, answers};
  for (std::size_t i = 0; i < tokens; ++i) memory.tokens.push_back(static_cast<uint16_t>(i + 1));
  return TokenData::in_memory(memory, job);
}

TEST_F(TokenFiles, ALayoutHasTheDocumentsOfAWindowAndTheTargetsInThem) {
  const TokenData data = documents_in_memory(17, {0, 2, 3, 8, 13, 14});
  EXPECT_FALSE(data.whole_sequences());
  // Four sequences are an epoch; 1024 epochs are counted.
  EXPECT_EQ(data.document_lengths(), (std::map<int64_t, int64_t>{{1, 4096}, {2, 2048}, {4, 2048}}));
  EXPECT_EQ(data.describe(), "0 files, 17 tokens, in documents of 2 tokens");
  const auto layout = [&](int64_t window) { return data.layout({0, window}); };
  // Tokens 0 to 4; documents begin at 2 and 3.
  EXPECT_THAT(layout(0).documents, ::testing::ElementsAre(2, 1, 1));
  EXPECT_EQ(layout(0).counted, (Ranges{{0, 1}, {3, 4}}));
  EXPECT_EQ(layout(0).counted_targets(), 2);
  // The last target, token 8, begins a document.
  EXPECT_THAT(layout(1).documents, ::testing::ElementsAre(4));
  EXPECT_EQ(layout(1).counted, (Ranges{{0, 3}}));
  // One that begins with the window is not divided.
  EXPECT_THAT(layout(2).documents, ::testing::ElementsAre(4));
  EXPECT_EQ(layout(2).counted, (Ranges{{0, 4}}));
  EXPECT_THAT(layout(3).documents, ::testing::ElementsAre(1, 1, 2));
  EXPECT_EQ(layout(3).counted, (Ranges{{2, 4}}));
}

TEST_F(TokenFiles, WithoutTheMaskASequenceIsOneDocument) {
  const TokenData data = TokenData::from_tokens(std::vector<uint16_t>(17, 1), 4, 3, 256, 1);
  EXPECT_TRUE(data.whole_sequences());
  EXPECT_THAT(data.layout({0, 1}).documents, ::testing::ElementsAre(4));
  EXPECT_EQ(data.layout({0, 1}).counted, (Ranges{{0, 4}}));
  EXPECT_EQ(data.counted_targets(0), 12);
  EXPECT_EQ(data.document_lengths(), (std::map<int64_t, int64_t>{{4, 1}}));
}

TEST_F(TokenFiles, TargetsThatCountAreThoseOfTheGlobalBatch) {
  // Windows of 4 - 1, 4 - 2 and 4 - 0 targets, in every order the same sum.
  const TokenData data = documents_in_memory(13, {0, 1, 5, 6});
  std::multiset<int64_t> counts;
  for (int64_t index = 0; index < 3; ++index)
    counts.insert(data.layout(data.place(0, index)).counted_targets());
  EXPECT_THAT(counts, ::testing::UnorderedElementsAre(3, 2, 4));
  EXPECT_EQ(data.counted_targets(0), 9);
  EXPECT_EQ(data.counted_targets(5), 9);
  std::vector<int64_t> every_token;
  for (int64_t i = 0; i < 13; ++i) every_token.push_back(i);
  const TokenData none = documents_in_memory(13, every_token);
  EXPECT_EQ(none.layout({0, 0}).counted_targets(), 0);
  EXPECT_EQ(none.counted_targets(0), 1) << "a loss of 0, not one that is not finite";
}

TEST_F(TokenFiles, FineTuningHasWholeDocumentsAndCountsAnswers) {
  // Documents of 3, 2, 4 and 7 tokens in sequences of 4 + 1, all but the first token of each answers, or
  // fewer.
  const TokenData data = documents_in_memory(16, {0, 3, 5, 9}, {{2, 3}, {4, 5}, {5, 9}, {11, 12}, {13, 16}});
  EXPECT_EQ(data.num_windows(), 3);
  EXPECT_THAT(data.tokens({0, 0}), ::testing::ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(data.layout({0, 0}).documents, ::testing::ElementsAre(3, 1));
  EXPECT_EQ(data.layout({0, 0}).counted, (Ranges{{1, 2}, {3, 4}}));
  EXPECT_THAT(data.tokens({0, 1}), ::testing::ElementsAre(6, 7, 8, 9, 0)) << "filled";
  EXPECT_THAT(data.layout({0, 1}).documents, ::testing::ElementsAre(4));
  EXPECT_EQ(data.layout({0, 1}).counted, (Ranges{{0, 3}})) << "a document's first token is no target";
  EXPECT_THAT(data.tokens({0, 2}), ::testing::ElementsAre(10, 11, 12, 13, 14)) << "cut";
  EXPECT_THAT(data.layout({0, 2}).documents, ::testing::ElementsAre(4));
  EXPECT_EQ(data.layout({0, 2}).counted, (Ranges{{1, 2}, {3, 4}}));
  EXPECT_EQ(data.counted_targets(0), 7);
  EXPECT_EQ(data.describe(), "0 files, 16 tokens, in documents of 3 tokens, 58 % answers");
}

TEST_F(TokenFiles, FineTuningFillsWhatADocumentLeaves) {
  const TokenData data = documents_in_memory(5, {0, 2}, {{1, 2}, {3, 5}});
  ASSERT_EQ(data.num_windows(), 1) << "of 5 tokens, in 4 + 1";
  const TokenData shorter = documents_in_memory(2, {0}, {{1, 2}});
  EXPECT_THAT(shorter.tokens({0, 0}), ::testing::ElementsAre(1, 2, 0, 0, 0));
  EXPECT_THAT(shorter.layout({0, 0}).documents, ::testing::ElementsAre(2, 2));
  EXPECT_EQ(shorter.layout({0, 0}).counted, (Ranges{{0, 1}}));
}

class Documents : public TokenFiles {
 protected:
  // All tokens of a document are its number.
  void write_documents(const std::string& stem, uint16_t first, const std::vector<int32_t>& lengths) {
    std::vector<uint16_t> tokens;
    std::vector<int64_t> documents = {0};
    for (const int32_t length : lengths) {
      tokens.insert(tokens.end(), static_cast<std::size_t>(length), first++);
      documents.push_back(static_cast<int64_t>(documents.size()));
    }
    write(stem + ".bin", raw(tokens));
    write(stem + ".idx", megatron_index(8, 2, lengths, documents));
  }
  // Do the parts of a sequence, and the targets that count, follow the tokens' documents?
  static void expect_consistent(const TokenData& data, const TokenData::Place& place) {
    const std::vector<int64_t> tokens = data.tokens(place);
    std::vector<int64_t> documents;
    Ranges counted;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      if (i == 0 || tokens[i] != tokens[i - 1]) documents.push_back(0);
      ++documents.back();
      if (tokens[i] != tokens[i + 1]) continue;
      const auto target = static_cast<int64_t>(i);
      if (!counted.empty() && counted.back().second == target) {
        ++counted.back().second;
      } else {
        counted.emplace_back(target, target + 1);
      }
    }
    EXPECT_EQ(data.layout(place).documents, documents) << ::testing::PrintToString(tokens);
    EXPECT_EQ(data.layout(place).counted, counted) << ::testing::PrintToString(tokens);
  }
};

TEST_F(Documents, BoundariesAreThoseOfTheFilesInABlendAndAfterAResume) {
  write_documents("a1", 0, {5, 1, 1, 9, 2});
  write_documents("a2", 10, {3, 7, 20});
  write_documents("b", 20, {6, 2, 2, 2, 11, 1});
  JobSpec spec = job("", "auto");
  spec.data.train = {{"a*.bin", 3}, {"b.bin", 1}};
  spec.data.document_mask = true;
  const TokenData data = TokenData::open(spec), resumed = TokenData::open(spec);
  spec.training.global_batch = 6;
  const TokenData larger_batch = TokenData::open(spec);
  std::set<std::pair<std::size_t, int64_t>> seen;
  for (int64_t sample = 60000; sample < 60200; ++sample) {
    const TokenData::Place place = data.place(sample / 3, sample % 3);
    seen.insert({place.source, place.window});
    expect_consistent(data, place);
    EXPECT_EQ(resumed.layout(resumed.place(sample / 3, sample % 3)).documents, data.layout(place).documents);
    EXPECT_EQ(larger_batch.layout(larger_batch.place(sample / 6, sample % 6)).documents,
              data.layout(place).documents);
  }
  EXPECT_THAT(data.describe(),
              ::testing::StartsWith("megatron: 3 files, 72 tokens, blended 75 %, 25 %, in documents of "));
  EXPECT_EQ(seen.size(), 11u + 5u) << "all windows of both sources";
}

TEST_F(Documents, ValidationHasTheMaskToo) {
  write_documents("train", 0, {5, 3});
  write_documents("held_out", 0, {2, 7, 1, 8});
  JobSpec spec = job("train.bin", "auto");
  spec.data.document_mask = true;
  const TokenData data = TokenData::open_validation(spec, {"", "held_out.bin"});
  for (int64_t i = 0; i < 4; ++i) expect_consistent(data, data.spread_place(i, 4));
}

TEST_F(Documents, AnswersAreThoseOfTheFiles) {
  JobSpec spec = job("a*.bin", "auto");
  spec.training.task = Task::sft;
  write_documents("a1", 0, {3, 2});
  EXPECT_THAT(error_of(spec),
              ::testing::HasSubstr("a1.idx: data.train: marks no answers, which training.task: sft "
                                   "needs; write the file with `sailor tokenize --sft`"));
  // Two documents, each a prompt and an answer.
  write("a1.idx", megatron_index(8, 2, {1, 2, 1, 1}, {0, 2, 4}) + std::string("\0\1\0\1", 4));
  write("a2.bin", tokens16({7, 8, 9, 9}));
  write("a2.idx", megatron_index(8, 2, {3, 1}, {0, 2}) + std::string("\0\1", 2));
  const TokenData data = TokenData::open(spec);
  EXPECT_EQ(data.num_windows(), 2);
  EXPECT_EQ(data.layout({0, 0}).counted, (Ranges{{0, 2}, {3, 4}}));
  EXPECT_EQ(data.layout({0, 1}).counted, (Ranges{{2, 3}}));
  EXPECT_THAT(data.tokens({0, 1}), ::testing::ElementsAre(7, 8, 9, 9, 0));
}

TEST_F(Documents, AFileThatMarksNoneIsNamed) {
  write_documents("a1", 0, {5, 3});
  write("a2.bin", tokens16({1, 2, 3, 4, 5}));
  JobSpec spec = job("a*.bin", "auto");
  EXPECT_EQ(error_of(spec), "no error");
  spec.data.document_mask = true;
  EXPECT_THAT(error_of(spec),
              ::testing::HasSubstr("a2.bin: data.train: data.document_mask needs an .idx that marks"));
}

TEST_F(TokenFiles, ValidationFilesAreOpenedAsTheTrainingFilesAre) {
  write("train.bin", tokens16({1, 2, 3, 4, 5}));
  write("val.bin", tokens16({6, 7, 8, 9, 10}));
  JobSpec spec = job("train.bin", "auto");
  EXPECT_THAT(TokenData::open_validation(spec, {"", "val*.bin"}).sequence(0, 0),
              ::testing::ElementsAre(6, 7, 8, 9, 10));
  for (const char* name : {"", "web"}) {
    try {
      TokenData::open_validation(spec, {name, "nothing.bin"});
      FAIL();
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(*name ? "data.validation.web: no file matches"
                                                           : "data.validation: no file matches"));
    }
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

TEST_F(Blends, TheOrderOfASourceDependsOnSeedAndEpoch) {
  constexpr int64_t kWindows = 40;
  JobSpec spec = blend({1});
  const auto order_in = [&](int64_t epoch) {
    const TokenData data = TokenData::open(spec);
    std::vector<int64_t> first_tokens;
    for (int64_t sample = epoch * kWindows; sample < (epoch + 1) * kWindows; ++sample)
      first_tokens.push_back(data.sequence(sample / 3, sample % 3)[0]);
    return first_tokens;
  };
  const std::vector<int64_t> first = order_in(0), second = order_in(1);
  EXPECT_THAT(second, testing::UnorderedElementsAreArray(first));
  EXPECT_NE(second, first);
  spec.training.seed = 5;
  EXPECT_THAT(order_in(0), testing::UnorderedElementsAreArray(first));
  EXPECT_NE(order_in(0), first);
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
