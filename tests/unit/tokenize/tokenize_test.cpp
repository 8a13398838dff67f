#include "trainer/data/tokenize/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/spec/error.h"
#include "tests/unit/tokenize/directory_test.h"
#include "trainer/data/token_file.h"
#include "trainer/data/tokenize/text_reader.h"
#include "trainer/data/tokenize/token_writer.h"

namespace sailor {
namespace {

// Words that a vocabulary can be learned from, with everything that tokenizers like to lose.
std::string sample_text(int lines) {
  static const char* const kWords[] = {"ship", "sail",  "wind", "harbour", "north", "  tide", "\tmast",
                                       "42",   "Ärger", "帆船", "it's",    "rope;", "storm",  "calm"};
  std::string text;
  uint64_t state = 7;
  for (int i = 0; i < lines; ++i) {
    for (int j = 0; j < 9; ++j) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += kWords[(state >> 33) % 14];
      text += ' ';
    }
    text += i % 5 == 0 ? "\n\n" : "\n";
  }
  return text;
}

class TokenizeTest : public DirectoryTest {
 protected:
  std::vector<int> tokens(const std::string& name) const {
    std::ifstream in(directory_ / name, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    std::vector<int> values;
    for (std::size_t i = 0; i + 1 < bytes.size(); i += 2)
      values.push_back(static_cast<unsigned char>(bytes[i]) | static_cast<unsigned char>(bytes[i + 1]) << 8);
    return values;
  }
};

TEST_F(TokenizeTest, ChunksAreTheWholeTextCutWhereNothingIsLost) {
  const std::string first = sample_text(40), second = "帆船帆船帆船帆船帆船帆船";
  const std::vector<std::string> files = {write("a", first), write("empty", ""), write("b", second)};
  for (const std::size_t size : {16u, 17u, 100u, 1u << 16}) {
    TextReader reader(files, {.chunk_bytes = size});
    EXPECT_EQ(reader.total_bytes(), static_cast<int64_t>(first.size() + second.size()));
    std::string all;
    int documents = 0;
    for (TextChunk chunk; reader.next(chunk); all += chunk.text, documents += chunk.ends_document) {
      EXPECT_EQ(chunk.position, static_cast<int64_t>(all.size()));
      EXPECT_LE(chunk.text.size(), size);
      EXPECT_NE(static_cast<unsigned char>(chunk.text[0]) & 0xc0, 0x80) << "inside a character";
    }
    EXPECT_EQ(all, first + second);
    EXPECT_EQ(documents, 2);
  }
}

TEST_F(TokenizeTest, BytesAreTokensAndTheLastPartIsForValidation) {
  const std::string text = sample_text(200);
  const TokenizeResult result =
      tokenize({{write("t", text)}, directory_, 0.1}, *byte_tokenizer(), [](int64_t, int64_t) {});
  EXPECT_EQ(result.text_bytes, static_cast<int64_t>(text.size()));
  const std::vector<int> train = tokens("train.bin"), validation = tokens("validation.bin");
  EXPECT_EQ(result.train_tokens, static_cast<int64_t>(train.size()));
  std::string all;
  for (const int token : train) all.push_back(static_cast<char>(token));
  for (const int token : validation) all.push_back(static_cast<char>(token));
  EXPECT_EQ(all, text);
  EXPECT_NEAR(static_cast<double>(validation.size()) / static_cast<double>(text.size()), 0.1, 0.03);
  EXPECT_EQ(validation.front(), train.back() == '\n' ? validation.front() : -1) << "cut inside a line";
}

TEST_F(TokenizeTest, ALearnedVocabularyGivesEveryTextBack) {
  const std::vector<std::string> files = {write("a", sample_text(300)),
                                          write("b", "An unseen character: ☃\n")};
  const std::string model = directory_ / "m.model";
  train_sentencepiece(files, 400, 1 << 20, model);
  const auto tokenizer = load_sentencepiece(model);
  EXPECT_LE(tokenizer->vocabulary(), 400);
  tokenize({files, directory_, 0}, *tokenizer, [](int64_t, int64_t) {});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "validation.bin"));
  const std::vector<int> train = tokens("train.bin");
  EXPECT_LT(train.size() * 2, sample_text(300).size()) << "pieces are longer than bytes";
  // Each document ends with the model's own mark.
  ASSERT_GE(tokenizer->end_of_document(), 0);
  std::vector<std::string> documents(1);
  std::vector<int> document;
  for (const int token : train) {
    document.push_back(token);
    if (token != tokenizer->end_of_document()) continue;
    document.pop_back();
    documents.back() = tokenizer->decode(document);
    documents.emplace_back();
    document.clear();
  }
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_EQ(documents[0], sample_text(300));
  EXPECT_EQ(documents[1], "An unseen character: ☃\n");
}

