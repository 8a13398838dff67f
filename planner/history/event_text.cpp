#include "planner/history/event_text.h"

#include <fmt/format.h>

namespace sailor {
namespace {

std::string gpu_of(const Json& event) {
  return fmt::format("GPU {} of {}", number_in(event, "gpu").value_or(-1), word_in(event, "node"));
}

std::string nodes_in(const Json& event) {
  const auto count = integer_in<int>(event, "count");
  return count > 1 ? fmt::format("{} nodes", count) : "a node";
}

}  // namespace

std::string reasons_in(const Json& event) {
  std::string text;
  if (!event.contains("why")) return text;
  if (event["why"].is_string()) return event["why"].get<std::string>();
  for (const Json& reason : event["why"])
    text += (text.empty() ? "" : "; ") + (reason.is_string() ? reason.get<std::string>() : "");
  return text;
}

std::string event_text(const Json& event) {
  const std::string name = word_in(event, "event");
  const auto generation = integer_in<int>(event, "generation");
  if (name == "generation")
    return fmt::format("generation {}: {} ({})", generation, word_in(event, "plan"), reasons_in(event));
  if (name == "running") {
    const double ranks = number_in(event, "ranks").value_or(0);
    std::string text = fmt::format("generation {} trains on {} rank{} after step {}", generation, ranks,
                                   ranks == 1 ? "" : "s", number_in(event, "steps_done").value_or(0));
    if (const auto resume_s = number_in(event, "resume_s"))
      text += fmt::format(", state from {}, {} steps lost, {:.2f} s", word_in(event, "state_from"),
                          number_in(event, "steps_lost").value_or(0), *resume_s);
    return text;
  }
  if (name == "lost") return fmt::format("lost {}: {}", gpu_of(event), reasons_in(event));
  if (name == "joined") return fmt::format("joined: {}", gpu_of(event));
  if (name == "restart") return fmt::format("a process is started for {}", gpu_of(event));
  if (name == "restart_failed")
    return fmt::format("the process that was started for {} did not join", gpu_of(event));
  if (name == "restart_later")
    return fmt::format("{} is not used for {:.0f} s: {}", gpu_of(event), number_in(event, "in_s").value_or(0),
                       reasons_in(event));
  if (name == "grow_asked") return fmt::format("requests nodes from Slurm: {}", reasons_in(event));
  if (name == "grow_queued")
    return fmt::format("waits in the queue for {} with {:.0f} {}: {}", nodes_in(event),
                       number_in(event, "gpus").value_or(0), word_in(event, "gpu_type"), reasons_in(event));
  if (name == "grow_withdrawn")
    return fmt::format("no longer waits for a node with {}: {}", word_in(event, "gpu_type"),
                       reasons_in(event));
  if (name == "grew") return fmt::format("{} joined the job", word_in(event, "node"));
  if (name == "grow_refused")
    return fmt::format("not granted: {}: {}", word_in(event, "node"), reasons_in(event));
  if (name == "released") return fmt::format("{} is released: {}", word_in(event, "node"), reasons_in(event));
  if (name == "not_worth") return fmt::format("takes no free node: {}", reasons_in(event));
  if (name == "second_look")
    return fmt::format("a longer search: {:.3g} s per iteration instead of {:.3g}, {}",
                       number_in(event, "then_s").value_or(0), number_in(event, "iteration_s").value_or(0),
                       event.value("changes", false) ? "worth a change" : "not worth a change");
  if (name == "leaving") return fmt::format("{} is leaving the job", word_in(event, "node"));
  if (name == "no_plan") return fmt::format("waiting: {}", reasons_in(event));
  if (name == "stall") return fmt::format("no step for {:.0f} s", number_in(event, "in_step_s").value_or(0));
  if (name == "resumed")
    return fmt::format("step {} done, {:.2f} s after the change began", number_in(event, "step").value_or(0),
                       number_in(event, "to_first_step_s").value_or(0));
  if (name == "ended")
    return fmt::format("{}{}{}", word_in(event, "status"), event.contains("error") ? ": " : "",
                       word_in(event, "error"));
  const std::string why = reasons_in(event);
  return why.empty() ? name : fmt::format("{}: {}", name, why);
}

}  // namespace sailor
