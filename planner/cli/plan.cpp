// sailor plan: search for the best plan, print the candidates, write the chosen one.
#include "planner/cli/cluster_source.h"
#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/plan/plan_json.h"
#include "planner/report/candidate_table.h"
#include "planner/search/load_inputs.h"
#include "planner/search/search.h"
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
      for (const std::string& note : inputs.notes) diagnose("note: " + note);
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
  PlanOptions options;
  options.space = parse_search_space(command.search_space);
  options.cost_model = parse_cost_model(command.cost_model);
  options.top_k = command.top;
  PlanningInputs inputs =
      load_inputs(command.job, config_or_default(command.config), command.overrides,
                  [&](const SiteConfig& site) { return read_cluster(command.cluster, site.file); });
  options.time_limit_s = command.time_limit_s.value_or(inputs.site.planner_time_limit_s);

  SearchResult result = search(inputs.context(), options);
  print_result(command, inputs, result);
  switch (result.status) {
    case SearchStatus::found:
      break;
    case SearchStatus::infeasible:
      diagnose(command.job + ": no feasible plan: " + result.reason);
      return kInfeasible;
    case SearchStatus::time_limit:
      diagnose(command.job + ": no plan within the time limit: " + result.reason);
      return kTimeLimit;
  }
  if (!command.output.empty()) write_file_atomically(command.output, to_json(result.candidates[0].plan));
  return kDone;
}

}  // namespace sailor::cli
