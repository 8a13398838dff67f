// sailor simulate: what one given plan would do.
#include <fmt/format.h>

#include <set>

#include "planner/cli/cluster_source.h"
#include "planner/cli/commands.h"
#include "planner/cli/given_plan.h"
#include "planner/cli/output.h"
#include "planner/cli/pictures.h"
#include "planner/cli/run_source.h"
#include "planner/inputs/load_inputs.h"
#include "planner/report/candidate_table.h"
#include "planner/report/memory_table.h"
#include "planner/report/stage_table.h"
#include "planner/spec/error.h"

namespace sailor::cli {
namespace {

// The inputs' own, and which layer times of this plan's GPU types are estimates.
std::vector<std::string> notes_of(const PlanningInputs& inputs, const Plan& plan) {
  std::set<std::string> types = gpu_types_of(plan);
  std::vector<std::string> notes = inputs.notes;
  for (const SnapshotNode& node : inputs.snapshot.nodes)
    if (!node.free_gpus.empty()) types.erase(node.gpu_type);
  if (std::string note = estimates_note(inputs.profiles, inputs.job, types); !note.empty())
    notes.push_back(std::move(note));
  return notes;
}

}  // namespace

int run_simulate(const SimulateCommand& given) {
  const SimulateCommand command = given.run.empty() ? given : about_run(given);
  CostModel model = parse_cost_model(command.cost_model);
  JobSpec job = load_job_spec(command.job);
  PlanningInputs inputs = load_inputs(
      std::move(job), site_or_default(command.config), {},
      [&](const SiteConfig&) {
        return command.cluster.empty() ? Snapshot{} : load_snapshot(command.cluster);
      },
      gpu_types_of(load_plan(command.plan)));
  const Plan plan = read_given_plan(command.plan, inputs);
  const bool with_pictures = wants_pictures(command);
  if (with_pictures) check_pictures(command, plan, model);
  std::vector<Timeline> timelines;
  Candidate candidate{
      plan, predict_given_plan(inputs, plan, model, command.plan, with_pictures ? &timelines : nullptr)};
  std::vector<std::string> notes = notes_of(inputs, plan);
  std::vector<std::string> errors = {beyond_cluster(plan, command.plan, inputs.snapshot, command.cluster),
                                     beyond_memory(plan, command.plan, candidate.prediction)};
  std::erase(errors, "");
  SearchResult result;
  result.status = SearchStatus::found;
  result.cost_model = model;
  result.candidates.push_back(candidate);
  if (!print_data(command.format, command.result, result_json(inputs.context(), result))) {
    for (const std::string& note : notes) diagnose("note: " + note);
    print(summary(plan) + "\n\n" + stage_table(plan, candidate.prediction) + "\n" +
          memory_table(plan, candidate.prediction));
  }
  notes.insert(notes.end(), errors.begin(), errors.end());
  if (with_pictures) write_pictures(command, plan, candidate.prediction, timelines, notes);
  // A plan for another cluster is predicted too: the prediction comes first, then the errors.
  for (const std::string& error : errors) diagnose(error);
  return errors.empty() ? kDone : kInfeasible;
}

}  // namespace sailor::cli