TEST_F(TokenizeTest, TokensTakeTheBitsOfTheVocabulary) {
  for (const auto& [vocabulary, bytes] : {std::pair(65536, 2), std::pair(65537, 4)}) {
    const std::vector<int> written = {0, 65535, vocabulary - 1};
    TokenWriter writer(directory_ / "w", vocabulary);
    writer.write(written);
    writer.finish();
    EXPECT_EQ(std::filesystem::file_size(directory_ / "w.bin"), static_cast<std::size_t>(3 * bytes));
    const TokenFile file = TokenFile::open(directory_ / "w.bin", "auto", "k");
    EXPECT_EQ(file.format(), "megatron");
    std::vector<int64_t> read(3);
    file.read(0, 3, read.data());
    EXPECT_EQ(read, std::vector<int64_t>(written.begin(), written.end()));
  }
}

// Bytes, but `bc` is one token.
class PairTokenizer : public Tokenizer {
 public:
  int vocabulary() const override { return 258; }
  void encode(const std::string& text, std::vector<int>& tokens) const override {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool pair = text.compare(i, 2, "bc") == 0;
      tokens.push_back(pair ? 256 : static_cast<unsigned char>(text[i]));
      i += pair ? 1 : 0;
    }
  }
  std::string decode(const std::vector<int>&) const override { return {}; }
  int end_of_document() const override { return 257; }
  bool needs_whole_documents() const override { return false; }
};

TEST_F(TokenizeTest, AnswersOfExamplesAreMarkedWithTheEnd) {
  const std::string long_prompt(20000, 'p');  // longer than a chunk
  const std::string lines = R"({"prompt": "ab", "completion": "cde"})"
                            "\n\n"
                            R"({"completion": "x", "prompt": ""})"
                            "\n"
                            R"({"prompt": "y", "completion": "z"})"
                            "\n"
                            R"({"prompt": ")" +
                            long_prompt +
                            R"(", "completion": "q"})"
                            "\n";
  tokenize({.files = {write("e.jsonl", lines)}, .directory = directory_, .validation = 0, .sft = true},
           PairTokenizer(), [](int64_t, int64_t) {});
  const TokenFile file = TokenFile::open(directory_ / "train.bin", "auto", "k");
  ASSERT_EQ(file.tokens(), 10 + 20002);
  std::vector<int64_t> first(10);
  file.read(0, 10, first.data());
  EXPECT_THAT(first, ::testing::ElementsAre('a', 256, 'd', 'e', 257, 'x', 257, 'y', 'z', 257));
  file.require_answers("k");
  EXPECT_THAT(file.document_starts(0, 100), ::testing::ElementsAre(0, 5, 7, 10));
  using Ranges = std::vector<TokenRange>;
  EXPECT_EQ(file.answers(0, 100), (Ranges{{1, 5}, {5, 7}, {8, 10}}))
      << "a token across the boundary is one of the answer";
  EXPECT_EQ(file.answers(2, 6), (Ranges{{2, 5}, {5, 6}}));
  EXPECT_EQ(file.answers(7, 8), (Ranges{}));
  EXPECT_EQ(file.answers(10, 30000), (Ranges{{20010, 20012}}));
}

