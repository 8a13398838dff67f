#include "planner/spec/document.h"

#include <gmock/gmock.h>

#include <random>

#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}
std::string yaml_error(const std::string& text) {
  return error_of([&] { parse_yaml(text, "f"); });
}
std::string json_error(const std::string& text) {
  return error_of([&] { parse_json(text, "f"); });
}

TEST(Document, YamlAndJsonGiveTheSameTree) {
  Document yaml = parse_yaml("a: 1\nb: [x, \"2\"]\nc: {d: null}\n", "f");
  Document json = parse_json("{\"a\": 1,\n\"b\": [\"x\", \"2\"],\n\"c\": {\"d\": null}}", "f");
  for (const Document* document : {&yaml, &json}) {
    EXPECT_EQ(document->root.find("a")->scalar, "1");
    EXPECT_FALSE(document->root.find("a")->is_string);
    EXPECT_TRUE(document->root.find("b")->children[1].node.is_string);
    EXPECT_EQ(document->root.find("b")->line, 2);
    EXPECT_EQ(document->root.find("c")->find("d")->kind, DocumentNode::Kind::null);
    EXPECT_EQ(document->path_of(document->root.find("b")->children[1].node), "b[1]");
    EXPECT_EQ(document->path_of(*document->root.find("c")->find("d")), "c.d");
  }
}

TEST(Document, JsonNumbersKnowTheirOwnLineAlthoughTheLexerReadsAhead) {
  Document document = parse_json("{\"a\":\n1\n,\"b\": [2,\n3\n\n]}", "f");
  EXPECT_EQ(document.root.find("a")->line, 2);
  EXPECT_EQ(document.root.find("b")->children[0].node.line, 3);
  EXPECT_EQ(document.root.find("b")->children[1].node.line, 4);
}

TEST(Document, JsonLinesMatchTheTextForRandomLayouts) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string text = "[";
    std::vector<int> lines;
    int line = 1;
    auto blank = [&] {
      for (int n = static_cast<int>(random() % 3); n > 0; --n) {
        bool newline = random() % 2 == 0;
        text += newline ? '\n' : ' ';
        line += newline ? 1 : 0;
      }
    };
    for (int i = 0; i < 20; ++i) {
      if (i > 0) text += ",";
      blank();
      lines.push_back(line);
      const char* values[] = {"12", "-1.5e3", "\"t\"", "true", "null", "{}"};
      text += values[random() % 6];
      blank();
    }
    text += "]";
    Document document = parse_json(text, "f");
    for (size_t i = 0; i < lines.size(); ++i)
      EXPECT_EQ(document.root.children[i].node.line, lines[i]) << text;
  }
}

TEST(Document, DuplicateKeysAreErrorsInBothFormats) {
  EXPECT_EQ(yaml_error("a: 1\nb: 2\na: 3\n"), "f:3: duplicate key \"a\"");
  EXPECT_EQ(json_error("{\"a\": 1,\n\"a\": 2}"), "f:2: duplicate key \"a\"");
}

TEST(Document, WhatIsNotYamlOrJsonNamesTheLine) {
  EXPECT_THAT(yaml_error("a: [1, 2\nb: 3\n"), HasSubstr("f:2: not valid YAML"));
  EXPECT_THAT(yaml_error("a: b: c\n"), HasSubstr("f:1: not valid YAML"));
  EXPECT_THAT(json_error("{\"a\": 1,\n\"b\": tru"), HasSubstr("f:2: not valid JSON"));
  EXPECT_THAT(json_error("{\"a\": 1e999}"), HasSubstr("f:1: not valid JSON"));
  EXPECT_THAT(json_error("{} x"), HasSubstr("f:1: not valid JSON"));
}

TEST(Document, EmptyAndSecondDocumentsAreRefused) {
  EXPECT_EQ(yaml_error(""), "f:1: the file is empty");
  EXPECT_EQ(yaml_error("# only a comment\n"), "f:1: the file is empty");
  EXPECT_EQ(json_error(" \n"), "f:1: the file is empty");
  EXPECT_THAT(yaml_error("a: 1\n---\nb: 2\n"), HasSubstr("second YAML document"));
}

TEST(Document, AliasesAreExpandedButBombsAreNot) {
  Document document = parse_yaml("a: &x {b: 1}\nc: *x\n", "f");
  EXPECT_EQ(document.root.find("c")->find("b")->scalar, "1");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(yaml_error(bomb), HasSubstr("aliases expand to too many values"));
}

