#include "trainer/elastic/run_status.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRecentSteps = 20;

// The whole lines of a file of JSON, as far as they are objects.
std::vector<Json> json_lines(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) lines.push_back(std::move(json));
  }
  return lines;
}

std::optional<double> number(const Json& json, const char* key) {
  if (!json.contains(key) || !json[key].is_number()) return std::nullopt;
  return json[key].get<double>();
}

std::string word(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

std::string reasons(const Json& event) {
  std::string text;
  if (!event.contains("why")) return text;
  if (event["why"].is_string()) return event["why"].get<std::string>();
  for (const Json& reason : event["why"])
    text += (text.empty() ? "" : "; ") + (reason.is_string() ? reason.get<std::string>() : "");
  return text;
}

std::string gpu_of(const Json& event) {
  return fmt::format("GPU {} of {}", number(event, "gpu").value_or(-1), word(event, "node"));
}

std::string text_of(const Json& event) {
  const std::string name = word(event, "event");
  const auto generation = static_cast<int>(number(event, "generation").value_or(0));
  if (name == "generation")
    return fmt::format("generation {}: {} ({})", generation, word(event, "plan"), reasons(event));
  if (name == "running") {
    std::string text =
        fmt::format("generation {} trains on {} ranks after step {}", generation,
                    number(event, "ranks").value_or(0), number(event, "steps_done").value_or(0));
    if (const auto resume_s = number(event, "resume_s"))
      text += fmt::format(", state from {}, {} steps lost, {:.2f} s", word(event, "state_from"),
                          number(event, "steps_lost").value_or(0), *resume_s);
    return text;
  }
  if (name == "lost") return fmt::format("lost {}: {}", gpu_of(event), reasons(event));
  if (name == "joined") return fmt::format("joined: {}", gpu_of(event));
  if (name == "restart") return fmt::format("a process is started for {}", gpu_of(event));
  if (name == "restart_later")
    return fmt::format("{} is left alone for {:.0f} s: {}", gpu_of(event), number(event, "in_s").value_or(0),
                       reasons(event));
  if (name == "grow_asked") return fmt::format("asks Slurm for nodes: {}", reasons(event));
  if (name == "grew") return fmt::format("{} is the job's now", word(event, "node"));
  if (name == "grow_refused") return fmt::format("not given: {}: {}", word(event, "node"), reasons(event));
  if (name == "released") return fmt::format("{} is given back: {}", word(event, "node"), reasons(event));
  if (name == "not_worth") return fmt::format("takes no free node: {}", reasons(event));
  if (name == "leaving") return fmt::format("{} is told to go", word(event, "node"));
  if (name == "no_plan") return fmt::format("waiting: {}", reasons(event));
  if (name == "stall") return fmt::format("no step for {:.0f} s", number(event, "in_step_s").value_or(0));
  if (name == "resumed")
    return fmt::format("step {} done, {:.2f} s after the change began", number(event, "step").value_or(0),
                       number(event, "to_first_step_s").value_or(0));
  if (name == "ended")
    return fmt::format("{}{}{}", word(event, "status"), event.contains("error") ? ": " : "",
                       word(event, "error"));
  const std::string why = reasons(event);
  return why.empty() ? name : fmt::format("{}: {}", name, why);
}

// What an event says of the state of the run; empty = nothing.
std::string state_of(const std::string& name) {
  if (name == "running" || name == "resumed") return "training";
  if (name == "interrupt" || name == "generation") return "changing";
  if (name == "no_plan") return "waiting";
  return "";
}

void read_events(RunStatus& status) {
  for (const Json& event : json_lines(status.directory + "/events.jsonl")) {
    const std::string name = word(event, "event");
    if (const std::string state = state_of(name); !state.empty()) status.state = state;
    // A run that was started again in the same directory counts its generations anew.
    if (name == "generation" || name == "running")
      status.generation = static_cast<int>(number(event, "generation").value_or(1));
    if (name != "planning") status.events.push_back({number(event, "time").value_or(0), text_of(event)});
  }
}

void read_metrics(RunStatus& status) {
  std::deque<double> recent;
  for (const Json& step : json_lines(status.directory + "/metrics.jsonl")) {
    status.step = static_cast<int64_t>(number(step, "step").value_or(0));
    status.loss = number(step, "loss");
    status.tokens_per_s = number(step, "tokens_per_s");
    if (const auto step_s = number(step, "step_s")) recent.push_back(*step_s);
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
  const Plan plan = load_plan(directory + "/plan.json");
  status.plan = summary(plan);
  status.ranks = num_ranks(plan);
  if (plan.prediction) status.predicted_iteration_s = plan.prediction->iteration_s;
  try {
    status.steps = load_job_spec(directory + "/job.yaml").training.steps;
  } catch (const InputError&) {  // a model directory that is not seen from here
  }
  read_events(status);
  read_metrics(status);
  if (std::filesystem::exists(directory + "/summary.json") && status.state != "changing") {
    std::ifstream file(directory + "/summary.json");
    const Json end = Json::parse(file, nullptr, false);
    if (end.is_object()) {
      status.state = word(end, "status");
      status.error = word(end, "error");
    }
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