TEST_F(TokenizeTest, WhatIsNoExampleIsNamedWithItsLine) {
  const auto problem = [&](const std::string& name, const std::string& line) -> std::string {
    try {
      tokenize({.files = {write(name, "\n" + line)}, .directory = directory_, .validation = 0, .sft = true},
               PairTokenizer(), [](int64_t, int64_t) {});
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(problem("a.txt", "text"),
              HasSubstr("a.txt: is not JSONL (.jsonl, .ndjson) or Parquet, as examples must be"));
  EXPECT_THAT(
      problem("a.jsonl", R"({"prompt": "a"})"),
      HasSubstr(R"(a.jsonl:2: has no key "completion" (keys: prompt); examples are objects such as)"));
  EXPECT_THAT(problem("a.jsonl", R"({"messages": []})"),
              HasSubstr("a.jsonl:2: has messages, which need a chat template"));
  EXPECT_THAT(problem("a.jsonl", R"({"prompt": ["a"], "completion": "b"})"),
              HasSubstr(R"("prompt" must be a text, is array)"));
  EXPECT_THAT(problem("a.jsonl", R"({"prompt": "a", "completion": ""})"),
              HasSubstr(R"("completion" is empty)"));
  EXPECT_THAT(problem("a.jsonl", "[1"), HasSubstr(R"(an object such as {"prompt": "a question")"));
}

TEST_F(TokenizeTest, TheIndexHasTheDocuments) {
  TokenWriter writer(directory_ / "w", 256);
  writer.end_document();  // without tokens: none
  writer.write({1, 2});
  writer.write({3});
  writer.end_document();
  writer.write({4});
  writer.finish();
  std::ifstream in(directory_ / "w.idx", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto value = [&bytes]<class T>(T value, std::size_t at) {
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  ASSERT_EQ(bytes.size(), 34u + 2 * 12 + 3 * 8);
  EXPECT_EQ(bytes.substr(0, 9), std::string("MMIDIDX\0\0", 9));
  EXPECT_EQ(value(uint64_t{}, 18), 2u) << "sequences";
  EXPECT_EQ(value(uint64_t{}, 26), 3u) << "documents, and their end";
  EXPECT_EQ(value(int32_t{}, 34), 3);
  EXPECT_EQ(value(int32_t{}, 38), 1);
  EXPECT_EQ(value(int64_t{}, 50), 6) << "bytes before the second";
  EXPECT_EQ(value(int64_t{}, 58 + 16), 2) << "sequences before the end";
}

TEST_F(TokenizeTest, EveryLineOfJsonlIsADocument) {
  const std::string lines =
      "{\"id\": 1, \"text\": \"one\\n\\u00e9\\ud83d\\ude00 two\"}\r\n\n   \n{\"text\": \"\"}\n"
      "{\"text\": \"" +
      std::string(1000, 'x') + "\", \"meta\": {\"text\": 3}}\n{\"text\":\"last\"}";
  const std::vector<std::string> files = {write("a.jsonl", lines), write("b", "plain"),
                                          write("c.ndjson", lines)};
  for (const std::size_t size : {std::size_t{17}, TextOptions::kWholeDocuments}) {
    TextReader reader(files, {.chunk_bytes = size});
    std::vector<std::string> documents(1);
    TextChunk chunk;
    while (reader.next(chunk)) {
      documents.back() += chunk.text;
      EXPECT_LE(chunk.text.size(), size);
      if (chunk.ends_document) documents.emplace_back();
    }
    EXPECT_EQ(chunk.end_position, reader.total_bytes());
    const std::string first = "one\n\u00e9\U0001f600 two", second(1000, 'x');
    EXPECT_THAT(documents, ::testing::ElementsAre(first, second, "last", "plain", first, second, "last", ""));
  }
  // Lines that begin behind the split are for validation, whole.
  TextReader reader(files, {.chunk_bytes = 100, .split_at = 300});
  std::string before, after;
  for (TextChunk chunk; reader.next(chunk);) (chunk.after_split ? after : before) += chunk.text;
  EXPECT_EQ(before.size(), 14u + 1000);
  EXPECT_TRUE(after.starts_with("lastplain"));
}

TEST_F(TokenizeTest, LinesOfJsonlWithoutTextAreNamed) {
  auto error_of = [&](const std::string& line, const std::string& key = "text") -> std::string {
    TextReader reader({write("e.jsonl", "{\"text\": \"good\"}\n" + line + "\n")}, {.text_key = key});
    TextChunk chunk;
    try {
      while (reader.next(chunk)) continue;
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string good = R"({"text": "a\nb", "n": [1, {"x": null}]})";
  EXPECT_EQ(error_of(good), "no error");
  for (std::size_t size = 1; size < good.size(); ++size)
    EXPECT_THAT(error_of(good.substr(0, size)), ::testing::HasSubstr("e.jsonl:2: not valid JSON at byte "))
        << size;
  EXPECT_THAT(error_of("{\"text\": \"\\ud800\"}"), ::testing::HasSubstr("e.jsonl:2: not valid JSON"));
  EXPECT_THAT(error_of("{\"text\": \"\xff\"}"), ::testing::HasSubstr("e.jsonl:2: not valid JSON"));
  EXPECT_THAT(error_of("{\"text\": \"a\", \"n\": 1e999}"),
              ::testing::HasSubstr("e.jsonl:2: a number is too large"));
  for (const char* line : {"[]", "3", "\"text\"", "null"})
    EXPECT_THAT(error_of(line), ::testing::HasSubstr("e.jsonl:2: must be an object such as {\"text\""));
  for (const char* value : {"3", "null", "[\"a\"]", "{}", "true"})
    EXPECT_THAT(error_of(std::string("{\"text\": ") + value + "}"),
                ::testing::HasSubstr("e.jsonl:2: \"text\" must be a text, is "));
  EXPECT_THAT(error_of("{\"content\": \"a\", \"id\": 1}"),
              ::testing::HasSubstr(
                  "e.jsonl:2: has no key \"text\" (keys: content, id); name the key of the text with "
                  "--text-key"));
  EXPECT_THAT(error_of("{}", "content"),
              ::testing::HasSubstr("e.jsonl:1: has no key \"content\" (keys: text)"));
}

const std::filesystem::path kMds = SAILOR_SOURCE_DIR "/tests/golden/fixtures/mds";

TEST_F(TokenizeTest, EverySampleOfMosaicmlsFormatIsADocument) {
  for (const std::filesystem::path& path : {kMds / "columns", kMds / "columns/index.json"}) {
    TextReader reader({path, write("b", "plain")}, {});
    EXPECT_EQ(reader.total_bytes(), 390 + 5);
    std::vector<std::string> documents;
    TextChunk chunk;
    int64_t position = -1;
    while (reader.next(chunk)) {
      EXPECT_TRUE(chunk.ends_document);
      EXPECT_GT(chunk.position, position);
      position = chunk.position;
      documents.push_back(chunk.text);
    }
    EXPECT_EQ(chunk.end_position, reader.total_bytes());
    EXPECT_THAT(documents,
                ::testing::ElementsAre("text of 3 \u00e9", "text of 7 \u00e9", "text of 1 \u00e9", "plain"));
  }
}

TEST_F(TokenizeTest, TheColumnOfTheTextMayHaveAnotherName) {
  std::filesystem::copy(kMds / "columns", directory_ / "set");
  std::ostringstream index;
  index << std::ifstream(directory_ / "set/index.json").rdbuf();
  std::string text = index.str();
  write("set/index.json", text.replace(text.find("\"text\""), 6, "\"body\""));
  const auto bytes = byte_tokenizer();
  const TokenizeResult result =
      tokenize({{directory_ / "set"}, directory_, 0, "body"}, *bytes, [](int64_t, int64_t) {});
  EXPECT_EQ(result.train_tokens, 36);
}

TEST_F(TokenizeTest, JsonInMosaicmlsFormatIsRead) {
  // The column of texts taken for JSON, with the first text replaced by others of its length.
  std::filesystem::copy(kMds / "columns", directory_ / "json");
  const auto in = [](const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  };
  std::string index = in(directory_ / "json/index.json"), shard = in(directory_ / "json/shard.00000.mds");
  write("json/index.json", index.replace(index.find("\"str\""), 5, "\"json\""));
  for (const auto& [value, error] :
       {std::pair("\"a text\"    ", "sample 1, column text: not valid JSON at byte 2"),
        {"text of 3 \u00e9", "sample 0, column text: not valid JSON at byte 2"},
        {"1e999       ", "sample 0, column text: a number is too large"}}) {
    write("json/shard.00000.mds", std::string(shard).replace(shard.find("text of 3"), 12, value));
    TextReader reader({directory_ / "json"}, {});
    try {
      for (TextChunk chunk; reader.next(chunk);) EXPECT_EQ(chunk.text, "a text");
      FAIL();
    } catch (const InputError& e) {
      EXPECT_THAT(e.what(), ::testing::HasSubstr(error));
    }
  }
}

TEST_F(TokenizeTest, DirectoriesWithoutTextAreNamed) {
  auto error_of = [](const std::string& path, const TextOptions& options) -> std::string {
    try {
      TextReader(std::vector{path}, options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(
      error_of(kMds / "fixed", {}),
      ::testing::HasSubstr("fixed/index.json:1: has no column text (columns: tokens: ndarray:uint32:6); "
                           "name the column of the text with --column"));
  EXPECT_THAT(
      error_of(kMds / "fixed", {.text_key = "tokens"}),
      ::testing::HasSubstr("index.json:1: column tokens has the encoding ndarray:uint32:6, which holds no "
                           "text (known: str, json); a column of tokens is trained on as it is"));
  EXPECT_THAT(error_of(kMds / "compressed", {}), ::testing::HasSubstr("shard.00000.mds.zstd is compressed"));
  EXPECT_THAT(error_of(kMds, {}),
              ::testing::HasSubstr("mds: is a directory without index.json; name the files"));
  EXPECT_THAT(error_of(kMds / "columns", {.examples = true}),
              ::testing::HasSubstr("has no column prompt (columns: id: int"));
}

// A model that adds a space to the beginning of a text, and its tokens of a text of many chunks, by
// SentencePiece's Python package (tests/transformers/tokenizer_golden.py).
TEST_F(TokenizeTest, SentencePieceModelsGetWholeDocumentsUnlessLinesAreIndependent) {
  const std::filesystem::path golden =
      std::filesystem::path(SAILOR_SOURCE_DIR) / "tests/unit/tokenize/golden_sentencepiece";
  std::ifstream in(golden / "expected.json");
  const auto expected = nlohmann::json::parse(in);
  std::string text;
  for (int i = 0; i < expected["times"].get<int>(); ++i) text += expected["text"].get<std::string>();
  const auto tokenizer = load_sentencepiece(golden / "tokenizer.model");
  EXPECT_TRUE(tokenizer->needs_whole_documents());
  tokenize({{write("t", text)}, directory_, 0}, *tokenizer, [](int64_t, int64_t) {});
  std::vector<int> train = tokens("train.bin");
  ASSERT_FALSE(train.empty());
  EXPECT_EQ(train.back(), tokenizer->end_of_document());
  EXPECT_EQ(static_cast<int>(train.size()), expected["count"].get<int>() + 1);
  const auto first = expected["first"].get<std::vector<int>>();
  train.resize(first.size());
  EXPECT_EQ(train, first);

  train_sentencepiece({write("own", sample_text(300))}, 380, 1 << 20, directory_ / "own.model");
  EXPECT_FALSE(load_sentencepiece(directory_ / "own.model")->needs_whole_documents());
}

TEST_F(TokenizeTest, WhatCannotBeDoneIsSaid) {
  auto error_of = [](const std::function<void()>& action) -> std::string {
    try {
      action();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string small = write("small", "a b\n");
  EXPECT_THAT(error_of([&] { train_sentencepiece({small}, 5000, 1 << 20, directory_ / "m"); }),
              ::testing::HasSubstr("this text is too short for a vocabulary of 5000: it has "));
  EXPECT_THAT(error_of([&] { load_sentencepiece(small); }), ::testing::HasSubstr("no SentencePiece model"));
  EXPECT_THAT(error_of([&] { TextReader({directory_ / "missing"}, {}); }),
              ::testing::HasSubstr("cannot read"));
  EXPECT_THAT(
      error_of([&] { TextReader({write("p.parquet", "PAR1\x15")}, {}); }),
      ::testing::AnyOf(::testing::HasSubstr("p.parquet: is Parquet, which this build cannot read: install "
                                            "Apache Arrow's libparquet-dev and build again, or convert"),
                       ::testing::HasSubstr("p.parquet: cannot be read as Parquet")));
  EXPECT_THAT(error_of([&] { TextReader({write("q.parquet", "PAR")}, {}); }),
              ::testing::HasSubstr("q.parquet: is no Parquet file; copy it again"));
  EXPECT_THAT(error_of([&] { TextReader({write("g.gz", "\x1f\x8b\x08\x01")}, {}); }),
              ::testing::HasSubstr("g.gz: is compressed; decompress it first"));
  EXPECT_THAT(error_of([&] {
                tokenize(
                    {{write("nothing", ""), write("nothing.jsonl", "{\"text\": \"\"}\n")}, directory_, 0.1},
                    *byte_tokenizer(), [](int64_t, int64_t) {});
              }),
              ::testing::HasSubstr("no text"));
  { TokenWriter unfinished(directory_ / "train", 256); }
  for (const char* file : {"train.bin", "train.idx", "train.bin.tmp", "train.idx.tmp"})
    EXPECT_FALSE(std::filesystem::exists(directory_ / file)) << "nothing is left of what failed";
}

}  // namespace
}  // namespace sailor
