#include "trainer/data/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "planner/spec/error.h"
#include "tests/unit/trainer/data/megatron_index.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string llmc(int32_t magic, int32_t version, int32_t count, const std::string& tokens) {
  std::vector<int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return raw(header) + tokens;
}

class TokenFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::path(::testing::TempDir()) /
        ("token-file-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
    return directory_ / name;
  }
  static std::vector<int64_t> all(const TokenFile& file) {
    std::vector<int64_t> tokens(static_cast<std::size_t>(file.tokens()));
    file.read(0, file.tokens(), tokens.data());
    return tokens;
  }
  static std::string error_of(const std::string& path, const std::string& format) {
    try {
      TokenFile::open(path, format, "data.train");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path directory_;
};

TEST_F(TokenFileTest, FormatsAreRecognisedByTheirContentOrNeighbours) {
  const TokenFile plain = TokenFile::open(write("n.bin", raw<uint16_t>({7, 65535, 0})), "auto", "k");
  EXPECT_EQ(plain.format(), "nanogpt");
  EXPECT_THAT(all(plain), ElementsAre(7, 65535, 0));

  const TokenFile narrow =
      TokenFile::open(write("l.bin", llmc(20240520, 1, 3, raw<uint16_t>({50256, 1, 2}))), "auto", "k");
  EXPECT_EQ(narrow.format(), "llmc");
  EXPECT_THAT(all(narrow), ElementsAre(50256, 1, 2));
  const TokenFile wide =
      TokenFile::open(write("w.bin", llmc(20240801, 7, 2, raw<uint32_t>({128000, 5}))), "auto", "k");
  EXPECT_THAT(all(wide), ElementsAre(128000, 5));

  write("m.idx", megatron_index(8, 2, {2, 1}, {0, 1, 2}));
  const TokenFile pair = TokenFile::open(write("m.bin", raw<uint16_t>({4, 5, 6})), "auto", "k");
  EXPECT_EQ(pair.format(), "megatron");
  EXPECT_THAT(all(pair), ElementsAre(4, 5, 6));
  int64_t part[2];
  pair.read(1, 2, part);
  EXPECT_THAT(part, ElementsAre(5, 6));
}

TEST_F(TokenFileTest, RawTokensOf32BitsAreNotReadAs16) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < 20; ++i) tokens.push_back(i * 7919 % 151936);
  const std::string path = write("w.bin", raw(tokens));
  const TokenFile wide = TokenFile::open(path, "uint32", "k");
  EXPECT_EQ(all(wide), std::vector<int64_t>(tokens.begin(), tokens.end()));
  for (const char* format : {"auto", "nanogpt"})
    EXPECT_THAT(error_of(path, format),
                HasSubstr("w.bin: data.train: looks like tokens of 32 bits; set data.format: uint32"));
  EXPECT_THAT(error_of(write("odd.bin", "123456"), "uint32"),
              HasSubstr("6 bytes are not a multiple of 32-bit tokens"));
  // Tokens of 16 bits that are all small, or large at one place of many.
  EXPECT_EQ(error_of(write("small.bin", raw(std::vector<uint16_t>(64, 3))), "auto"), "no error");
  std::vector<uint16_t> narrow(64, 0);
  for (std::size_t i = 0; i < narrow.size(); i += 2) narrow[i] = 500;
  narrow[33] = 17;
  EXPECT_EQ(error_of(write("narrow.bin", raw(narrow)), "auto"), "no error");
}

TEST_F(TokenFileTest, MegatronsElementTypesAreReadByTheirCodes) {
  write("a.idx", megatron_index(1, 1, {2}, {0, 1}));
  EXPECT_THAT(all(TokenFile::open(write("a.bin", raw<uint8_t>({200, 1})), "megatron", "k")),
              ElementsAre(200, 1));
  write("b.idx", megatron_index(4, 4, {2}, {0, 1}));
  EXPECT_THAT(all(TokenFile::open(write("b.bin", raw<int32_t>({100000, -1})), "megatron", "k")),
              ElementsAre(100000, -1));
  write("c.idx", megatron_index(5, 8, {1}, {0, 1}));
  EXPECT_THAT(all(TokenFile::open(write("c.bin", raw<int64_t>({int64_t{1} << 40})), "megatron", "k")),
              ElementsAre(int64_t{1} << 40));
  write("d.idx", megatron_index(3, 2, {1}, {0, 1}));
  EXPECT_THAT(all(TokenFile::open(write("d.bin", raw<int16_t>({-3})), "megatron", "k")), ElementsAre(-3));
}

TEST_F(TokenFileTest, BrokenLlmcFilesAreNamedWithWhatToDo) {
  const std::string tokens = raw<uint16_t>({1, 2, 3});
  EXPECT_THAT(error_of(write("v.bin", llmc(20240520, 2, 3, tokens)), "auto"),
              HasSubstr("v.bin: data.train: llm.c header of version 2, this program reads 1"));
  EXPECT_THAT(error_of(write("t.bin", llmc(20240520, 1, 9, tokens)), "auto"),
              HasSubstr("the header says 9 tokens, the file has 3; truncated?"));
  EXPECT_THAT(error_of(write("o.bin", llmc(20240801, 7, 1, tokens)), "auto"),
              HasSubstr("6 bytes are not a multiple of 32-bit tokens"));
  EXPECT_THAT(error_of(write("p.bin", tokens), "llmc"), HasSubstr("no llm.c token file"));
  EXPECT_THAT(error_of(write("n.bin", llmc(20240520, 1, 3, tokens)), "nanogpt"),
              HasSubstr("has the header of llm.c"));
}

