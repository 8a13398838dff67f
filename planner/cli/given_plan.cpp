#include "planner/cli/given_plan.h"

#include <fmt/format.h>

#include <cstdio>

#include "planner/cli/output.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/simulator/native_model.h"
#include "planner/spec/error.h"

namespace sailor::cli {
namespace {

// One line for any number of violations.
std::string first_of(const std::vector<std::string>& violations) {
  return violations.size() == 1 ? violations[0]
                                : fmt::format("{} (and {} more)", violations[0], violations.size() - 1);
}

// The place of a violation, which begins with `pipeline P, stage S:` when it is about a stage.
Where where_of(const std::string& violation, const std::string& plan_file) {
  int pipeline = -1;
  int stage = -1;
  std::sscanf(violation.c_str(), "pipeline %d, stage %d", &pipeline, &stage);
  return where_in_plan(plan_file, pipeline, stage);
}

// Throws unless every GPU type of the plan is in the catalog.
void check_types(const Plan& plan, const Catalog& catalog, const std::string& plan_file) {
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    for (size_t s = 0; s < plan.pipelines[p].stages.size(); ++s) {
      try {
        catalog.at(plan.pipelines[p].stages[s].gpu_type);
      } catch (const InputError& error) {
        throw InputError(where_in_plan(plan_file, static_cast<int>(p), static_cast<int>(s)), error.what());
      }
    }
  }
}

}  // namespace

Plan read_given_plan(const std::string& file, const PlanningInputs& inputs) {
  Plan plan = load_plan(file);
  if (auto violations = check_plan(plan, inputs.job, predictable_features()); !violations.empty())
    throw InputError(where_of(violations[0], file), first_of(violations));
  if (auto violations = check_plan(plan, inputs.job); !violations.empty())
    diagnose("note: " + file + ": " + first_of(violations));
  check_types(plan, inputs.catalog, file);
  return plan;
}

std::string beyond_cluster(const Plan& plan, const std::string& file, const Snapshot& snapshot,
                           const std::string& cluster) {
  const std::vector<std::string> violations =
      cluster.empty() ? check_placement(plan) : check_plan(plan, snapshot);
  if (violations.empty()) return "";
  return fmt::format("{}: does not fit {}: {}", where_of(violations[0], file).text(),
                     cluster.empty() ? "any cluster" : cluster, first_of(violations));
}

std::string beyond_memory(const Plan& plan, const std::string& file, const Prediction& prediction) {
  const auto excess = [](const StagePrediction& stage) {
    return std::max(stage.memory.total() - stage.capacity_bytes,
                    stage.host_bytes - stage.host_capacity_bytes);
  };
  const StagePrediction* worst = nullptr;
  int more = -1;
  for (const StagePrediction& stage : prediction.stages) {
    if (excess(stage) <= 0) continue;
    ++more;
    if (worst == nullptr || excess(stage) > excess(*worst)) worst = &stage;
  }
  if (worst == nullptr) return "";
  const auto gib = [](int64_t bytes) { return static_cast<double>(bytes) / (int64_t{1} << 30); };
  const bool on_gpu = worst->memory.total() > worst->capacity_bytes;
  const std::string& gpu_type = plan.pipelines.at(static_cast<size_t>(worst->pipeline))
                                    .stages.at(static_cast<size_t>(worst->stage))
                                    .gpu_type;
  return fmt::format(
      "{}: does not fit into memory: pipeline {}, stage {} needs {:.2f} GiB {}, {} has {:.2f}{}",
      where_in_plan(file, worst->pipeline, worst->stage).text(), worst->pipeline, worst->stage,
      gib(on_gpu ? worst->memory.total() : worst->host_bytes),
      on_gpu ? "on each GPU" : "of its node for each GPU, with what it offloads",
      on_gpu ? gpu_type : "a node of " + gpu_type,
      gib(on_gpu ? worst->capacity_bytes : worst->host_capacity_bytes),
      more > 0 ? fmt::format(" (and {} more stage{})", more, more == 1 ? "" : "s") : "");
}

Prediction predict_given_plan(const PlanningInputs& inputs, const Plan& plan, CostModel model,
                              const std::string& file, std::vector<Timeline>* timelines) {
  try {
    if (timelines != nullptr) return native::simulate(inputs.context(), plan, *timelines);
    return simulate(inputs.context(), plan, model);
  } catch (const InputError& error) {
    throw InputError(where_in_plan(file, -1, -1), error.what());
  }
}

}  // namespace sailor::cli
