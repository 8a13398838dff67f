#include "planner/history/run_status.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRecentSteps = 20;

// What an event says of the state of the run; empty = nothing.
std::string state_of(const std::string& name) {
  if (name == "running" || name == "resumed") return "training";
  if (name == "interrupt" || name == "generation") return "changing";
  if (name == "no_plan") return "waiting";
  return "";
}

void take_events(const RunHistory& history, RunStatus& status) {
  for (const RunEvent& event : history.events) {
    if (const std::string state = state_of(event.name); !state.empty()) status.state = state;
    // A run that was started again in the same directory counts its generations anew.
    if (event.name == "generation" || event.name == "running")
      status.generation = std::max(1, event.generation);
  }
  status.events = history.events;
}

void take_steps(const RunHistory& history, RunStatus& status) {
  std::deque<double> recent;
  for (const StepMetrics& step : history.steps) {
    status.step = step.step;
    status.loss = step.loss;
    status.tokens_per_s = step.tokens_per_s;
    if (step.step_s) recent.push_back(*step.step_s);
    if (recent.size() > kRecentSteps) recent.pop_front();
  }
  if (recent.empty()) return;
  if (status.state.empty()) status.state = "training";
  std::nth_element(recent.begin(), recent.begin() + static_cast<std::ptrdiff_t>(recent.size() / 2),
                   recent.end());
  status.iteration_s = recent[recent.size() / 2];
}

std::string optional_text(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string local_time(double time_s) {
  const auto seconds = static_cast<std::time_t>(time_s);
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

std::vector<RunEvent> last_events(const RunStatus& status, size_t count) {
  return {status.events.end() - static_cast<std::ptrdiff_t>(std::min(count, status.events.size())),
          status.events.end()};
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

RunStatus read_run_status(const std::string& directory) {
  RunStatus status;
  status.directory = directory;
  const RunHistory history = read_run_history(directory);
  status.plan = summary(history.plan);
  status.ranks = num_ranks(history.plan);
  if (history.plan.prediction) status.predicted_iteration_s = history.plan.prediction->iteration_s;
  try {
    status.steps = load_job_spec(directory + "/job.yaml").training.steps;
  } catch (const InputError&) {  // a model directory that is not seen from here
  }
  take_events(history, status);
  take_steps(history, status);
  if (history.summary && status.state != "changing") {
    status.state = history.summary->status;
    status.error = history.summary->error;
  }
  if (status.state.empty()) status.state = "starting";
  return status;
}

std::string status_text(const RunStatus& status, size_t events) {
  std::string text;
  const auto row = [&text](const char* name, const std::string& value) {
    text += fmt::format("{:<12}{}\n", name, value);
  };
  row("run", status.directory);
  row("state", status.error.empty() ? status.state : fmt::format("{}: {}", status.state, status.error));
  row("generation", fmt::format("{}, {} ranks", status.generation, status.ranks));
  row("plan", status.plan);
  row("step",
      status.steps ? fmt::format("{}/{}", status.step, *status.steps) : fmt::format("{}", status.step));
  row("loss", optional_text(status.loss, "{:.4f}"));
  std::string iteration = optional_text(status.iteration_s, "{:.3f} s");
  if (status.iteration_s && status.predicted_iteration_s)
    iteration += fmt::format(", predicted {:.3f} s ({:+.0f} %)", *status.predicted_iteration_s,
                             100 * (*status.predicted_iteration_s / *status.iteration_s - 1));
  row("iteration", iteration);
  row("throughput", optional_text(status.tokens_per_s, "{:.0f} tokens/s"));
  const std::vector<RunEvent> last = last_events(status, events);
  if (!last.empty()) text += "events\n";
  for (const RunEvent& event : last) text += fmt::format("  {}  {}\n", local_time(event.time_s), event.text);
  return text;
}

std::string status_json(const RunStatus& status, size_t events) {
  Json json = {{"sailor_status", 1},
               {"directory", status.directory},
               {"state", status.state},
               {"error", status.error.empty() ? Json(nullptr) : Json(status.error)},
               {"generation", status.generation},
               {"ranks", status.ranks},
               {"plan", status.plan},
               {"step", status.step},
               {"steps", status.steps ? Json(*status.steps) : Json(nullptr)},
               {"loss", or_null(status.loss)},
               {"iteration_s", or_null(status.iteration_s)},
               {"predicted_iteration_s", or_null(status.predicted_iteration_s)},
               {"tokens_per_s", or_null(status.tokens_per_s)},
               {"events", Json::array()}};
  for (const RunEvent& event : last_events(status, events))
    json["events"].push_back({{"time", event.time_s}, {"text", event.text}});
  return json.dump(2) + "\n";
}

}  // namespace sailor
