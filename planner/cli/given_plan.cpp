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

Plan read_given_plan(const std::string& file, const PlanningInputs& inputs, const std::string& cluster) {
  Plan plan = load_plan(file);
  if (auto violations = check_plan(plan, inputs.job, predictable_features()); !violations.empty())
    throw InputError(where_of(violations[0], file), first_of(violations));
  if (auto violations = check_plan(plan, inputs.job); !violations.empty())
    diagnose("note: " + file + ": " + first_of(violations));
  check_types(plan, inputs.catalog, file);
  // A plan for another day's cluster can be asked about all the same.
  if (cluster.empty()) return plan;
  if (auto violations = check_plan(plan, inputs.snapshot); !violations.empty())
    diagnose("note: " + file + " does not fit " + cluster + ": " + first_of(violations));
  return plan;
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
