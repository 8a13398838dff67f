// Tokenizers of Hugging Face. The files in golden/ are small ones of every kind with texts and what the
// tokenizers library makes of them (tests/transformers/tokenizer_golden.py).
#include "trainer/data/tokenize/huggingface/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/huggingface/tables.h"
#include "trainer/data/tokenize/tokenize.h"

namespace sailor {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const std::filesystem::path kGolden = std::filesystem::path(SAILOR_SOURCE_DIR) / "tests/unit/tokenize/golden";

class TokenizerJsonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::path(::testing::TempDir()) /
        ("tokenizer-json-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static Json golden(const std::string& kind) {
    std::ifstream in(kGolden / (kind + ".json"));
    return Json::parse(in);
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return directory_ / name;
  }
  std::unique_ptr<Tokenizer> load(const Json& tokenizer, const std::string& end = "") const {
    return load_tokenizer_json(write("tokenizer.json", tokenizer.dump()), end);
  }
  std::string error_of(const std::string& text) const {
    try {
      encode(*load_tokenizer_json(write("tokenizer.json", text)), "Ab 12\n <s>\u00e9\u2603");
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
  // The error after a change of a tokenizer.
  template <class Change>
  std::string error_after(const std::string& kind, Change change) const {
    Json tokenizer = golden(kind)["tokenizer"];
    change(tokenizer);
    return error_of(tokenizer.dump());
  }
  static std::vector<int> encode(const Tokenizer& tokenizer, const std::string& text) {
    std::vector<int> tokens;
    tokenizer.encode(text, tokens);
    return tokens;
  }

  std::filesystem::path directory_;
};

TEST_F(TokenizerJsonTest, TokensAndTextsAreThoseOfTheTokenizersLibrary) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden)) {
    const std::string kind = entry.path().stem();
    const Json expected = golden(kind);
    const auto tokenizer = load(expected["tokenizer"]);
    for (const Json& one : expected["cases"]) {
      const auto tokens = one[1].get<std::vector<int>>();
      EXPECT_EQ(encode(*tokenizer, one[0].get<std::string>()), tokens) << kind << ": " << one[0];
      EXPECT_EQ(tokenizer->decode(tokens), one[2].get<std::string>()) << kind << ": " << one[0];
    }
    ++files;
  }
  EXPECT_EQ(files, 19);
}

TEST_F(TokenizerJsonTest, WordsThatWereSeenBeforeHaveTheSameTokens) {
  const Json expected = golden("llama3");
  const auto tokenizer = load(expected["tokenizer"]);
  for (int round = 0; round < 2; ++round) {
    for (const Json& one : expected["cases"])
      EXPECT_EQ(encode(*tokenizer, one[0].get<std::string>()), one[1].get<std::vector<int>>());
  }
}

TEST_F(TokenizerJsonTest, BytesThatAreNoTextBecomeReplacementCharacters) {
  const auto tokenizer = load(golden("gpt2")["tokenizer"]);
  EXPECT_EQ(encode(*tokenizer, "a\xff\xe4\xb8 \xf0\x9f\x98x\xed\xa0\x80"),
            encode(*tokenizer, "a\uFFFD\uFFFD \uFFFDx\uFFFD\uFFFD\uFFFD"));
}

TEST_F(TokenizerJsonTest, NumbersHaveTheValuesOfRust) {
  EXPECT_EQ(serde_number("-2.5"), -2.5);
  EXPECT_EQ(serde_number("1e3"), 1000);
  EXPECT_EQ(serde_number("25e-1"), 2.5);
  EXPECT_EQ(serde_number("0.0"), 0);
  EXPECT_EQ(serde_number("1e-400"), 0);
  // More than 53 bits of digits are rounded before the division as well as after it.
  EXPECT_EQ(serde_number("-9.302214992188456"), -9302214992188456.0 / 1e15);
  EXPECT_EQ(serde_number("0.00000000000000012345678901234567890123"), 12345678901234567890.0 / 1e35);
  EXPECT_EQ(serde_number("123456789012345678901234.5"), 12345678901234567890.0 * 1e4);
}

