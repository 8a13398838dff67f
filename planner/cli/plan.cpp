// sailor plan: search for the best plan, print the candidates, write the chosen one.
#include <optional>

#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/cli/plan_source.h"
#include "planner/plan/plan_json.h"
#include "planner/report/candidate_table.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {
namespace {

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
    case Format::csv:
      break;  // not offered
  }
}

}  // namespace

int run_plan(const PlanCommand& command) {
  const PlanningInputs inputs = read_inputs(command.source);
  PlanOptions options = options_of(command.source, inputs.site);
  options.top_k = command.top;
  if (!command.previous.empty()) options.previous = load_candidates(command.previous);

  const SearchResult result = search(inputs.context(), options);
  print_result(command, inputs, result);
  const int code = exit_code(command.source, result.status, result.reason);
  if (code == kDone && !command.output.empty())
    write_file_atomically(command.output, to_json(result.candidates[0].plan));
  return code;
}

}  // namespace sailor::cli
