#include "trainer/elastic/change_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/plan/plan_json.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

// The plan as in plan.json, so that every step of the run can be traced to the plan that trained it.
Json document(const Plan& plan) {
  return Json::parse(to_json(plan, -1));
}

}  // namespace

ChangeLog::ChangeLog(EventLog& events, std::function<void(const std::string&)> say)
    : events_(events), say_(std::move(say)) {}

void ChangeLog::begun(const std::string& how, const Plan& plan, std::optional<double> promised_s) {
  events_.write("planning", {{"how", how}});
  events_.write("generation", {{"generation", 1},
                               {"why", Json::array({"the job starts"})},
                               {"plan", summary(plan)},
                               {"predicted_iteration_s", or_null(promised_s)},
                               {"document", document(plan)}});
}

void ChangeLog::interrupted(const SendInterrupt& what, const std::vector<std::string>& reasons) {
  events_.write("interrupt",
                {{"generation", what.generation}, {"after_step", what.after_step}, {"why", reasons}});
}

void ChangeLog::searched(const NextPlan::LongerSearch& found) {
  events_.write("second_look", {{"plan", summary(found.plan)},
                                {"iteration_s", rounded_s(found.now_s)},
                                {"then_s", rounded_s(found.then_s)},
                                {"changes", found.pays}});
}

void ChangeLog::no_plan(const std::string& why, double plan_s, double wait_s) {
  events_.write("no_plan", {{"why", why}, {"plan_s", rounded_s(plan_s)}});
  say_(fmt::format("elastic: {}; waiting for more GPUs, at most {:.0f} s", why, wait_s));
}

void ChangeLog::sent(int number, const std::vector<std::string>& reasons, const Replanned& made,
                     std::optional<double> promised_s, double plan_s, size_t dropping) {
  record_.begin();
  events_.write("generation", {{"generation", number},
                               {"why", reasons},
                               {"how", made.text},
                               {"plan", summary(*made.plan)},
                               {"predicted_iteration_s", or_null(promised_s)},
                               {"plan_s", rounded_s(plan_s)},
                               {"dropping", dropping},
                               {"document", document(*made.plan)}});
  say_(fmt::format("elastic: generation {}: {} ({})", number, summary(*made.plan), made.text));
  if (dropping > 0)
    say_(fmt::format("elastic: restart on change: {} rank{} no memory for the states of two plans", dropping,
                     dropping == 1 ? " has" : "s have"));
  if (!made.table.empty()) say_(made.table.substr(0, made.table.find_last_not_of('\n') + 1));
}

int64_t ChangeLog::running(int number, const GenerationChange& change, const Roster& roster,
                           const std::set<int>& working, int64_t steps_done) {
  const Started first = record_.first();
  const int64_t steps_lost = number == 1 ? 0 : std::max<int64_t>(0, steps_done - first.steps_done);
  events_.write("running", record_.running(number, change, roster, working, steps_lost));
  if (number == 1) return first.steps_done;
  say_(
      fmt::format("elastic: {} ranks continue after step {} (state from {}), {:.2f} s after the change began",
                  working.size(), first.steps_done, first.state_from, change.running_s - change.detected_s));
  change_began_s_ = change.detected_s;
  change_s_ = change.running_s - change.idle_s;
  return first.steps_done;
}

void ChangeLog::step_done(const StepReport& report, double now_s) {
  if (!change_began_s_) return;
  events_.write("resumed", {{"generation", report.generation},
                            {"step", report.step},
                            {"to_first_step_s", rounded_s(now_s - *change_began_s_)}});
  change_began_s_.reset();
}

void ChangeLog::ended(int generation, const std::string& status, const std::string& error) {
  Json details = {{"status", status}, {"generation", generation}};
  if (!error.empty()) details["error"] = error;
  events_.write("ended", details);
}

}  // namespace sailor
