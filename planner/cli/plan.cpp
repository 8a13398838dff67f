// sailor plan: search for the best plan, print the candidates, write the chosen one.
#include <fmt/format.h>

#include <algorithm>

#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/cli/plan_source.h"
#include "planner/cli/progress_line.h"
#include "planner/plan/plan_json.h"
#include "planner/report/candidate_table.h"
#include "planner/report/framework_config.h"
#include "planner/report/stage_table.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {
namespace {

void print_result(const PlanCommand& command, const PlanningInputs& inputs, const SearchResult& result) {
  if (print_data(command.format, command.result, result_json(inputs.context(), result))) return;
  print_notes(inputs);
  if (command.format != Format::table || result.status != SearchStatus::found) return;
  print(candidate_table(inputs.context(), result));
  print("\n" + stage_table(result.candidates[0].plan, result.candidates[0].prediction));
}

// The best plan as the configuration of a framework; an exit code.
int print_config(const ConfigFormat& format, const PlanningInputs& inputs, const Plan& best) {
  const FrameworkConfig config = format.emit(inputs.job, best);
  if (!config.why_not.empty()) {
    diagnose(
        fmt::format("{}: {} cannot run the plan: {}", inputs.job.file, format.framework, config.why_not));
    return kInfeasible;
  }
  for (const std::string& note : config.notes) diagnose("note: " + note);
  print(config.text);
  return kDone;
}

// The trainer to plan for: as asked for or as in the job, if the format is for it.
std::string trainer_of(const PlanSource& source, const ConfigFormat& format) {
  if (!source.trainer.empty()) return format.trainer_for(source.trainer == kOwnTrainer ? "" : source.trainer);
  if (source.job.empty()) return format.trainer_for("");
  const std::string kind = load_job_spec(source.job).trainer.kind;
  const std::string trainer = format.trainer_for(kind);
  return trainer == kind ? "" : trainer;  // with the job's own description of its framework
}

// What another trainer's limits cost: the best plan of Sailor's own on the same nodes.
void compare_with_own_trainer(const PlanCommand& command, const SearchRequest& request,
                              const PlanningInputs& inputs, const Candidate& best) {
  PlanSource source = command.source;
  source.trainer = kOwnTrainer;
  const PlanningInputs own = read_inputs(source);
  const SearchResult result = search(own.context(), plan_options(request, own.site));
  if (result.candidates.empty()) return;
  const Prediction& prediction = result.candidates[0].prediction;
  diagnose(
      fmt::format("note: this is the best plan for {}; Sailor's own trainer, which runs unlike pipelines and "
                  "TP degrees, would take {:.4g} s and {:.4g} USD per iteration ({:+.1f} % time)",
                  inputs.job.trainer.kind, prediction.iteration_s, prediction.usd_per_iteration(),
                  100 * (prediction.iteration_s / best.prediction.iteration_s - 1)));
}

}  // namespace

int run_plan(const PlanCommand& command) {
  const ConfigFormat* format =
      command.format == Format::framework ? find_config_format(command.framework) : nullptr;
  PlanSource source = command.source;
  if (format != nullptr) source.trainer = trainer_of(source, *format);
  const PlanningInputs inputs = read_inputs(source);
  SearchRequest request = request_of(source);
  request.candidates = command.top;
  if (!command.previous.empty()) request.previous = load_candidates(command.previous);
  const PlanOptions options = plan_options(request, inputs.site);

  SearchResult result = [&] {
    const WaitingLine line("plan: searching", options.time_limit_s, source.quiet);
    return search(inputs.context(), options);
  }();
  keep_first(result, request.candidates);
  print_result(command, inputs, result);
  int code = exit_code(source, result.status, result.reason);
  if (code != kDone) return code;
  const Candidate& best = result.candidates[0];
  // Before the configuration: who reads it may end early, and then so does this.
  if (!inputs.job.trainer.own()) compare_with_own_trainer(command, request, inputs, best);
  if (format != nullptr) code = print_config(*format, inputs, best.plan);
  if (code == kDone && !command.output.empty()) write_file_atomically(command.output, to_json(best.plan));
  return code;
}

}  // namespace sailor::cli
