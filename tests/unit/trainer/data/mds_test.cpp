// Data sets that MosaicML's library wrote (tests/transformers/mds_golden.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "planner/spec/error.h"
#include "trainer/data/mds/token_shard.h"
#include "trainer/data/token_data.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

const fs::path kGolden = SAILOR_SOURCE_DIR "/tests/golden/fixtures/mds";

int64_t golden_token(int64_t i) {
  return 7919 * i % 50000;
}

class Mds : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(::testing::TempDir()) /
                 ("mds-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  // A copy to change.
  fs::path copy(const std::string& set) const {
    fs::copy(kGolden / set, directory_ / set, fs::copy_options::recursive);
    return directory_ / set;
  }
  static std::string contents(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  static void replace(const fs::path& file, const std::string& from, const std::string& to) {
    std::string text = contents(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(file, std::ios::binary) << text.replace(at, from.size(), to);
  }
  static void overwrite(const fs::path& file, std::size_t at, const std::string& bytes) {
    std::string text = contents(file);
    std::ofstream(file, std::ios::binary) << text.replace(at, bytes.size(), bytes);
  }
  static MdsTokens first_shard(const fs::path& directory, const MdsTokenColumn& column = {}) {
    return MdsTokens(read_mds_index(directory)[0], column, "data.train");
  }
  static std::vector<int64_t> all(const MdsTokens& shard) {
    std::vector<int64_t> tokens(static_cast<std::size_t>(shard.tokens()));
    shard.read(0, shard.tokens(), tokens.data());
    return tokens;
  }
  JobSpec job(const std::string& train) const {
    JobSpec spec;
    spec.file = directory_ / "job.yaml";
    spec.model.sequence = 7;
    spec.model.vocabulary = 50000;
    spec.training.global_batch = 3;
    spec.data.train = {{train}};
    return spec;
  }
  template <class Do>
  static std::string error_of(const Do& action) {
    try {
      action();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
  static std::string error_of(const JobSpec& spec) {
    return error_of([&] { TokenData::open(spec); });
  }

  fs::path directory_;
};

// All tokens, and parts from and to every position.
void expect_golden(const MdsTokens& shard, const std::vector<int64_t>& lengths) {
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  ASSERT_EQ(shard.tokens(), tokens);
  std::vector<int64_t> starts = {0}, expected;
  for (std::size_t i = 0; i + 1 < lengths.size(); ++i) starts.push_back(starts.back() + lengths[i]);
  for (int64_t i = 0; i < tokens; ++i) expected.push_back(golden_token(i));
  for (int64_t first = 0; first < tokens; ++first) {
    for (const int64_t end : {first + 1, (first + tokens + 1) / 2, tokens}) {
      std::vector<int64_t> read(static_cast<std::size_t>(end - first));
      shard.read(first, end - first, read.data());
      ASSERT_EQ(read, std::vector<int64_t>(expected.begin() + first, expected.begin() + end)) << first;
      std::vector<int64_t> in_range = starts;
      std::erase_if(in_range, [&](int64_t start) { return start < first || start >= end; });
      ASSERT_EQ(shard.document_starts(first, end), in_range) << first << " to " << end;
    }
  }
}

TEST_F(Mds, SamplesOfEveryEncodingAreOneArrayOfTokens) {
  expect_golden(first_shard(kGolden / "arrays"), {5, 1, 255, 256, 300, 2});
  expect_golden(first_shard(kGolden / "columns"), {3, 7, 1});
  expect_golden(first_shard(kGolden / "fixed"), {6, 6, 6, 6});
  expect_golden(first_shard(kGolden / "free"), {3, 2});
  expect_golden(first_shard(kGolden / "axes"), {8, 6});
  expect_golden(first_shard(kGolden / "merged"), {4, 3});
  EXPECT_EQ(first_shard(kGolden / "concatenated").tokens() % 16, 0);
}

TEST_F(Mds, ATrainingReadsADirectoryAnIndexOrAGlobOfThem) {
  const auto window = [](int64_t i) {
    std::vector<int64_t> tokens;
    for (int64_t k = 0; k < 8; ++k) tokens.push_back(golden_token(7 * i + k));
    return tokens;
  };
  const std::string set = kGolden / "concatenated";
  for (const std::string& train : {set, set + "/index.json", set + "/"}) {
    const TokenData data = TokenData::open(job(train));
    EXPECT_EQ(data.describe(), "mosaicml: 3 files, 320 tokens");
    ASSERT_EQ(data.num_windows(), 45);
    for (int64_t i = 0; i < 45; ++i) EXPECT_EQ(data.tokens({0, i}), window(i)) << i;
  }
  JobSpec spec = job(kGolden / "fixe[d]");
  spec.data.format = "mosaicml";
  spec.data.validation = {{"", kGolden / "merged"}};
  EXPECT_EQ(TokenData::open(spec).tokens({0, 1}), window(1));
  EXPECT_EQ(TokenData::open_validation(spec, spec.data.validation[0]).tokens({0, 0}), window(0));
  spec.data.train = {{kGolden / "f*e*"}};  // `fixed` and `free`
  EXPECT_EQ(TokenData::open(spec).describe(), "mosaicml: 2 files, 29 tokens");
}

TEST_F(Mds, DocumentsAreSamplesInABlendAndAfterAResume) {
  JobSpec spec = job("");
  spec.data.train = {{kGolden / "concatenated", 3}, {kGolden / "columns", 1}};
  spec.data.document_mask = true;
  const TokenData data = TokenData::open(spec), resumed = TokenData::open(spec);
  spec.training.global_batch = 6;
  const TokenData larger_batch = TokenData::open(spec);
  for (int64_t sample = 100; sample < 400; ++sample) {
    const TokenData::Place place = data.place(sample / 3, sample % 3);
    const SequenceLayout layout = data.layout(place);
    EXPECT_EQ(resumed.layout(resumed.place(sample / 3, sample % 3)).documents, layout.documents);
    EXPECT_EQ(larger_batch.sequence(sample / 6, sample % 6), data.tokens(place));
    // Documents end where samples of 16 tokens, or of 3, 7 and 1 tokens do.
    int64_t at = 7 * place.window;
    for (std::size_t i = 0; i + 1 < layout.documents.size(); ++i) {
      at += layout.documents[i];
      if (place.source == 0)
        EXPECT_EQ(at % 16, 0);
      else
        EXPECT_THAT(at, ::testing::AnyOf(3, 10));
    }
  }
  EXPECT_THAT(data.describe(), HasSubstr("4 files, 331 tokens, blended 75 %, 25 %, in documents of "));
}

TEST_F(Mds, TokensInBytesHaveTheTypeOfTheJobSpec) {
  const MdsTokens narrow = first_shard(kGolden / "concatenated", {"", TokenElement::u32});
  EXPECT_EQ(narrow.tokens(), 2 * first_shard(kGolden / "concatenated").tokens());
  int64_t first[4];
  narrow.read(0, 4, first);
  EXPECT_THAT(first, ElementsAre(0, 0, golden_token(1), 0));
  JobSpec spec = job(kGolden / "concatenated");
  spec.model.vocabulary = 300;
  EXPECT_THAT(
      error_of([&] {
        const TokenData data = TokenData::open(spec);
        data.tokens({0, 0});
      }),
      HasSubstr("shard.00000.mds, token 1: data.train: token 7919 is outside model.vocabulary 300; was "
                "the file made with another tokenizer, or has it another data.token_encoding_type?"));
}

TEST_F(Mds, AColumnThatHoldsNoTokensIsNamedWithTheOthers) {
  const std::string list =
      "(columns: id: int, input_ids: ndarray:uint16, text: str, weight: float32); name the column of tokens "
      "in "
      "data.column, or convert texts with `sailor tokenize`";
  JobSpec spec = job(kGolden / "columns");
  spec.data.column = "tokens";
  EXPECT_THAT(error_of(spec), HasSubstr("index.json:1: has no column tokens " + list));
  spec.data.column = "text";
  EXPECT_THAT(error_of(spec),
              HasSubstr("index.json:1: column text has the encoding str, which holds no tokens"));
  spec.data.column = "input_ids";
  EXPECT_EQ(error_of(spec), "no error");
  spec.data.train = {{directory_ / "plain.bin"}};
  std::ofstream(directory_ / "plain.bin") << std::string(40, '\0');
  EXPECT_THAT(error_of(spec), HasSubstr("plain.bin: data.column: only MosaicML's format has columns"));
}

TEST_F(Mds, DirectoriesThatAreNoDataSetAreRefused) {
  JobSpec spec = job(directory_);
  EXPECT_THAT(error_of(spec), HasSubstr("data.train: not a file; name files"));
  spec.data.format = "mosaicml";
  EXPECT_THAT(error_of(spec), HasSubstr("no data set in MosaicML's format: there is no index.json; name the "
                                        "directory that has it"));
  spec.data.format = "auto";
  spec.data.train = {{kGolden / "fixed/*"}};
  EXPECT_THAT(error_of(spec), HasSubstr("shard.00000.mds: data.train: is a shard of a data set; name its"));
  spec.data.train = {{kGolden / "fixed"}};
  spec.training.task = Task::sft;
  EXPECT_THAT(error_of(spec), HasSubstr("shard.00000.mds: data.train: marks no answers"));
}

TEST_F(Mds, WrongIndicesAreNamedWithTheLine) {
  const auto changed = [&](const std::string& from, const std::string& to) {
    fs::remove_all(directory_ / "fixed");
    const fs::path index = copy("fixed") / "index.json";
    replace(index, from, to);
    return error_of([&] { first_shard(index.parent_path()); });
  };
  EXPECT_THAT(changed(R"("mds", "hashes": [], "raw)", "\n\"csv\", \"raw"),
              HasSubstr("shards[0]: has the format csv, this program reads mds"));
  EXPECT_THAT(changed(R"("version": 2, "zip)", R"("version": 3, "zip)"), HasSubstr("is of version 3"));
  EXPECT_THAT(changed("\"samples\"", "\"Samples\""),
              HasSubstr("index.json:1: shards[0]: has no \"samples\""));
  EXPECT_THAT(changed("\"samples\": 4", "\"samples\": -4"), HasSubstr("shards[0].samples: must be"));
  EXPECT_THAT(changed("\"samples\": 4", "\"samples\": 5"), HasSubstr("does not begin with the 5 samples of"));
  EXPECT_THAT(changed("\"samples\": 4", "\"samples\": 4294967295"), HasSubstr("does not begin with the"));
  EXPECT_THAT(changed("\"bytes\": 302", "\"bytes\": 303"), HasSubstr("has 302 bytes, 303 in "));
  EXPECT_THAT(changed("[\"tokens\"]", "[]"), HasSubstr("have different lengths"));
  EXPECT_THAT(changed("ndarray:uint32:6", "ndarray:float32:6"), HasSubstr("which holds no tokens"));
  EXPECT_THAT(changed("shard.00000", "shard.00009"), HasSubstr("shard.00009.mds: data.train: cannot read"));
  EXPECT_THAT(changed("\"shards\": [", "\"shards\": [], \"x\": ["), HasSubstr("index.json: lists no shards"));
  EXPECT_THAT(changed("}}, ", "}, "), HasSubstr("index.json"));
}

TEST_F(Mds, CompressedShardsAreToldHowToDecompressAndReadThen) {
  const fs::path set = copy("compressed");
  EXPECT_THAT(
      error_of([&] { read_mds_index(set); }),
      HasSubstr("shard.00000.mds.zstd is compressed, and cannot be mapped into memory; decompress the "
                "shards first: for f in " +
                set.string() + "/*.zstd; do zstd -d \"$f\" -o \"${f%.zstd}\"; done"));
  std::ofstream(set / "shard.00000.mds") << "decompressed";
  EXPECT_EQ(read_mds_index(set).size(), 1u);
}

// A shard whose samples contradict its offsets, or each other.
TEST_F(Mds, CorruptedShardsAreNamedWithTheSample) {
  const fs::path arrays = copy("arrays"), shard = arrays / "shard.00000.mds";
  const std::string bytes = contents(shard);
  const auto with = [&](std::size_t at, const std::string& what) {
    std::ofstream(shard, std::ios::binary) << bytes;
    overwrite(shard, at, what);
    return error_of([&] { all(first_shard(arrays)); });
  };
  const std::size_t first = static_cast<unsigned char>(bytes[4]);  // offset of the first sample
  EXPECT_EQ(with(first + 6, bytes.substr(first + 6, 1)), "no error");
  EXPECT_THAT(with(4, "\1"), HasSubstr("is corrupted: sample 0 begins before the one before it"));
  EXPECT_THAT(with(8, "\xff\xff"), HasSubstr("is corrupted: sample 2 begins before"));
  EXPECT_THAT(with(4 + 4 * 6, "\xff\xff"), HasSubstr("is corrupted: its samples end at byte 65535"));
  EXPECT_THAT(with(first, "\xff"),
              HasSubstr("sample 0 is corrupted: the sizes of its columns do not add up to its 26 bytes"));
  EXPECT_THAT(with(first, "\xff\xff\xff\xff"), HasSubstr("sample 0 is corrupted"));
  EXPECT_THAT(with(first + 5, "\6"),
              HasSubstr("sample 0, column tokens: its 20 bytes do not have the array's"));
  EXPECT_THAT(with(first + 4, "\xff"), HasSubstr("sample 0, column tokens: is too short for an array"));
  const std::size_t third = first + 26 + 10;
  EXPECT_THAT(with(third + 5, "\xfe"), HasSubstr("sample 2, column tokens: its 1020 bytes do not have"));
  std::ofstream(shard, std::ios::binary) << bytes.substr(0, 20);
  EXPECT_THAT(error_of([&] { first_shard(arrays); }), HasSubstr("has 20 bytes, 3527 in "));

  const fs::path free = copy("free");
  overwrite(free / "shard.00000.mds", contents(free / "shard.00000.mds").size() - 19, "\x22");
  EXPECT_THAT(error_of([&] { first_shard(free); }), HasSubstr("values of type code 34 are no tokens"));

  const MdsTokenColumn odd{"text", TokenElement::i64};
  const fs::path columns = copy("columns");
  replace(columns / "index.json", "\"str\"", "\"bytes\"");
  EXPECT_THAT(error_of([&] { first_shard(columns, odd); }),
              HasSubstr("sample 0, column text: 12 bytes are not a multiple of 64-bit tokens; set "
                        "data.token_encoding_type to the tokens' type"));
}

}  // namespace
}  // namespace sailor
