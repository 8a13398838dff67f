// sailor simulate: what one given plan would do.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "planner/cli/cluster_source.h"
#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/cli/pictures.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/report/candidate_table.h"
#include "planner/report/memory_table.h"
#include "planner/search/load_inputs.h"
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

// What the profiles cannot answer is the plan's error here: it asks for a cell or a link that was not
// measured. With `timelines`, only by the native cost model.
Prediction predict(const PlanningInputs& inputs, const Plan& plan, CostModel model,
                   const std::string& plan_file, std::vector<Timeline>* timelines) {
  try {
    if (timelines != nullptr) return native::simulate(inputs.context(), plan, *timelines);
    return simulate(inputs.context(), plan, model);
  } catch (const InputError& error) {
    throw InputError(where_in_plan(plan_file, -1, -1), error.what());
  }
}

// The inputs' own, and which layer times of this plan's GPU types are estimates.
std::vector<std::string> notes_of(const PlanningInputs& inputs, const Plan& plan) {
  std::set<std::string> types;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) types.insert(stage.gpu_type);
  std::vector<std::string> notes = inputs.notes;
  for (const auto& [type, note] : inputs.profiles.estimates)
    if (types.contains(type) && std::find(notes.begin(), notes.end(), note) == notes.end())
      notes.push_back(note);
  return notes;
}

}  // namespace

int run_simulate(const SimulateCommand& command) {
  CostModel model = parse_cost_model(command.cost_model);
  Plan plan = load_plan(command.plan);
  PlanningInputs inputs =
      load_inputs(command.job, config_or_default(command.config), {}, [&](const SiteConfig&) {
        return command.cluster.empty() ? Snapshot{} : load_snapshot(command.cluster);
      });
  if (auto violations = check_plan(plan, inputs.job, predictable_features()); !violations.empty()) {
    throw InputError(where_of(violations[0], command.plan), first_of(violations));
  }
  if (auto violations = check_plan(plan, inputs.job); !violations.empty())
    diagnose("note: " + command.plan + ": " + first_of(violations));
  check_types(plan, inputs.catalog, command.plan);
  // A plan for another day's cluster can be asked about all the same.
  if (!command.cluster.empty()) {
    if (auto violations = check_plan(plan, inputs.snapshot); !violations.empty()) {
      diagnose("note: " + command.plan + " does not fit " + command.cluster + ": " + first_of(violations));
    }
  }
  const bool with_pictures = wants_pictures(command);
  if (with_pictures) check_pictures(command, plan, model);
  std::vector<Timeline> timelines;
  Candidate candidate{plan, predict(inputs, plan, model, command.plan, with_pictures ? &timelines : nullptr)};
  std::vector<std::string> notes = notes_of(inputs, plan);
  if (!candidate.prediction.fits)
    notes.push_back(command.plan + ": does not fit into the memory of its GPUs");
  SearchResult result;
  result.status = SearchStatus::found;
  result.cost_model = model;
  result.candidates.push_back(candidate);
  switch (command.format) {
    case Format::json:
      print(result_json(inputs.context(), result));
      break;
    case Format::yaml:
      print(json_to_yaml(result_json(inputs.context(), result)));
      break;
    case Format::table:
      for (const std::string& note : notes) diagnose("note: " + note);
      print(summary(plan) + "\n\n" + stage_table(plan, candidate.prediction) + "\n" +
            memory_table(plan, candidate.prediction));
      break;
    case Format::csv:
      break;  // not offered
  }
  if (with_pictures) write_pictures(command, plan, candidate.prediction, timelines, notes);
  return kDone;
}

}  // namespace sailor::cli
