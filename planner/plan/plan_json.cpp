#include "planner/plan/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/spec/field.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

constexpr int kMostGpus = 4096;            // of a replica, and of a node
constexpr int kMostSequences = 1'000'000;  // of a microbatch

// A level for all blocks, or {LEVEL: number of the first blocks, "rest": level of the others}.
StageRecompute read_stage_recompute(const Field& field) {
  if (field.node().kind != DocumentNode::Kind::map) return read_recompute(field);
  MapField map(field, {"light", "mlp", "full", "offload", "rest"});
  const auto rest = map.optional("rest");
  const Recompute level = rest ? read_recompute(*rest) : Recompute::none;
  std::optional<StageRecompute> out;
  for (const Recompute deep : std::span(kTrainedLevels).subspan(1)) {
    const auto blocks = map.optional(to_string(deep));
    if (!blocks) continue;
    if (out) blocks->fail("only one level has a number of blocks; \"rest\" is that of the others");
    if (deep <= level)
      blocks->fail(fmt::format("must be above the level of the other blocks, \"{}\"", to_string(level)));
    out.emplace(deep, blocks->integer<int>(1, 1'000'000), level);
  }
  if (!out) field.fail("needs a number of blocks: \"light\", \"mlp\", \"full\" or \"offload\"");
  return *out;
}

PlanStage read_stage(const Field& field) {
  MapField map(field, {"layers", "gpu_type", "zone", "tp", "cp", "recompute", "weight_delay", "offload",
                       "node", "gpus"});
  PlanStage stage;
  Field layers = map.required("layers");
  std::vector<Field> range = layers.items();
  if (range.size() != 2) layers.fail("must be [FIRST, END], a half-open range of layer indices");
  stage.first_layer = range[0].integer<int>(0, 1'000'000);
  stage.end_layer = range[1].integer<int>(0, 1'000'000);
  if (stage.end_layer <= stage.first_layer) {
    layers.fail(fmt::format("the range [{}, {}] is empty, END must be above FIRST", stage.first_layer,
                            stage.end_layer));
  }
  stage.gpu_type = map.required("gpu_type").name();
  stage.zone = map.required("zone").name();
  stage.shape.tp = map.required("tp").integer<int>(1, kMostGpus);
  if (auto cp = map.optional("cp")) stage.shape.cp = cp->integer<int>(1, kMostGpus);
  if (auto recompute = map.optional("recompute")) stage.recompute = read_stage_recompute(*recompute);
  if (auto delay = map.optional("weight_delay")) stage.weight_delay = delay->integer<int>(0, 1'000'000);
  if (auto offload = map.optional("offload")) stage.offload = read_offload(*offload);
  if (auto node = map.optional("node")) stage.node = node->name();
  if (auto gpus = map.optional("gpus")) {
    for (const Field& gpu : gpus->items()) stage.gpus.push_back(gpu.integer<int>(0, kMostGpus));
    if (stage.node.empty()) gpus->fail("a stage with the key \"gpus\" needs the key \"node\" too");
    if (static_cast<int>(stage.gpus.size()) != stage.shape.gpus()) {
      gpus->fail(fmt::format("{} GPUs for {}", stage.gpus.size(), degrees_text(stage.shape)));
    }
  } else if (!stage.node.empty()) {
    map.fail("a stage with the key \"node\" needs the key \"gpus\" too");
  }
  return stage;
}

