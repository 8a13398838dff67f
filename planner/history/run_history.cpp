#include "planner/history/run_history.h"

#include <nlohmann/json.hpp>

#include "planner/history/event_text.h"
#include "planner/history/json_lines.h"
#include "planner/plan/plan_json.h"

namespace sailor {
namespace {

StepMetrics step_of(const Json& json) {
  StepMetrics out;
  out.step = integer_in<int64_t>(json, "step");
  out.loss = number_in(json, "loss");
  out.validation = validation_in(json);
  out.step_s = number_in(json, "step_s");
  out.tokens_per_s = number_in(json, "tokens_per_s");
  return out;
}

PlanChange change_of(const Json& json) {
  PlanChange out;
  out.time_s = number_in(json, "time").value_or(0);
  out.generation = integer_in<int>(json, "generation");
  out.why = reasons_in(json);
  out.ranks = integer_in<int>(json, "ranks");
  out.steps_done = integer_in<int64_t>(json, "steps_done");
  out.steps_lost = integer_in<int64_t>(json, "steps_lost");
  out.state_from = word_in(json, "state_from");
  out.cleanup_s = number_in(json, "cleanup_s");
  out.plan_s = number_in(json, "plan_s");
  out.broadcast_s = number_in(json, "broadcast_s");
  out.groups_s = number_in(json, "groups_s");
  out.state_s = number_in(json, "state_s");
  out.resume_s = number_in(json, "resume_s");
  return out;
}

void read_events(RunHistory& history) {
  std::optional<double> promised_s;  // of the generation that was planned last
  for (const Json& json : json_lines(history.directory + "/events.jsonl")) {
    const std::string name = word_in(json, "event");
    if (name == "planning") continue;
    const auto generation = integer_in<int>(json, "generation");
    history.events.push_back({number_in(json, "time").value_or(0), name, event_text(json), generation});
    if (name == "generation") promised_s = number_in(json, "predicted_iteration_s");
    if (name == "running") history.promises.push_back({integer_in<int64_t>(json, "steps_done"), promised_s});
    if (name == "running" && number_in(json, "resume_s")) history.changes.push_back(change_of(json));
    if (name == "resumed" && !history.changes.empty() && history.changes.back().generation == generation)
      history.changes.back().to_first_step_s = number_in(json, "to_first_step_s");
  }
}

}  // namespace

std::vector<StepMetrics> read_steps(const std::string& directory) {
  std::vector<StepMetrics> steps;
  for (const Json& json : json_lines(directory + "/metrics.jsonl")) steps.push_back(step_of(json));
  return steps;
}

RunHistory read_run_history(const std::string& directory) {
  RunHistory history;
  history.directory = directory;
  history.plan = load_plan(directory + "/plan.json");
  history.steps = read_steps(directory);
  read_events(history);
  history.summary = read_run_summary(directory + "/summary.json");
  return history;
}

}  // namespace sailor
