// sailor plan: search for the best plan, print the candidates, write the chosen one.
#include <fmt/format.h>

#include <algorithm>

#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/cli/plan_source.h"
#include "planner/cli/progress_line.h"
#include "planner/plan/plan_json.h"
#include "planner/report/candidate_table.h"
#include "planner/report/megatron_flags.h"
#include "planner/report/stage_table.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {
namespace {

constexpr const char* kMegatron = "megatron-core";  // the framework of the format `megatron`

void print_result(const PlanCommand& command, const PlanningInputs& inputs, const SearchResult& result) {
  if (print_data(command.format, command.result, result_json(inputs.context(), result))) return;
  print_notes(inputs);
  if (command.format != Format::table || result.status != SearchStatus::found) return;
  print(candidate_table(inputs.context(), result));
  print("\n" + stage_table(result.candidates[0].plan, result.candidates[0].prediction));
}

// The flags of the best plan; an exit code.
int print_megatron_flags(const PlanningInputs& inputs, const Plan& best) {
  const MegatronFlags megatron = megatron_flags(inputs.job, best);
  if (!megatron.why_not.empty()) {
    diagnose(fmt::format("{}: Megatron-LM cannot run the plan: {}", inputs.job.file, megatron.why_not));
    return kInfeasible;
  }
  for (const std::string& note : megatron.notes) diagnose("note: " + note);
  for (const std::string& flag : megatron.flags) print(flag + "\n");
  return kDone;
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
  const bool megatron = command.format == Format::megatron;
  PlanSource source = command.source;
  if (megatron) source.trainer = kMegatron;
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
  // Before the flags: who reads them may end early, and then so does this.
  if (!inputs.job.trainer.own()) compare_with_own_trainer(command, request, inputs, best);
  if (megatron) code = print_megatron_flags(inputs, best.plan);
  if (code == kDone && !command.output.empty()) write_file_atomically(command.output, to_json(best.plan));
  return code;
}

}  // namespace sailor::cli