PlanPipeline read_pipeline(const Field& field) {
  MapField map(field, {"microbatches", "microbatch", "stages"});
  PlanPipeline pipeline;
  if (auto size = map.optional("microbatch")) pipeline.microbatch = size->integer<int>(1, kMostSequences);
  pipeline.microbatches = map.required("microbatches").integer<int>(1, 1'000'000'000);
  Field stages = map.required("stages");
  for (const Field& stage : stages.items()) {
    PlanStage next = read_stage(stage);
    int expected = pipeline.stages.empty() ? 0 : pipeline.stages.back().end_layer;
    if (next.first_layer != expected) {
      stage.fail(fmt::format(
          "begins at layer {}, but layer {} is next: every layer must be covered once and in order",
          next.first_layer, expected));
    }
    pipeline.stages.push_back(std::move(next));
  }
  if (pipeline.stages.empty()) stages.fail("a pipeline needs at least one stage");
  return pipeline;
}

Zero read_sharding(const MapField& plan) {
  const auto flag = plan.optional("zero1"), degree = plan.optional("zero");
  if (flag && degree) degree->fail("\"zero1\" sets this already, remove one of the two");
  if (degree) return read_zero(*degree);
  return flag && flag->boolean() ? Zero::optimizer : Zero::none;
}

int read_zero_group(const Plan& plan, const Field& field) {
  const auto pipelines = static_cast<int>(plan.pipelines.size());
  const int group = field.integer<int>(1, pipelines);
  if (plan.zero == Zero::none)
    field.fail("only what ZeRO shards has copies: set \"zero\" too, or remove this");
  if (pipelines % group != 0)
    field.fail(fmt::format("{} pipelines cannot form groups of {}: use a divisor", pipelines, group));
  return group == pipelines ? 0 : group;
}

PlanPrediction read_prediction(const Field& field) {
  // Tools may add their own values here: unknown keys are ignored.
  PlanPrediction prediction;
  for (const auto& [key, value] : field.entries()) {
    if (value.node().kind == DocumentNode::Kind::null) continue;
    if (key == "iteration_s") prediction.iteration_s = value.non_negative();
    if (key == "bound_iteration_s") prediction.bound_iteration_s = value.non_negative();
    for (const Expense expense : kExpenses) {
      if (key == kind_of(expense).per_iteration_key) prediction.spent[expense] = value.non_negative();
      if (key == bound_key(expense)) prediction.bound[expense] = value.non_negative();
    }
    if (key == "peak_memory_bytes") prediction.peak_memory_bytes = value.integer<int64_t>(0, INT64_MAX);
  }
  return prediction;
}

nlohmann::ordered_json recompute_json(const StageRecompute& recompute) {
  if (recompute.deep_blocks() == 0) return to_string(recompute.level());
  nlohmann::ordered_json json;
  json[to_string(recompute.deep())] = recompute.deep_blocks();
  if (recompute.level() != Recompute::none) json["rest"] = to_string(recompute.level());
  return json;
}

nlohmann::ordered_json stage_json(const PlanStage& stage) {
  nlohmann::ordered_json json;
  json["layers"] = {stage.first_layer, stage.end_layer};
  json["gpu_type"] = stage.gpu_type;
  json["zone"] = stage.zone;
  json["tp"] = stage.shape.tp;
  if (stage.shape.cp > 1) json["cp"] = stage.shape.cp;
  json["recompute"] = recompute_json(stage.recompute);
  if (stage.weight_delay != kWholeBackward) json["weight_delay"] = stage.weight_delay;
  if (offloads_optimizer(stage)) json["offload"] = to_string(stage.offload);
  if (!stage.node.empty()) {
    json["node"] = stage.node;
    json["gpus"] = stage.gpus;
  }
  return json;
}

}  // namespace

Plan read_plan(const Field& field) {
  MapField map(field, {"sailor_plan", "model", "global_batch", "microbatch", "pipelines", "zero1", "zero",
                       "zero_group", "interleave", "sequence_parallel", "precision", "prediction"});
  require_version(map, "sailor_plan", 1);
  Plan plan;
  plan.model = map.required("model").text();
  plan.global_batch = map.required("global_batch").integer<int64_t>(1, 1'000'000'000'000);
  plan.microbatch = map.required("microbatch").integer<int>(1, kMostSequences);
  Field pipelines = map.required("pipelines");
  for (const Field& pipeline : pipelines.items()) plan.pipelines.push_back(read_pipeline(pipeline));
  if (plan.pipelines.empty()) pipelines.fail("a plan needs at least one pipeline");
  // A size that all have is the plan's.
  if (const std::set<int> sizes = microbatch_sizes(plan); sizes.size() == 1) plan.microbatch = *sizes.begin();
  for (PlanPipeline& pipeline : plan.pipelines)
    if (pipeline.microbatch == plan.microbatch) pipeline.microbatch.reset();
  plan.zero = read_sharding(map);
  if (auto group = map.optional("zero_group")) plan.zero_group = read_zero_group(plan, *group);
  if (auto interleave = map.optional("interleave")) plan.interleave = interleave->integer<int>(1, 1024);
  if (auto split = map.optional("sequence_parallel")) plan.sequence_parallel = split->boolean();
  if (auto precision = map.optional("precision")) plan.precision = read_precision(*precision);
  if (auto prediction = map.optional("prediction")) plan.prediction = read_prediction(*prediction);
  return plan;
}

