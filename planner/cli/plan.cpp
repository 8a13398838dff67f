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

// Enough candidates to include one that Megatron-LM can run, if there is any that is nearly as good.
constexpr int kMegatronCandidates = 64;

void print_result(const PlanCommand& command, const PlanningInputs& inputs, const SearchResult& result) {
  switch (command.format) {
    case Format::json:
      print(result_json(inputs.context(), result));
      break;
    case Format::yaml:
      print(json_to_yaml(result_json(inputs.context(), result)));
      break;
    case Format::table:
      print_notes(inputs);
      if (result.status != SearchStatus::found) break;
      print(candidate_table(inputs.context(), result));
      print("\n" + stage_table(result.candidates[0].plan, result.candidates[0].prediction));
      break;
    default:
      break;  // megatron: print_megatron_flags()
  }
}

// The flags of the best candidate that Megatron-LM can run; an exit code.
int print_megatron_flags(const PlanningInputs& inputs, const SearchResult& result, const Candidate** chosen) {
  print_notes(inputs);
  std::string why_not;
  for (const Candidate& candidate : result.candidates) {
    const MegatronFlags megatron = megatron_flags(inputs.job, candidate.plan);
    if (!megatron.why_not.empty()) {
      if (why_not.empty()) why_not = megatron.why_not;
      continue;
    }
    if (!why_not.empty())
      diagnose(fmt::format(
          "note: Megatron-LM cannot run the best plan ({:.4g} s, {:.4g} USD per iteration): {}; "
          "this one takes {:.4g} s and {:.4g} USD",
          result.candidates[0].prediction.iteration_s, result.candidates[0].prediction.usd_per_iteration(),
          why_not, candidate.prediction.iteration_s, candidate.prediction.usd_per_iteration()));
    for (const std::string& note : megatron.notes) diagnose("note: " + note);
    for (const std::string& flag : megatron.flags) print(flag + "\n");
    *chosen = &candidate;
    return kDone;
  }
  diagnose(fmt::format(
      "{}: Megatron-LM can run none of the {} best plans: of the best one, {}; try --search-space "
      "paper, fewer GPU types (--max-gpus) or another global batch",
      inputs.job.file, result.candidates.size(), why_not));
  return kInfeasible;
}

}  // namespace

int run_plan(const PlanCommand& command) {
  const PlanningInputs inputs = read_inputs(command.source);
  const bool megatron = command.format == Format::megatron;
  SearchRequest request = request_of(command.source);
  request.candidates = megatron ? std::max(command.top, kMegatronCandidates) : command.top;
  if (!command.previous.empty()) request.previous = load_candidates(command.previous);
  const PlanOptions options = plan_options(request, inputs.site);

  SearchResult result = [&] {
    const WaitingLine line("plan: searching", options.time_limit_s, command.source.quiet);
    return search(inputs.context(), options);
  }();
  keep_first(result, request.candidates);
  print_result(command, inputs, result);
  int code = exit_code(command.source, result.status, result.reason);
  const Candidate* chosen = code == kDone ? &result.candidates[0] : nullptr;
  if (code == kDone && megatron) code = print_megatron_flags(inputs, result, &chosen);
  if (code == kDone && !command.output.empty()) write_file_atomically(command.output, to_json(chosen->plan));
  return code;
}

}  // namespace sailor::cli