TEST_F(TokenizerJsonTest, DocumentsEndWithTheTokenThatIsGivenOrConfigured) {
  const Json tokenizer = golden("gpt2")["tokenizer"];
  EXPECT_EQ(load(tokenizer)->end_of_document(), -1);
  EXPECT_EQ(load(tokenizer, "</s>")->end_of_document(), 1);
  write("tokenizer_config.json", R"({"eos_token": "<s>", "chat_template": "{{ bos_token }}"})");
  EXPECT_EQ(load(tokenizer)->end_of_document(), 0);
  EXPECT_EQ(load(tokenizer, "</s>")->end_of_document(), 1);
  write("tokenizer_config.json", R"({"eos_token": {"content": "</s>", "lstrip": false}})");
  EXPECT_EQ(load(tokenizer)->end_of_document(), 1);
  write("tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_EQ(load(tokenizer)->end_of_document(), -1);
  write("tokenizer_config.json", R"({"eos_token": "<end>"})");
  EXPECT_THAT(error_of(tokenizer.dump()),
              HasSubstr("tokenizer.json: has no token \"<end>\", the eos_token of tokenizer_config.json"));
}

TEST_F(TokenizerJsonTest, AWholeDocumentIsTokenizedAtOnceAndEndsOnce) {
  const Json expected = golden("t5");
  // The template ends every text with </s>, which is the end of documents too.
  const auto tokenizer = load(expected["tokenizer"], "</s>");
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "a few words \n";
  std::vector<int> whole = encode(*tokenizer, text);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), 1), 1);
  const TokenizeResult result =
      tokenize({{write("t", text)}, directory_, 0}, *tokenizer, [](int64_t, int64_t) {});
  EXPECT_EQ(result.train_tokens, static_cast<int64_t>(whole.size()));
  const TokenizeResult parts =
      tokenize({{write("t", text)}, directory_, 0.25}, *tokenizer, [](int64_t, int64_t) {});
  EXPECT_EQ(parts.validation_tokens,
            static_cast<int64_t>(encode(*tokenizer, text.substr(text.size() / 4 * 3)).size()));
  EXPECT_EQ(parts.train_tokens + parts.validation_tokens, result.train_tokens + 1);
}

