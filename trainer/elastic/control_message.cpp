#include "trainer/elastic/control_message.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace sailor {
namespace {

using Json = nlohmann::json;

template <class T>
void put_optional(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

// A loss that is not a number travels as null: JSON knows no NaN.
std::optional<double> take_optional(const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  const Json& value = json.at(key);
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::vector<TracedTask> take_tasks(const Json& json) {
  std::vector<TracedTask> tasks;
  if (!json.contains("tasks")) return tasks;
  for (const Json& task : json.at("tasks")) {
    const int kind = task.at(0);
    if (kind < 0 || kind >= kTaskKinds) throw std::runtime_error(fmt::format("unknown task {}", kind));
    tasks.push_back({static_cast<TaskKind>(kind), task.at(1), task.at(2), task.at(3)});
  }
  return tasks;
}

Json encode(const Hello& m) {
  return {{"type", "hello"},
          {"role", m.role == ControlRole::agent ? "agent" : "rank"},
          {"rank", m.rank},
          {"node", m.node},
          {"host", m.host},
          {"pid", m.pid},
          {"generation", m.generation},
          {"step_pid", m.step_pid}};
}

Json encode(const Lease& m) {
  return {{"type", "lease"}, {"generation", m.generation}, {"seconds", m.seconds}};
}

Json encode(const Alive& m) {
  return {{"type", "alive"}, {"generation", m.generation}};
}

Json encode(const StepReport& m) {
  Json json = {{"type", "step"},
               {"rank", m.rank},
               {"step", m.step},
               {"step_s", m.step_s},
               {"phases_s", m.phases_s},
               {"peak_rss_bytes", m.peak_rss_bytes},
               {"max_in_flight", m.max_in_flight}};
  put_optional(json, "loss", m.loss);
  put_optional(json, "gradient_norm", m.gradient_norm);
  put_optional(json, "learning_rate", m.learning_rate);
  put_optional(json, "validation_loss", m.validation_loss);
  for (const TracedTask& task : m.tasks)
    json["tasks"].push_back({static_cast<int>(task.kind), task.microbatch, task.start_s, task.end_s});
  return json;
}

Json encode(const Failure& m) {
  return {{"type", "failure"}, {"rank", m.rank},           {"node", m.node},          {"pid", m.pid},
          {"text", m.text},    {"peer_lost", m.peer_lost}, {"lost_peer", m.lost_peer}};
}

Json encode(const ProcessEnded& m) {
  return {{"type", "ended"}, {"node", m.node}, {"pid", m.pid}, {"wait_status", m.wait_status}};
}

Json encode(const Note& m) {
  return {{"type", "note"}, {"rank", m.rank}, {"step", m.step}, {"text", m.text}};
}

Json encode(const Finished& m) {
  return {{"type", "finished"},
          {"rank", m.rank},
          {"peak_rss_bytes", m.peak_rss_bytes},
          {"max_in_flight", m.max_in_flight},
          {"paced_tasks", m.paced_tasks},
          {"overrun_tasks", m.overrun_tasks},
          {"overrun_s", m.overrun_s},
          {"paced_s", m.paced_s}};
}

Json encode(const Stop& m) {
  return {{"type", "stop"}, {"exit_code", m.exit_code}, {"text", m.text}};
}

ControlMessage decode(const Json& j) {
  const std::string type = j.at("type");
  if (type == "hello")
    return Hello{.role = j.at("role") == "agent" ? ControlRole::agent : ControlRole::rank,
                 .rank = j.at("rank"),
                 .node = j.at("node"),
                 .host = j.at("host"),
                 .pid = j.at("pid"),
                 .generation = j.at("generation"),
                 .step_pid = j.at("step_pid")};
  if (type == "lease") return Lease{.generation = j.at("generation"), .seconds = j.at("seconds")};
  if (type == "alive") return Alive{.generation = j.at("generation")};
  if (type == "step")
    return StepReport{.rank = j.at("rank"),
                      .step = j.at("step"),
                      .loss = take_optional(j, "loss"),
                      .gradient_norm = take_optional(j, "gradient_norm"),
                      .learning_rate = take_optional(j, "learning_rate"),
                      .validation_loss = take_optional(j, "validation_loss"),
                      .step_s = j.at("step_s"),
                      .phases_s = j.at("phases_s"),
                      .peak_rss_bytes = j.at("peak_rss_bytes"),
                      .max_in_flight = j.at("max_in_flight"),
                      .tasks = take_tasks(j)};
  if (type == "failure")
    return Failure{.rank = j.at("rank"),
                   .node = j.at("node"),
                   .pid = j.at("pid"),
                   .text = j.at("text"),
                   .peer_lost = j.at("peer_lost"),
                   .lost_peer = j.at("lost_peer")};
  if (type == "ended")
    return ProcessEnded{.node = j.at("node"), .pid = j.at("pid"), .wait_status = j.at("wait_status")};
  if (type == "note") return Note{.rank = j.at("rank"), .step = j.at("step"), .text = j.at("text")};
  if (type == "finished")
    return Finished{.rank = j.at("rank"),
                    .peak_rss_bytes = j.at("peak_rss_bytes"),
                    .max_in_flight = j.at("max_in_flight"),
                    .paced_tasks = j.at("paced_tasks"),
                    .overrun_tasks = j.at("overrun_tasks"),
                    .overrun_s = j.at("overrun_s"),
                    .paced_s = j.at("paced_s")};
  if (type == "stop") return Stop{.exit_code = j.at("exit_code"), .text = j.at("text")};
  throw std::runtime_error(fmt::format("unknown type \"{}\"", type));
}

}  // namespace

std::string to_json(const ControlMessage& message) {
  // A text from a failing rank may hold bytes that are not UTF-8: they are replaced, never fatal.
  return std::visit([](const auto& m) { return encode(m); }, message)
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

ControlMessage parse_control_message(const std::string& json) {
  try {
    return decode(Json::parse(json));
  } catch (const std::exception& e) {
    throw std::runtime_error(fmt::format("control message: {} in: {:.200}", e.what(), json));
  }
}

}  // namespace sailor
