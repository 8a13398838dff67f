#include "planner/spec/json_parts.h"

#include <gtest/gtest.h>

#include "planner/spec/document.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

JsonPart all(const JsonPath&) {
  return JsonPart::members;
}
JsonPart none(const JsonPath&) {
  return JsonPart::nothing;
}
// {"model": {"type": whole}} and nothing else.
JsonPart one(const JsonPath& path) {
  if (path.size() == 1) return path[0] == "model" ? JsonPart::members : JsonPart::nothing;
  return path[1] == "type" ? JsonPart::whole : JsonPart::nothing;
}

TEST(JsonParts, KeepsWhatIsAskedForAndTheLinesOfAllElse) {
  const std::string text =
      "{\"other\": {\"type\": [1,\n 2,\n \"}\\\"\"]},\n \"model\": {\n  \"x\": 1.5e3, \"type\": {\"a\": "
      "[1]},\n"
      "  \"y\": \"text\"}, \"z\": true }\n";
  const std::string kept = keep_json_parts(text, one);
  EXPECT_EQ(kept,
            "{\"other\": null\n\n,\n \"model\": {\n  \"x\": null, \"type\": {\"a\": [1]},\n"
            "  \"y\": null}, \"z\": null }\n");
  const Document document = parse_json(kept, "x.json"), whole = parse_json(text, "x.json");
  EXPECT_EQ(document.root.find("model")->find("type")->line, whole.root.find("model")->find("type")->line);
  EXPECT_EQ(document.root.find("model")->find("type")->find("a")->children.size(), 1u);
}

TEST(JsonParts, WhatIsKeptAsAWholeIsKeptToTheLetter) {
  for (const char* text : {"", " ", "[1, {\"a\": 2}]", "{}",
                           " {\"a\" : {\"b\":{}} , \"a\":[{\"c\":\"\\\\\"}]}x", "{\"a\\u0062\": 1}", "7"})
    EXPECT_EQ(keep_json_parts(text, all), text);
}

TEST(JsonParts, BrokenTextIsLeftToTheParser) {
  for (const std::string text :
       {"{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\": {", "{\"a\": \"b", "{\"a\": [1, 2", "{a: 1}", "{\"a\" 1}",
        "{\"a\": }", "{\"a\": {\"b\": 1}", "{\"a\": 1,, }", "{\"a\": [}", "{\"a\": 1 2}"}) {
    const std::string kept = keep_json_parts(text, none);
    EXPECT_THROW(parse_json(kept, "x.json"), InputError) << text << " became " << kept;
  }
}

TEST(JsonParts, AKeyWithEscapesIsKept) {
  EXPECT_EQ(keep_json_parts(R"({"a\u0062": [1], "c": [1]})", none), R"({"a\u0062": [1], "c": null})");
}

TEST(JsonParts, DeepObjectsAreKeptWhole) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "{\"a\": ";
  text += "1" + std::string(500, '}');
  EXPECT_EQ(keep_json_parts(text, all), text);
}

}  // namespace
}  // namespace sailor
