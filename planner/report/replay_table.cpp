#include "planner/report/replay_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "planner/report/plan_text.h"
#include "planner/report/prediction_json.h"

namespace sailor {
namespace {

using nlohmann::json;

double tokens_of(const JobSpec& job, const ReplayOutcome& outcome) {
  return static_cast<double>(outcome.steps) * job.tokens_per_iteration();
}

double time_s(const ReplayOutcome& outcome, double end_s) {
  return outcome.finished_at_s.value_or(end_s);
}

double tokens_per_s(const JobSpec& job, const ReplayOutcome& outcome, double end_s) {
  const double seconds = time_s(outcome, end_s);
  return seconds > 0 ? tokens_of(job, outcome) / seconds : 0;
}

// Of what the same plans would reach if changes cost nothing.
std::optional<double> goodput(const JobSpec& job, const std::vector<ReplayOutcome>& outcomes,
                              const ReplayOutcome& outcome, double end_s) {
  const auto most = std::find_if(outcomes.begin(), outcomes.end(),
                                 [](const ReplayOutcome& o) { return o.policy == ReplayPolicy::no_cost; });
  if (most == outcomes.end()) return std::nullopt;
  const double limit = tokens_per_s(job, *most, end_s);
  if (limit <= 0) return std::nullopt;
  return tokens_per_s(job, outcome, end_s) / limit;
}

std::string percent(double part, double of) {
  return of > 0 ? fmt::format("{:.1f}", 100 * part / of) : "-";
}

}  // namespace

std::string replay_table(const JobSpec& job, const std::vector<ReplayOutcome>& outcomes, double end_s) {
  std::string out =
      fmt::format("{:<9} {:>9} {:>10} {:>9} {:>8} {:>7} {:>9} {:>8} {:>8} {:>10} {:>10} {:>11}\n", "POLICY",
                  "STEPS", "TOKENS/s", "GOODPUT %", "TRAIN %", "LOST %", "CHANGE %", "WAIT %", "CHANGES",
                  "LOST STEPS", "USD", "USD/1M TOK");
  for (const ReplayOutcome& o : outcomes) {
    const double seconds = time_s(o, end_s), tokens = tokens_of(job, o);
    const std::optional<double> part = goodput(job, outcomes, o, end_s);
    out +=
        fmt::format("{:<9} {:>9} {:>10.4g} {:>9} {:>8} {:>7} {:>9} {:>8} {:>8} {:>10} {:>10.4g} {:>11}\n",
                    to_string(o.policy), o.steps, tokens_per_s(job, o, end_s), part ? percent(*part, 1) : "-",
                    percent(o.trained_s, seconds), percent(o.lost_s, seconds), percent(o.changing_s, seconds),
                    percent(o.waiting_s, seconds), o.changes, o.lost_steps, o.usd,
                    tokens > 0 ? fmt::format("{:.4g}", 1e6 * o.usd / tokens) : "-");
  }
  for (const ReplayOutcome& o : outcomes)
    if (o.finished_at_s)
      out += fmt::format("{}: all {} steps were done after {:.0f} s\n", to_string(o.policy), o.steps,
                         *o.finished_at_s);
  return out;
}

std::string replay_events(const ReplayOutcome& outcome) {
  std::string out = fmt::format("{:>9} {:>6} {:<9} {:>10} {:>10}  {}\n", "AT (s)", "GPUS", "EVENT",
                                "LOST STEPS", "ITER (s)", "PLAN");
  for (const ReplayEvent& event : outcome.events)
    out +=
        fmt::format("{:>9.0f} {:>6} {:<9} {:>10} {:>10}  {}\n", event.at_s, event.gpus, to_string(event.what),
                    event.lost_steps, event.iteration_s > 0 ? fmt::format("{:.4g}", event.iteration_s) : "-",
                    event.plan.empty() ? "-" : cut_to(event.plan, 100));
  return out;
}

std::string replay_json(const JobSpec& job, const std::vector<ReplayOutcome>& outcomes, double end_s) {
  json policies = json::array();
  for (const ReplayOutcome& o : outcomes) {
    json events = json::array();
    for (const ReplayEvent& event : o.events)
      events.push_back({{"at_s", event.at_s},
                        {"gpus", event.gpus},
                        {"event", to_string(event.what)},
                        {"lost_steps", event.lost_steps},
                        {"iteration_s", event.iteration_s > 0 ? json(event.iteration_s) : json()},
                        {"plan", event.plan}});
    policies.push_back({{"policy", to_string(o.policy)},
                        {"steps", o.steps},
                        {"tokens_per_s", tokens_per_s(job, o, end_s)},
                        {"goodput", optional_json(goodput(job, outcomes, o, end_s))},
                        {"finished_at_s", optional_json(o.finished_at_s)},
                        {"trained_s", o.trained_s},
                        {"lost_s", o.lost_s},
                        {"changing_s", o.changing_s},
                        {"waiting_s", o.waiting_s},
                        {"changes", o.changes},
                        {"lost_steps", o.lost_steps},
                        {"usd", o.usd},
                        {"events", std::move(events)}});
  }
  const json out = {
      {"sailor_replay", 1}, {"model", job.model.name}, {"end_s", end_s}, {"policies", std::move(policies)}};
  return out.dump(2) + "\n";
}

}  // namespace sailor