// Every anchor keeps a copy: many large ones, one inside the other, are a bomb without a single alias.
TEST(Document, AnchorsInsideAnchorsAreCountedAsCopies) {
  std::string nested, list;
  for (int i = 0; i < 40; ++i) nested += "&a" + std::to_string(i) + " [";
  for (int i = 0; i < 20000; ++i) list += "x, ";
  EXPECT_THAT(yaml_error("a: " + nested + list + std::string(40, ']') + "\n"),
              HasSubstr("aliases expand to too many values"));
  EXPECT_EQ(parse_yaml("a: &a [" + list + "]\nb: *a\n", "f").root.find("b")->children.size(), 20000u);
}

TEST(Document, ErrorsAreOneLineThatFitsAScreen) {
  const std::string error = json_error("{\"" + std::string(100000, 'a'));
  EXPECT_LE(error.size(), InputError::kLongestText + 3);
  EXPECT_THAT(error, ::testing::StartsWith("f:1: not valid JSON"));
  const InputError path(Where{"a\nb\x7f" + std::string(5000, 'c'), 1}, "cannot be opened");
  EXPECT_THAT(std::string(path.what()), ::testing::StartsWith("a b ccc"));
  // A sequence of UTF-8 is never cut in two.
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "\xc3\xa4";
  for (const std::string& text : {umlauts, "x" + umlauts})
    EXPECT_EQ(std::string(InputError(text).what()).size() % 2, (text.size() + 3) % 2) << text.size();
}

TEST(Document, DeepNestingIsAnErrorNotAStackOverflow) {
  EXPECT_THAT(json_error(std::string(100000, '[')), HasSubstr("nested too deeply"));
  EXPECT_NE(yaml_error(std::string(100000, '[')), "no error");
  EXPECT_NE(yaml_error(std::string(100000, '{')), "no error");
}

TEST(Document, TagsAreRefused) {
  EXPECT_THAT(yaml_error("a: !!binary AAAA\n"), HasSubstr("f:1: YAML tags"));
}

TEST(Document, DamagedTextNeverCrashesTheParsers) {
  const std::string yaml = "a: &x {b: [1, 2.5, \"t\\n\"], c: |\n  text\n}\nd: *x\n? e\n: - f\n  - {g: h}\n";
  const std::string json = "{\"a\": [1, -2.5e3, \"t\\u00e9\"], \"b\": {\"c\": null, \"d\": true}}";
  std::mt19937 random(11);
  for (int round = 0; round < 4000; ++round) {
    std::string text = round % 2 == 0 ? yaml : json;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(' ' + random() % 95);
          break;
        case 1:
          text.erase(at, 1 + random() % 5);
          break;
        default:
          text.insert(at, 1, "{}[]:,&*\"'\n#-?|>!%@"[random() % 19]);
          break;
      }
      if (text.empty()) text = "x";
    }
    for (auto parse : {parse_yaml, parse_json}) {
      try {
        parse(text, "f");
      } catch (const InputError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        EXPECT_GE(error.where().line, 1) << text;
      }
    }
  }
}

TEST(TextFile, RefusesWhatIsNotText) {
  EXPECT_THAT(error_of([] { require_text(std::string("a\nb\0c", 5), "f"); }),
              HasSubstr("f:2: not a text file (it holds NUL"));
  for (const char* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82"}) {
    EXPECT_THAT(error_of([&] { require_text(bad, "f"); }), HasSubstr("UTF-8"));
  }
  require_text("d\xc3\xa9j\xc3\xa0 \xe2\x82\xac \xf0\x9f\x98\x80", "f");
}

TEST(TextFile, SaysWhyAFileCannotBeRead) {
  EXPECT_THAT(error_of([] { read_text_file("/no/such/file"); }), HasSubstr("No such file"));
  EXPECT_THAT(error_of([] { read_text_file("/tmp"); }), HasSubstr("is a directory"));
}

TEST(TextFile, AtomicWriteReplacesAndLeavesNoTemporary) {
  std::string directory = ::testing::TempDir() + "/atomic";
  ASSERT_EQ(system(("rm -rf " + directory + " && mkdir " + directory).c_str()), 0);
  write_file_atomically(directory + "/a", "one");
  write_file_atomically(directory + "/a", "two");
  EXPECT_EQ(read_text_file(directory + "/a"), "two");
  EXPECT_EQ(system(("test $(ls -A " + directory + " | wc -l) = 1").c_str()), 0);
  EXPECT_THROW(write_file_atomically(directory + "/none/a", "x"), std::runtime_error);
}

}  // namespace
}  // namespace sailor