TEST_F(TokenizerJsonTest, WhatIsNotSupportedIsNamedWithFileLineAndKey) {
  auto error = [this](const std::string& kind, const char* path, const Json& value) {
    return error_after(kind, [&](Json& tokenizer) { tokenizer[Json::json_pointer(path)] = value; });
  };
  EXPECT_THAT(
      error("gpt2", "/pre_tokenizer", {{"type", "UnicodeScripts"}}),
      HasSubstr("tokenizer.json:1: pre_tokenizer.type: \"UnicodeScripts\" is not supported (supported: "));
  EXPECT_THAT(error("gpt2", "/normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}),
              HasSubstr("normalizer.type: \"BertNormalizer\" is not supported"));
  EXPECT_THAT(error("gpt2", "/model/type", "WordPiece"),
              HasSubstr("model.type: \"WordPiece\" is not supported"));
  EXPECT_THAT(error("gpt2", "/post_processor/type", "Other"), HasSubstr("post_processor.type: \"Other\""));
  EXPECT_THAT(error("gpt2", "/decoder/type", "CTC"), HasSubstr("decoder.type: \"CTC\" is not supported"));
  EXPECT_THAT(error("gpt2", "/model/dropout", 0.1), HasSubstr("model.dropout: dropout of merges"));
  EXPECT_THAT(error("gpt2", "/model/new_option", 1), HasSubstr("new_option"));
  EXPECT_THAT(error("gpt2", "/new_key", 1), HasSubstr("new_key"));
  EXPECT_THAT(error("gpt2", "/added_tokens/0/id", 77),
              HasSubstr("added_tokens[0].id: is 77, but the tokenizers library gives \"<s>\" the number 0"));
  EXPECT_THAT(error("gpt2", "/model/merges/0", "a b c"), HasSubstr("model.merges[0]: must be two tokens"));
  EXPECT_THAT(error("gpt2", "/model/merges/1", {"a", "Ą Ą"}), HasSubstr("is not in model.vocab"));
  EXPECT_THAT(error("gpt2", "/model/vocab/a", -1), HasSubstr("model.vocab: \"a\" must have a number from 0"));
  EXPECT_THAT(error("t5", "/model/vocab/3", {"a"}), HasSubstr("model.vocab[3]: must be [token, score]"));
  EXPECT_THAT(error("t5", "/normalizer/precompiled_charsmap", "AAAA"), HasSubstr("no precompiled charsmap"));
  EXPECT_THAT(error("t5", "/post_processor/single/0", {{"Sequence", {{"id", "B"}, {"type_id", 0}}}}),
              HasSubstr("post_processor.single[0].Sequence.id"));
}

TEST_F(TokenizerJsonTest, ExpressionsThatIcuUnderstandsDifferentlyAreRefused) {
  for (const char* expression : {R"(\w+)", R"(\h)", R"(\bx)", R"((?m:.))", R"((a)\1)", "^a", "a$", "[a&&b]",
                                 "[a[b]]", "[[:alpha:]]", "a{2}+", "a{,3}", R"(\x41)", R"(\p{^L})", "[]a]"}) {
    const std::string error = error_after("llama3", [&](Json& tokenizer) {
      tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = expression;
    });
    EXPECT_THAT(error, HasSubstr("pre_tokenizer.pretokenizers[0].pattern.Regex: `")) << expression;
    EXPECT_THAT(error, HasSubstr("is not supported")) << expression;
  }
  for (const char* expression : {"(a", "[a", R"(\p{Nothing})", "a**"}) {
    const std::string error = error_after("llama3", [&](Json& tokenizer) {
      tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = expression;
    });
    EXPECT_THAT(error, HasSubstr("pre_tokenizer.pretokenizers[0].pattern.Regex: ")) << expression;
  }
}

TEST_F(TokenizerJsonTest, TextThatAVocabularyLacksIsAnErrorWithoutAnUnknownToken) {
  Json tokenizer = golden("t5")["tokenizer"];
  tokenizer["model"]["unk_id"] = nullptr;
  const auto loaded = load(tokenizer);
  try {
    encode(*loaded, "☃");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("model.unk_id is missing, and \"☃\" in the text is not in model.vocab"));
  }
}

TEST_F(TokenizerJsonTest, TruncatedFilesAreOneError) {
  for (const char* kind : {"llama3", "t5"}) {
    const std::string text = golden(kind)["tokenizer"].dump();
    for (std::size_t size = 0; size < text.size(); size += 1 + size / 40) {
      const std::string error = error_of(text.substr(0, size));
      EXPECT_THAT(error, HasSubstr("tokenizer.json")) << size;
      EXPECT_EQ(error.find('\n'), std::string::npos);
    }
  }
}

// Every value of the file but those of the vocabulary, by other ones: a tokenizer or one error, never
// anything else.
TEST_F(TokenizerJsonTest, WrongTypesAreOneErrorOrATokenizer) {
  for (const char* kind : {"llama3", "t5", "added_always"}) {
    const Json tokenizer = golden(kind)["tokenizer"];
    const Json values = tokenizer.flatten();
    int refused = 0;
    for (const auto& [path, value] : values.items()) {
      if (path.starts_with("/model/vocab/") ||
          (path.starts_with("/model/merges/") && !path.starts_with("/model/merges/0")))
        continue;
      for (const Json& wrong : {Json(-1), Json(1.5), Json("x"), Json(true), Json(nullptr), Json::array(),
                                Json::object(), Json(uint64_t{1} << 40)}) {
        Json changed = tokenizer;
        changed[Json::json_pointer(path)] = wrong;
        const std::string error = error_of(changed.dump());
        if (error == "no error") continue;
        ++refused;
        EXPECT_THAT(error, HasSubstr("tokenizer.json:1: ")) << path;
      }
    }
    EXPECT_GT(refused, 100) << kind;
  }
}

}  // namespace
}  // namespace sailor
