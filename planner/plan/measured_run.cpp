#include "planner/plan/measured_run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "planner/plan/plan_json.h"
#include "planner/spec/field.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

nlohmann::ordered_json to_json(const TransformerShape& shape) {
  nlohmann::ordered_json json;
  json["layers"] = shape.layers;
  json["hidden"] = shape.hidden;
  json["heads"] = shape.heads;
  json["kv_heads"] = shape.kv_heads;
  json["head_width"] = shape.head_width;
  json["feed_forward"] = shape.feed_forward;
  json["sequence"] = shape.sequence;
  if (shape.position_rows > 0 && shape.position_rows != shape.sequence)
    json["position_rows"] = shape.position_rows;
  json["vocabulary"] = shape.vocabulary;
  json["gated_mlp"] = shape.gated_mlp;
  json["tied_embeddings"] = shape.tied_embeddings;
  json["learned_positions"] = shape.learned_positions;
  json["biases"] = shape.biases;
  if (!shape.qkv_biases) json["qkv_biases"] = false;
  if (!shape.proj_biases) json["proj_biases"] = false;
  if (!shape.mlp_biases) json["mlp_biases"] = false;
  if (!shape.norm_biases) json["norm_biases"] = false;
  if (shape.norms != 2) json["norms"] = shape.norms;
  if (shape.query_key_norms > 0) json["query_key_norms"] = shape.query_key_norms;
  if (shape.split_query_key_norms) json["split_query_key_norms"] = true;
  if (shape.soft_capped) json["soft_capped"] = true;
  json["attention_span"] = shape.attention_span;
  for (const OtherBlocks& other : shape.other_blocks)
    json["other_blocks"].push_back({{"blocks", {other.first, other.end}},
                                    {"hidden", other.hidden},
                                    {"heads", other.heads},
                                    {"head_width", other.head_width},
                                    {"feed_forward", other.feed_forward},
                                    {"sequence", other.sequence},
                                    {"attention_span", other.attention_span}});
  return json;
}

std::optional<double> mean(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> positive_list(const std::optional<Field>& field) {
  std::vector<double> values;
  if (field)
    for (const Field& item : field->items()) values.push_back(item.positive());
  return values;
}

MeasuredRun read_measured_run(const Document& document) {
  MapField map(Field(document), {"sailor_run", "name", "framework", "options", "platform", "precision",
                                 "family", "model", "plan", "measured"});
  require_version(map, "sailor_run", 1);
  MeasuredRun record;
  record.where = map.field().where();
  record.name = map.required("name").text();
  record.framework = map.required("framework").name();
  if (const auto options = map.optional("options"))
    for (const auto& [key, value] : options->entries()) record.options[key] = value.node().scalar;
  record.platform = map.required("platform").name();
  record.precision = read_precision(map.required("precision"));
  if (const auto family = map.optional("family")) record.family = family->name();
  const Field model = map.required("model");
  record.shape = read_transformer_shape(model);
  record.plan = read_plan(map.required("plan"));
  record.model = record.plan.model;
  MapField measured(map.required("measured"),
                    {"status", "iteration_s", "peak_memory_bytes", "memory_stage", "other_prediction_s"});
  record.ran = measured.required("status").choice({"ok", "failed"}) == 0;
  record.iteration_s = positive_list(measured.optional("iteration_s"));
  record.peak_memory_bytes = positive_list(measured.optional("peak_memory_bytes"));
  if (const auto stage = measured.optional("memory_stage"))
    record.memory_stage = stage->integer<int>(-4096, 4096);
  if (const auto other = measured.optional("other_prediction_s"))
    record.other_prediction_s = other->positive();
  for (size_t p = 0; p < record.plan.pipelines.size(); ++p)
    if (record.plan.pipelines[p].stages.back().end_layer != record.shape.num_all_layers())
      model.fail("the plan's pipeline " + std::to_string(p) + " ends at layer " +
                 std::to_string(record.plan.pipelines[p].stages.back().end_layer) + ", the model has " +
                 std::to_string(record.shape.num_all_layers()) + " layers");
  return record;
}

std::vector<MeasuredRun> load_lines(const std::string& path) {
  const std::string text = read_text_file(path);
  std::vector<MeasuredRun> records;
  size_t begin = 0;
  for (int line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    begin = end + 1;
    if (one.find_first_not_of(" \t\r") == std::string::npos) continue;
    // The leading newlines keep the line numbers in the reader's errors correct.
    records.push_back(parse_measured_run(std::string(static_cast<size_t>(line) - 1, '\n') + one, path));
  }
  return records;
}

void append(std::vector<MeasuredRun>& to, std::vector<MeasuredRun> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

std::optional<double> MeasuredRun::measured_s() const {
  return mean(iteration_s);
}

std::optional<double> MeasuredRun::measured_bytes() const {
  return mean(peak_memory_bytes);
}

MeasuredRun parse_measured_run(const std::string& json, const std::string& file_name) {
  const Document document = parse_json(json, file_name);
  return read_measured_run(document);
}

std::string to_json(const MeasuredRun& record, int indent) {
  nlohmann::ordered_json json;
  json["sailor_run"] = 1;
  json["name"] = record.name;
  json["framework"] = record.framework;
  if (!record.options.empty()) json["options"] = record.options;
  json["platform"] = record.platform;
  json["precision"] = to_string(record.precision);
  if (!record.family.empty()) json["family"] = record.family;
  json["model"] = to_json(record.shape);
  json["plan"] = nlohmann::ordered_json::parse(to_json(record.plan));
  json["measured"]["status"] = record.ran ? "ok" : "failed";
  if (!record.iteration_s.empty()) json["measured"]["iteration_s"] = record.iteration_s;
  if (!record.peak_memory_bytes.empty()) json["measured"]["peak_memory_bytes"] = record.peak_memory_bytes;
  if (record.other_prediction_s) json["measured"]["other_prediction_s"] = *record.other_prediction_s;
  if (record.memory_stage) json["measured"]["memory_stage"] = *record.memory_stage;
  return json.dump(indent) + (indent < 0 ? "" : "\n");
}

std::vector<MeasuredRun> load_measured_runs(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    if (fs::path(path).extension() == ".jsonl") return load_lines(path);
    return {parse_measured_run(read_text_file(path), path)};
  }
  std::vector<std::string> files;
  for (auto it = fs::recursive_directory_iterator(path, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error))
    if (it->path().extension() == ".json" || it->path().extension() == ".jsonl")
      files.push_back(it->path().string());
  if (error) throw InputError({path, 0}, "cannot list this directory of runs: " + error.message());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw InputError({path, 0}, "no run (*.json, *.jsonl) in this directory");
  std::vector<MeasuredRun> records;
  for (const std::string& file : files) append(records, load_measured_runs(file));
  return records;
}

}  // namespace sailor
