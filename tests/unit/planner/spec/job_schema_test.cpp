#include "planner/spec/job_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using nlohmann::json;

// YAML is a superset of JSON.
std::string parser_says(const json& job) {
  return test::error_of([&] { parse_job_spec(job.dump(), "job.yaml"); });
}

// A spec with the map of that path and, as far as they go together, all others of the schema, with what their
// readers ask for first.
json whole_job(const std::string& path = "") {
  json job = json::parse(R"({
    "model": {"family": "gpt2", "layers": 2, "hidden": 64, "heads": 4, "sequence": 16, "vocabulary": 128},
    "training": {"global_batch": 4, "steps": 10, "precision": "fp16", "loss_scale": {}, "optimizer": {"name": "adamw"},
                 "schedule": {"name": "cosine"}, "validation": {}, "on_spike": {}, "ema": {"decay": 0.9},
                 "replicas": {}},
    "data": {"train": "a.bin", "validation": "b.bin"}, "resources": {"max_gpus": {}}, "constraints": {},
    "checkpoint": {"directory": "c"}, "elastic": {"enabled": true}, "metrics": {}})");
  if (path == "/trainer") {
    for (const char* of_own_trainer : {"data", "checkpoint", "metrics"}) job.erase(of_own_trainer);
    for (const char* of_own_trainer : {"validation", "on_spike", "ema", "replicas"})
      job["training"].erase(of_own_trainer);
    job["trainer"] = {{"kind", "torchrun"}, {"command", {"python"}}};
  }
  if (path == "/training/schedule") job["training"]["schedule"]["name"] = "wsd";
  if (path != "/training/lora") return job;
  // Adapters are for a model directory, which has the model's keys for itself.
  static const std::string base = [] {
    ModelSpec model;
    set_family(model, "gpt2");
    model.layers = model.heads = 2;
    model.hidden = model.feed_forward = model.sequence = model.vocabulary = 16;
    std::string directory = test::scratch_directory("schema");
    write_file_atomically(directory + "/config.json", to_model_config(model, "float32"));
    return directory;
  }();
  job["model"] = {{"from", base}};
  job["training"]["lora"] = {{"r", 4}};
  return job;
}

// Dotted names of the maps with fixed keys, the top one is "".
void collect_maps(const json& schema, const std::string& path, std::map<std::string, json>& out) {
  if (!schema.contains("properties")) return;
  out[path] = schema;
  for (const auto& [key, node] : schema["properties"].items()) collect_maps(node, path + "/" + key, out);
}

TEST(JobSchema, HasExactlyTheKeysThatTheParserKnows) {
  ASSERT_EQ(parser_says(whole_job()), "no error");
  std::map<std::string, json> maps;
  collect_maps(json::parse(job_schema_json()), "", maps);
  EXPECT_GE(maps.size(), 11u);
  for (const auto& [path, schema] : maps) {
    json job = whole_job(path);
    job[json::json_pointer(path + "/0000")] = 1;
    const std::string error = parser_says(job);
    const size_t begin = error.find("(known: ");
    ASSERT_NE(begin, std::string::npos) << path << ": " << error;
    std::set<std::string> of_parser, of_schema;
    std::istringstream words(error.substr(begin + 8, error.rfind(')') - begin - 8));
    for (std::string word; words >> word;) {
      if (word.ends_with(',')) word.pop_back();
      of_parser.insert(word);
    }
    for (const auto& [key, node] : schema["properties"].items()) of_schema.insert(key);
    EXPECT_EQ(of_schema, of_parser) << path;
  }
}

TEST(JobSchema, RequiresWhatTheParserRequires) {
  std::map<std::string, json> maps;
  collect_maps(json::parse(job_schema_json()), "", maps);
  const auto required = [](const json& schema) {
    std::set<std::string> keys;
    for (const json& from : {schema, schema.contains("oneOf") ? schema["oneOf"][0] : json::object()})
      if (from.contains("required"))
        for (const json& key : from["required"]) keys.insert(key);
    return keys;
  };
  for (const auto& [path, schema] : maps) {
    const json whole = whole_job(path);
    for (const auto& [key, value] : whole[json::json_pointer(path)].items()) {
      json job = whole;
      job[json::json_pointer(path)].erase(key);
      if (key == "data") continue;  // needed only because the job validates
      if (path == "/data" && key == "validation") continue;
      const bool missing = parser_says(job).find("missing key") != std::string::npos;
      EXPECT_EQ(required(schema).contains(key), missing) << path << "/" << key << ": " << parser_says(job);
    }
  }
}

TEST(JobSchema, WordsOfEnumerationsAreThoseOfTheParser) {
  std::map<std::string, json> maps;
  collect_maps(json::parse(job_schema_json()), "", maps);
  int words = 0;
  for (const auto& [path, schema] : maps) {
    for (const auto& [key, node] : schema["properties"].items()) {
      if (!node.contains("enum")) continue;
      const json::json_pointer place(path + "/" + key);
      for (const json& word : node["enum"]) {
        json job = whole_job(path);
        job[place] = word;
        if (path == "/model") job["model"].erase("family");                         // has all choices
        if (key == "precision") job[json::json_pointer(path)].erase("loss_scale");  // of one of them
        EXPECT_EQ(parser_says(job), "no error") << path << "/" << key << " " << word;
        ++words;
      }
      json job = whole_job(path);
      if (path == "/model") job["model"].erase("family");
      job[place] = "none of them";
      EXPECT_THAT(parser_says(job), ::testing::HasSubstr("none of them")) << path << "/" << key;
    }
  }
  EXPECT_GE(words, 15);
}

TEST(JobSchema, DefaultsAreThoseOfTheParser) {
  std::map<std::string, json> maps;
  collect_maps(json::parse(job_schema_json()), "", maps);
  // Writing a default out changes nothing of what is read.
  int defaults = 0;
  for (const auto& [path, schema] : maps) {
    const json whole = whole_job(path);
    const JobSpec as_left_out = parse_job_spec(whole.dump(), "job.yaml");
    for (const auto& [key, node] : schema["properties"].items()) {
      const json::json_pointer place(path + "/" + key);
      if (!node.contains("default") || whole.contains(place)) continue;
      if (key == "momentum" || key == "nesterov") continue;  // of the other optimizer
      json written = whole;
      written[place] = node["default"];
      JobSpec spec = parse_job_spec(written.dump(), "job.yaml");
      spec.lines = as_left_out.lines;
      EXPECT_TRUE(spec == as_left_out) << path << "/" << key;
      ++defaults;
    }
  }
  EXPECT_GE(defaults, 15);
}

TEST(JobSchema, TheReferenceOfFileFormatsHasItsTable) {
  const std::string page = read_text_file(SAILOR_SOURCE_DIR "/etc/doc/formats.md");
  EXPECT_NE(page.find("\n" + job_schema_markdown() + "\n"), std::string::npos)
      << "etc/doc/formats.md is not what `sailor schema --format markdown` prints";
}

}  // namespace
}  // namespace sailor