Plan parse_plan(const std::string& json, const std::string& file_name) {
  Document document = parse_json(json, file_name);
  return read_plan(Field(document));
}

Plan load_plan(const std::string& path) {
  return parse_plan(read_text_file(path), path);
}

std::vector<Plan> load_candidates(const std::string& path) {
  Document document = parse_json(read_text_file(path), path);
  if (document.root.find("sailor_plan_result") == nullptr) return {read_plan(Field(document))};
  std::vector<Plan> plans;
  for (const auto& [key, value] : Field(document).entries()) {
    if (key != "candidates") continue;
    for (const Field& candidate : value.items()) {
      for (const auto& [part, plan] : candidate.entries())
        if (part == "plan") plans.push_back(read_plan(plan));
    }
  }
  if (plans.empty()) Field(document).fail("this result has no plan: the search found none");
  return plans;
}

Where where_in_plan(const std::string& path, int pipeline, int stage) {
  try {
    Document document = parse_json(read_text_file(path), path);
    const DocumentNode* node = document.root.find("pipelines");
    if (node == nullptr) return {path, document.root.line};
    if (pipeline < 0 || pipeline >= static_cast<int>(node->children.size())) return {path, node->line};
    const DocumentNode& one = node->children[static_cast<size_t>(pipeline)].node;
    const DocumentNode* stages = one.find("stages");
    if (stages == nullptr || stage < 0 || stage >= static_cast<int>(stages->children.size()))
      return {path, one.line};
    return {path, stages->children[static_cast<size_t>(stage)].node.line};
  } catch (const InputError&) {
    return {path, 0};
  }
}

std::string to_json(const Plan& plan, int indent) {
  nlohmann::ordered_json json;
  json["sailor_plan"] = 1;
  json["model"] = plan.model;
  json["global_batch"] = plan.global_batch;
  json["microbatch"] = plan.microbatch;
  json["pipelines"] = nlohmann::ordered_json::array();
  for (const PlanPipeline& pipeline : plan.pipelines) {
    nlohmann::ordered_json one;
    one["microbatches"] = pipeline.microbatches;
    if (pipeline.microbatch) one["microbatch"] = *pipeline.microbatch;
    one["stages"] = nlohmann::ordered_json::array();
    for (const PlanStage& stage : pipeline.stages) one["stages"].push_back(stage_json(stage));
    json["pipelines"].push_back(std::move(one));
  }
  if (plan.zero <= Zero::optimizer)
    json["zero1"] = plan.zero == Zero::optimizer;
  else
    json["zero"] = to_string(plan.zero);
  if (plan.zero_group > 0) json["zero_group"] = plan.zero_group;
  json["interleave"] = plan.interleave;
  if (plan.sequence_parallel) json["sequence_parallel"] = true;
  if (plan.precision) json["precision"] = to_string(*plan.precision);
  if (plan.prediction) {
    const PlanPrediction& prediction = *plan.prediction;
    nlohmann::ordered_json& out = json["prediction"];
    out["iteration_s"] = prediction.iteration_s;
    for (const Expense expense : kExpenses)
      if (is_told(expense, prediction.spent[expense] > 0))
        out[kind_of(expense).per_iteration_key] = prediction.spent[expense];
    if (prediction.bound_iteration_s) out["bound_iteration_s"] = *prediction.bound_iteration_s;
    for (const Expense expense : kExpenses)
      if (prediction.bound[expense]) out[bound_key(expense)] = *prediction.bound[expense];
    out["peak_memory_bytes"] = prediction.peak_memory_bytes;
  }
  return json.dump(indent) + (indent < 0 ? "" : "\n");
}

}  // namespace sailor
