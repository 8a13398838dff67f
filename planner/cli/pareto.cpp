// sailor pareto: plans from the cheapest to the fastest, none both slower and more expensive than another.
#include "planner/search/pareto.h"

#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/cli/plan_source.h"
#include "planner/cli/progress_line.h"
#include "planner/report/pareto_table.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {
namespace {

void print_front(const ParetoCommand& command, const PlanningInputs& inputs, const ParetoFront& front) {
  if (print_data(command.format, command.result, pareto_json(inputs.context(), front))) return;
  print_notes(inputs);
  if (front.status == SearchStatus::found) print(pareto_table(inputs.context(), front));
}

}  // namespace

int run_pareto(const ParetoCommand& command) {
  const PlanningInputs inputs = read_inputs(command.source);
  const PlanOptions options = plan_options(request_of(command.source), inputs.site);
  const double time_limit_s = options.time_limit_s * command.points;

  const ParetoFront front = [&] {
    const WaitingLine line("pareto: searching", time_limit_s, command.source.quiet);
    return pareto(inputs.context(), options, command.points, time_limit_s);
  }();
  print_front(command, inputs, front);
  const int code = exit_code(command.source, front.status, front.reason);
  if (code == kDone && !command.svg.empty())
    write_file_atomically(command.svg, pareto_svg(inputs.context(), front));
  return code;
}

}  // namespace sailor::cli
