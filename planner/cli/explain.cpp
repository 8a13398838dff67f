// sailor explain: why this plan, where its time goes, what binds it and what would change it.
#include <algorithm>
#include <optional>
#include <vector>

#include "planner/cli/commands.h"
#include "planner/cli/given_plan.h"
#include "planner/cli/output.h"
#include "planner/cli/plan_source.h"
#include "planner/cli/progress_line.h"
#include "planner/cli/run_source.h"
#include "planner/explain/explanation.h"
#include "planner/report/candidate_table.h"
#include "planner/report/explanation_text.h"
#include "planner/report/start_report.h"
#include "planner/spec/error.h"
#include "planner/start/choose_start.h"

namespace sailor::cli {
namespace {

// Of the time limit of a search: for all questions about other plans together.
constexpr double kQuestionsShare = 1.5;
constexpr int kShown = 3;  // candidates

void print_explanation(const ExplainCommand& command, const PlanningInputs& inputs,
                       const SearchResult& result, const Explanation* explanation,
                       const std::vector<StartOption>& starts) {
  if (print_data(command.format, command.result,
                 explanation_json(inputs.context(), result, explanation, starts)))
    return;
  print_notes(inputs);
  if (explanation != nullptr) print(explanation_text(inputs.context(), *explanation));
  if (!starts.empty()) print("\nWHEN IT COULD START\n  " + starts_text(starts, inputs.snapshot) + "\n");
  if (explanation == nullptr)
    print(candidate_footer(inputs.context(), result));
  else if (!explanation->given)
    print("\nCANDIDATES\n" + candidate_table(inputs.context(), result));
}

// The best starts, now and later; none when nothing has to be waited for.
std::vector<StartOption> starts_of(const PlanningInputs& inputs, PlanOptions options,
                                   const SearchResult& now) {
  if (inputs.snapshot.busy.empty() || inputs.job.training.steps <= 0) return {};
  options.top_k = 1;
  options.explain = false;
  StartQuestion question = start_question(inputs.job, inputs.site);
  question.most_questions = 0;
  question.effort_s = std::min(question.effort_s, options.time_limit_s);
  return choose_start(
             inputs.snapshot, now, question,
             [&](const Snapshot& nodes, double effort_s) {
               options.effort_limit_s = effort_s;
               return search(inputs.context(nodes), options);
             },
             [](const StartOption&) { return std::nullopt; })
      .options;
}

}  // namespace

int run_explain(const ExplainCommand& given) {
  const ExplainCommand command = given.run.empty() ? given : about_run(given);
  const PlanningInputs inputs = read_inputs(command.source);
  const PlanOptions options = plan_options(request_of(command.source), inputs.site);
  const bool has_plan = !command.plan.empty();
  std::optional<WaitingLine> line(std::in_place, "explain: searching",
                                  (1 + kQuestionsShare) * options.time_limit_s, command.source.quiet);
  SearchResult result;
  if (has_plan) {
    const Plan plan = read_given_plan(command.plan, inputs);
    if (const std::string text = beyond_cluster(plan, command.plan, inputs.snapshot, inputs.snapshot.file);
        !text.empty())
      diagnose("note: " + text);
    result.status = SearchStatus::found;
    result.cost_model = options.cost_model;
    result.candidates = {{plan, predict_given_plan(inputs, plan, options.cost_model, command.plan)}};
  } else {
    result = search(inputs.context(), options);
    keep_first(result, kShown);
  }
  std::optional<Explanation> explanation;
  if (result.status == SearchStatus::found)
    explanation = explain(inputs.context(), options, result.candidates.front(), has_plan,
                          kQuestionsShare * options.time_limit_s);
  const std::vector<StartOption> starts =
      has_plan ? std::vector<StartOption>{} : starts_of(inputs, options, result);
  line.reset();
  print_explanation(command, inputs, result, explanation ? &*explanation : nullptr, starts);
  return exit_code(command.source, result.status, result.reason);
}

}  // namespace sailor::cli