TEST_F(TokenFileTest, BrokenMegatronPairsAreNamedWithWhatToDo) {
  const std::string bin = write("m.bin", raw<uint16_t>({4, 5, 6}));
  EXPECT_THAT(error_of(bin, "megatron"), HasSubstr("m.idx next to it; copy it too"));
  write("m.idx", "MMID");
  EXPECT_THAT(error_of(bin, "auto"), HasSubstr("m.idx: data.train: no Megatron index"));
  write("m.idx", megatron_index(8, 2, {3}, {0, 1}, std::string("TNTIDX\0\0\0", 9)));
  EXPECT_THAT(error_of(bin, "auto"), HasSubstr("no Megatron index"));
  write("m.idx", megatron_index(8, 2, {3}, {0, 1}, std::string("MMIDIDX\0\0", 9), 2));
  EXPECT_THAT(error_of(bin, "auto"), HasSubstr("index of version 2"));
  write("m.idx", megatron_index(7, 4, {3}, {0, 1}));
  EXPECT_THAT(error_of(bin, "auto"), HasSubstr("type code 7 are no tokens"));
  write("m.idx", megatron_index(8, 2, {4}, {0, 1}));
  EXPECT_THAT(error_of(bin, "auto"),
              HasSubstr("m.bin: data.train: the index promises 8 bytes, the file has 6"));
  write("m.idx", megatron_index(8, 2, {3}, {0, 1}).substr(0, 40));
  EXPECT_THAT(error_of(bin, "auto"), HasSubstr("truncated: 1 sequences and 2 documents"));
  std::string huge = megatron_index(8, 2, {3}, {0, 1});
  const uint64_t many = UINT64_MAX / 6;
  std::memcpy(huge.data() + 18, &many, sizeof many);
  write("m.idx", huge);
  EXPECT_THAT(error_of(bin, "auto"), HasSubstr("truncated"));
  std::string shuffled = megatron_index(8, 2, {2, 1}, {0, 1, 2});
  const int64_t elsewhere = 0;
  std::memcpy(shuffled.data() + 34 + 8 + 8, &elsewhere, sizeof elsewhere);
  write("m.idx", shuffled);
  EXPECT_THAT(error_of(bin, "auto"), HasSubstr("sequence 1 does not follow the one before it"));
}

TEST_F(TokenFileTest, DocumentsBeginWhereTheIndexSays) {
  // Documents of 3, 0, 1 and 2 tokens; the first has two sequences, and a sequence is empty.
  write("m.idx", megatron_index(8, 2, {2, 1, 1, 0, 2}, {0, 2, 2, 3, 5}));
  const TokenFile file = TokenFile::open(write("m.bin", raw<uint16_t>({1, 2, 3, 4, 5, 6})), "auto", "k");
  file.require_documents("k");
  EXPECT_THAT(file.document_starts(0, 6), ElementsAre(0, 3, 4));
  EXPECT_THAT(file.document_starts(0, 100), ElementsAre(0, 3, 4)) << "the end of the list begins none";
  EXPECT_THAT(file.document_starts(1, 4), ElementsAre(3));
  EXPECT_THAT(file.document_starts(3, 4), ElementsAre(3));
  EXPECT_THAT(file.document_starts(5, 6), ElementsAre());
  EXPECT_THAT(file.document_starts(3, 3), ElementsAre());
}

TEST_F(TokenFileTest, FilesThatMarkNoDocumentsAreRefusedWhereTheyAreNeeded) {
  const auto problem = [](const std::string& path) -> std::string {
    try {
      TokenFile::open(path, "auto", "k").require_documents("data.train");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string bin = write("m.bin", raw<uint16_t>({4, 5, 6}));
  EXPECT_THAT(problem(bin), HasSubstr("m.bin: data.train: data.document_mask needs an .idx that marks the "
                                      "documents, which files of format nanogpt do not have"));
  const auto with_documents = [&](const std::vector<int64_t>& documents) {
    write("m.idx", megatron_index(8, 2, {2, 1}, documents));
    return problem(bin);
  };
  EXPECT_EQ(with_documents({0, 1, 2}), "no error");
  EXPECT_EQ(with_documents({0, 2}), "no error");
  EXPECT_THAT(with_documents({1, 2}), HasSubstr("m.idx: data.train: document 0 does not follow"));
  EXPECT_THAT(with_documents({0, 2, 1}), HasSubstr("document 2 does not follow the one before it"));
  EXPECT_THAT(with_documents({0, 3}), HasSubstr("document 1 does not follow the one before it"));
  EXPECT_THAT(with_documents({0, -1}), HasSubstr("document 1 does not follow the one before it"));
  EXPECT_THAT(with_documents({0, 1}), HasSubstr("the last document does not end with the last sequence"));
  EXPECT_THAT(with_documents({}), HasSubstr("the last document does not end with the last sequence"));
}

TEST_F(TokenFileTest, TextIsNotTakenForTokens) {
  EXPECT_THAT(error_of(write("a.txt", "To be, or not to be.\n"), "auto"), HasSubstr("looks like text"));
  EXPECT_THAT(all(TokenFile::open(write("b.txt", "ab"), "bytes", "k")), ElementsAre('a', 'b'));
}

}  // namespace
}  // namespace sailor
