#include "planner/spec/job_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

constexpr int kMaxLayers = 1024;  // the search's tables are quadratic in it
constexpr int kMaxWidth = 10'000'000;
constexpr int64_t kMaxCount = 1'000'000'000'000;

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> names = {"fp32", "fp64", "bf16"};
  return names;
}

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names = {"throughput", "cost"};
  return names;
}

// Families are files of the trainer and become parts of names: plain identifiers.
std::string read_family(const Field& field) {
  std::string family = field.text();
  bool good = family.size() <= 64 && std::all_of(family.begin(), family.end(), [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
              });
  if (!good) field.fail_type("a name of letters, digits, \"-\" and \"_\"");
  return family;
}

ModelSpec read_model(const Field& field) {
  MapField map(field, {"name", "family", "layers", "hidden", "heads", "feed_forward", "sequence",
                       "vocabulary", "from"});
  if (auto from = map.optional("from")) {
    from->fail(
        "reading a model's shape from a directory is not supported by this version, write family, layers, "
        "hidden, "
        "heads, sequence and vocabulary");
  }
  ModelSpec model;
  model.family = read_family(map.required("family"));
  model.layers = map.required("layers").integer<int>(1, kMaxLayers);
  model.hidden = map.required("hidden").integer<int>(1, kMaxWidth);
  Field heads = map.required("heads");
  model.heads = heads.integer<int>(1, kMaxWidth);
  if (model.hidden % model.heads != 0) {
    heads.fail(fmt::format("hidden ({}) must be a multiple of heads ({})", model.hidden, model.heads));
  }
  model.feed_forward = 4 * model.hidden;
  if (auto width = map.optional("feed_forward")) model.feed_forward = width->integer<int>(1, 4 * kMaxWidth);
  model.sequence = map.required("sequence").integer<int>(1, 100'000'000);
  model.vocabulary = map.required("vocabulary").integer<int>(1, 100'000'000);
  model.name = fmt::format("{}-{}x{}", model.family, model.layers, model.hidden);
  if (auto name = map.optional("name")) model.name = name->name();
  return model;
}

OptimizerSpec read_optimizer(const Field& field) {
  MapField map(field, {"name", "lr", "weight_decay", "beta1", "beta2", "epsilon"});
  OptimizerSpec optimizer;
  if (auto name = map.optional("name")) {
    name->choice({"adamw"});
    optimizer.name = name->text();
  }
  if (auto lr = map.optional("lr")) optimizer.lr = lr->positive();
  if (auto decay = map.optional("weight_decay")) optimizer.weight_decay = decay->non_negative();
  auto beta = [&](const char* key, double& target) {
    auto value = map.optional(key);
    if (!value) return;
    target = value->number(0, 1);
    if (target == 1) value->fail("must be below 1");
  };
  beta("beta1", optimizer.beta1);
  beta("beta2", optimizer.beta2);
  if (auto epsilon = map.optional("epsilon")) optimizer.epsilon = epsilon->positive();
  return optimizer;
}

