// sailor report: a run as one page, from the files of its directory, the inputs of its planning among them.
#include <fmt/format.h>

#include <memory>

#include "planner/cli/cluster_source.h"
#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/cli/pictures.h"
#include "planner/cli/run_source.h"
#include "planner/history/find_run.h"
#include "planner/inputs/load_inputs.h"
#include "planner/inputs/planning_record.h"
#include "planner/inputs/search_request.h"
#include "planner/plan/plan_nodes.h"
#include "planner/plan/validate.h"
#include "planner/report/run_report.h"
#include "planner/scheduler/scheduler.h"
#include "planner/simulator/native_model.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {
namespace {

constexpr int kFrontPoints = 8;

// The inputs of the run's planning, on the cluster that was given or else on the plan's own nodes; nothing,
// and a note, when they are not there any more.
std::unique_ptr<PlanningInputs> inputs_of(const ReportCommand& command, const RunHistory& history,
                                          std::vector<std::string>& notes) {
  try {
    JobSpec job = load_job_spec(history.directory + "/job.yaml");
    PlanOverrides overrides;
    if (const std::string planning = planning_of(history.directory); !planning.empty())
      overrides = load_planning_options(planning + "/options.yaml").overrides;
    // They were obeyed when the nodes were chosen, and plans do not say which partition a node is in.
    if (command.cluster.empty()) {
      job.resources.partitions.clear();
      overrides.partitions.clear();
    }
    const std::string config = config_of_run(history.directory, command.config);
    return std::make_unique<PlanningInputs>(
        load_inputs(std::move(job), site_or_default(config), overrides, [&](const SiteConfig& site) {
          if (!command.cluster.empty()) return load_snapshot(command.cluster);
          Snapshot snapshot = nodes_of_plan(history.plan);
          set_regions(snapshot, site);
          return snapshot;
        }));
  } catch (const InputError& error) {
    notes.push_back(fmt::format("No prediction, no timeline and no other plans: {}", error.what()));
    return nullptr;
  }
}

std::unique_ptr<PlanOutlook> prediction_of(const ReportCommand& command, const RunHistory& history,
                                           const PlanningInputs& inputs, std::vector<std::string>& notes) {
  auto out = std::make_unique<PlanOutlook>();
  try {
    if (auto wrong = check_plan(history.plan, inputs.job, predictable_features()); !wrong.empty())
      throw InputError("the plan does not fit job.yaml: " + wrong.front());
    if (can_draw(history.plan))
      out->prediction = native::simulate(inputs.context(), history.plan, out->timelines);
    else
      out->prediction = native::simulate(inputs.context(), history.plan);
  } catch (const InputError& error) {
    notes.push_back(fmt::format("No prediction, no timeline and no other plans: {}", error.what()));
    return nullptr;
  }
  const PlanOptions options = plan_options({}, inputs.site);
  try {
    out->front = pareto(inputs.context(), options, kFrontPoints, options.time_limit_s * kFrontPoints / 2);
    out->front_of = command.cluster.empty() ? "the run's own nodes" : "the nodes of " + command.cluster;
  } catch (const InputError& error) {
    notes.push_back(fmt::format("No other plans: {}", error.what()));
  }
  return out;
}

}  // namespace

int run_report(const ReportCommand& command) {
  const std::string directory = find_run(command.run, own_job_id(site_scheduler()), "sailor report");
  const RunHistory history = read_run_history(directory);
  std::vector<std::string> notes;
  const std::unique_ptr<PlanningInputs> inputs = inputs_of(command, history, notes);
  std::unique_ptr<PlanOutlook> predicted;
  if (inputs) {
    notes.insert(notes.end(), inputs->notes.begin(), inputs->notes.end());
    predicted = prediction_of(command, history, *inputs, notes);
  }
  const std::string out = command.out.empty() ? directory + "/report.html" : command.out;
  if (predicted) {
    const PlanningContext context = inputs->context();
    write_file_atomically(out, sailor::run_report(history, &context, predicted.get(), notes));
  } else {
    write_file_atomically(out, sailor::run_report(history, nullptr, nullptr, notes));
  }
  if (out != "/dev/stdout") print(out + "\n");
  return kDone;
}

}  // namespace sailor::cli