TrainingSpec read_training(const Field& field) {
  MapField map(field, {"global_batch", "precision", "steps", "seed", "optimizer"});
  TrainingSpec training;
  training.global_batch = map.required("global_batch").integer<int64_t>(1, 1'000'000'000);
  if (auto precision = map.optional("precision")) {
    training.precision = static_cast<Precision>(precision->choice(precision_names()));
  }
  training.steps = map.required("steps").integer<int64_t>(1, kMaxCount);
  if (auto seed = map.optional("seed"))
    training.seed = static_cast<uint64_t>(seed->integer<int64_t>(0, INT64_MAX));
  if (auto optimizer = map.optional("optimizer")) training.optimizer = read_optimizer(*optimizer);
  return training;
}

DataSpec read_data(const Field& field) {
  MapField map(field, {"train", "format", "validation"});
  DataSpec data;
  data.train = map.required("train").text();
  if (auto format = map.optional("format")) {
    format->choice({"nanogpt", "bytes"});
    data.format = format->text();
  }
  if (auto validation = map.optional("validation")) data.validation = validation->text();
  return data;
}

std::vector<std::string> read_names(const Field& field) {
  std::vector<std::string> names;
  for (const Field& item : field.items()) {
    names.push_back(item.name());
    if (std::count(names.begin(), names.end(), names.back()) > 1)
      item.fail(in_quotes(names.back()) + " stands twice");
  }
  if (names.empty()) field.fail("an empty list allows nothing, leave the key out to allow all");
  return names;
}

ResourceSpec read_resources(const Field& field) {
  MapField map(field, {"max_gpus", "zones", "partitions"});
  ResourceSpec resources;
  if (auto limits = map.optional("max_gpus")) {
    for (const auto& [type, limit] : limits->entries())
      resources.max_gpus[type] = limit.integer<int>(0, 100'000'000);
  }
  if (auto zones = map.optional("zones")) resources.zones = read_names(*zones);
  if (auto partitions = map.optional("partitions")) resources.partitions = read_names(*partitions);
  return resources;
}

ConstraintSpec read_constraints(const Field& field) {
  MapField map(field, {"max_usd_per_iteration", "min_iterations_per_s"});
  ConstraintSpec constraints;
  if (auto cost = map.optional("max_usd_per_iteration")) {
    constraints.max_usd_per_iteration = cost->usd();
    if (!(*constraints.max_usd_per_iteration > 0)) cost->fail("must be above 0");
  }
  if (auto rate = map.optional("min_iterations_per_s")) constraints.min_iterations_per_s = rate->positive();
  return constraints;
}

CheckpointSpec read_checkpoint(const Field& field) {
  MapField map(field, {"directory", "every_steps", "keep"});
  CheckpointSpec checkpoint;
  checkpoint.directory = map.required("directory").text();
  if (auto every = map.optional("every_steps"))
    checkpoint.every_steps = every->integer<int64_t>(0, kMaxCount);
  if (auto keep = map.optional("keep")) checkpoint.keep = keep->integer<int>(1, 1'000'000);
  return checkpoint;
}

void collect_lines(const DocumentNode& node, const std::string& path, std::map<std::string, int>& lines) {
  for (size_t i = 0; i < node.children.size(); ++i) {
    const DocumentEntry& entry = node.children[i];
    std::string child = node.kind == DocumentNode::Kind::sequence
                            ? fmt::format("{}[{}]", path, i)
                            : path + (path.empty() ? "" : ".") + entry.key;
    lines[child] = node.kind == DocumentNode::Kind::map ? entry.key_line : entry.node.line;
    collect_lines(entry.node, child, lines);
  }
}

}  // namespace

JobSpec parse_job_spec(const std::string& yaml, const std::string& file_name) {
  Document document = parse_yaml(yaml, file_name);
  MapField map(Field(document), {"model", "training", "data", "resources", "objective", "constraints",
                                 "checkpoint", "elastic"});
  JobSpec job;
  job.file = file_name;
  job.model = read_model(map.required("model"));
  job.training = read_training(map.required("training"));
  if (auto data = map.optional("data")) job.data = read_data(*data);
  if (auto resources = map.optional("resources")) job.resources = read_resources(*resources);
  if (auto objective = map.optional("objective")) {
    job.objective = static_cast<Objective>(objective->choice(objective_names()));
    job.objective_given = true;
  }
  if (auto constraints = map.optional("constraints")) job.constraints = read_constraints(*constraints);
  if (auto checkpoint = map.optional("checkpoint")) job.checkpoint = read_checkpoint(*checkpoint);
  if (auto elastic = map.optional("elastic")) {
    MapField inner(*elastic, {"enabled"});
    job.elastic.enabled = inner.required("enabled").boolean();
  }
  collect_lines(document.root, "", job.lines);
  return job;
}

JobSpec load_job_spec(const std::string& path) {
  return parse_job_spec(read_text_file(path), path);
}

Where JobSpec::where(const std::string& key) const {
  auto it = lines.find(key);
  return {file, it == lines.end() ? 0 : it->second};
}

const char* to_string(Precision precision) {
  return precision_names()[static_cast<size_t>(precision)].c_str();
}
const char* to_string(Objective objective) {
  return objective_names()[static_cast<size_t>(objective)].c_str();
}

Objective parse_objective(const std::string& text) {
  const auto& names = objective_names();
  auto it = std::find(names.begin(), names.end(), text);
  if (it == names.end()) {
    throw InputError("objective: must be " + alternatives(names) + ", is " + in_quotes(text) +
                     did_you_mean(text, names));
  }
  return static_cast<Objective>(it - names.begin());
}

int element_bytes(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return 4;
    case Precision::fp64:
      return 8;
    case Precision::bf16:
      return 2;
  }
  return 4;
}

}  // namespace sailor
