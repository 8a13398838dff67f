#include "trainer/control/control_message.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "planner/plan/plan_json.h"
#include "planner/spec/strict_json.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

using Json = StrictJson;

template <class T>
void put_optional(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

// A loss that is NaN is sent as null: JSON has no NaN.
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
          {"step_pid", m.step_pid},
          {"start_ticks", m.start_ticks},
          {"place", m.place},
          {"gpu", m.gpu},
          {"address", m.address},
          {"port", m.port}};
}

Json encode(const Lease& m) {
  return {{"type", "lease"}, {"generation", m.generation}, {"seconds", m.seconds}};
}

Json encode(const Alive& m) {
  return {{"type", "alive"}, {"generation", m.generation}, {"in_step_s", m.in_step_s}};
}

Json encode(const StepReport& m) {
  Json json = {
      {"type", "step"},         {"generation", m.generation},         {"rank", m.rank},
      {"step", m.step},         {"data_digest", m.data_digest},       {"step_s", m.step_s},
      {"phases_s", m.phases_s}, {"peak_rss_bytes", m.peak_rss_bytes}, {"max_in_flight", m.max_in_flight}};
  put_optional(json, "loss", m.loss);
  put_optional(json, "z_loss", m.z_loss);
  put_optional(json, "gradient_norm", m.gradient_norm);
  put_optional(json, "learning_rate", m.learning_rate);
  put_optional(json, "loss_scale", m.loss_scale);
  json["skipped"] = m.skipped;
  if (m.spikes) json["spikes"] = *m.spikes;
  json["layer_norms"] = m.layer_norms;
  put_optional(json, "gradient_signal", m.gradient_signal);
  put_optional(json, "gradient_noise", m.gradient_noise);
  json["validation"] = Json::object();
  for (const auto& [name, loss] : m.validation)
    if (std::isfinite(loss)) json["validation"][name] = loss;
  for (const TracedTask& task : m.tasks)
    json["tasks"].push_back({static_cast<int>(task.kind), task.microbatch, task.start_s, task.end_s});
  return json;
}

Json encode(const Failure& m) {
  return {{"type", "failure"},
          {"generation", m.generation},
          {"rank", m.rank},
          {"node", m.node},
          {"pid", m.pid},
          {"text", m.text},
          {"peer_lost", m.peer_lost},
          {"lost_peer", m.lost_peer},
          {"device_failed", m.device_failed},
          {"gpu_usable", m.gpu_usable}};
}

Json encode(const ProcessEnded& m) {
  return {{"type", "ended"}, {"node", m.node}, {"pid", m.pid}, {"wait_status", m.wait_status}};
}

Json encode(const Note& m) {
  Json json = {
      {"type", "note"}, {"generation", m.generation}, {"rank", m.rank}, {"step", m.step}, {"text", m.text}};
  put_optional(json, "save_s", m.save_s);
  return json;
}

Json encode(const Finished& m) {
  return {{"type", "finished"},
          {"generation", m.generation},
          {"rank", m.rank},
          {"peak_rss_bytes", m.peak_rss_bytes},
          {"max_in_flight", m.max_in_flight},
          {"paced_tasks", m.paced_tasks},
          {"overrun_tasks", m.overrun_tasks},
          {"overrun_s", m.overrun_s},
          {"paced_s", m.paced_s}};
}

Json encode(const Generation& m) {
  Json ranks = Json::array();
  for (const GenerationRank& r : m.ranks) ranks.push_back({r.node, r.pid, r.address, r.port, r.drops_state});
  return {{"type", "generation"}, {"number", m.number}, {"base", m.base}, {"plan", to_json(m.plan, -1)},
          {"ranks", ranks},       {"scope", m.scope},   {"why", m.why}};
}

Json encode(const Interrupt& m) {
  return {
      {"type", "interrupt"}, {"generation", m.generation}, {"after_step", m.after_step}, {"save", m.save}};
}

Json encode(const Idle& m) {
  return {{"type", "idle"}, {"generation", m.generation}, {"rank", m.rank}, {"steps_done", m.steps_done}};
}

Json encode(const Started& m) {
  return {{"type", "started"},
          {"generation", m.generation},
          {"rank", m.rank},
          {"steps_done", m.steps_done},
          {"state_from", m.state_from},
          {"bytes_received", m.bytes_received},
          {"groups_s", m.groups_s},
          {"state_s", m.state_s},
          {"pid", m.pid},
          {"start_ticks", m.start_ticks},
          {"device_contexts", m.device_contexts}};
}

Json encode(const Leaving& m) {
  return {{"type", "leaving"}, {"node", m.node}, {"grace_s", m.grace_s}, {"continues", m.continues}};
}

Json encode(const EndProcess& m) {
  return {{"type", "end_process"}, {"node", m.node}, {"pid", m.pid}};
}

Json encode(const StartProcess& m) {
  return {{"type", "start_process"}, {"node", m.node}, {"place", m.place}, {"gpu", m.gpu}};
}

Json encode(const StartPrograms& m) {
  return {{"type", "start_programs"},
          {"node", m.node},
          {"generation", m.generation},
          {"command", m.command},
          {"environment", m.environment}};
}

Json encode(const SignalPrograms& m) {
  Json json = {
      {"type", "signal_programs"}, {"node", m.node}, {"generation", m.generation}, {"signal", m.signal}};
  put_optional(json, "kill_after_s", m.kill_after_s);
  return json;
}

Json encode(const ProgramsReport& m) {
  Json json = {{"type", "programs"}, {"node", m.node}, {"generation", m.generation}};
  put_optional(json, "exit_code", m.exit_code);
  return json;
}

Json encode(const Stop& m) {
  return {{"type", "stop"}, {"exit_code", m.exit_code}, {"text", m.text}};
}

Hello decode_hello(const Json& j) {
  return {.role = j.at("role") == "agent" ? ControlRole::agent : ControlRole::rank,
          .rank = j.at("rank"),
          .node = j.at("node"),
          .host = j.at("host"),
          .pid = j.at("pid"),
          .generation = j.at("generation"),
          .step_pid = j.at("step_pid"),
          .start_ticks = j.at("start_ticks"),
          .place = j.at("place"),
          .gpu = j.at("gpu"),
          .address = j.at("address"),
          .port = j.at("port")};
}

StepReport decode_step(const Json& j) {
  return {.generation = j.at("generation"),
          .rank = j.at("rank"),
          .step = j.at("step"),
          .loss = take_optional(j, "loss"),
          .z_loss = take_optional(j, "z_loss"),
          .gradient_norm = take_optional(j, "gradient_norm"),
          .learning_rate = take_optional(j, "learning_rate"),
          .loss_scale = take_optional(j, "loss_scale"),
          .skipped = j.at("skipped"),
          .spikes = j.contains("spikes") ? std::optional<int64_t>(j.at("spikes")) : std::nullopt,
          .layer_norms = j.at("layer_norms"),
          .gradient_signal = take_optional(j, "gradient_signal"),
          .gradient_noise = take_optional(j, "gradient_noise"),
          .validation = j.at("validation").get<ValidationLosses>(),
          .data_digest = j.at("data_digest"),
          .step_s = j.at("step_s"),
          .phases_s = j.at("phases_s"),
          .peak_rss_bytes = j.at("peak_rss_bytes"),
          .max_in_flight = j.at("max_in_flight"),
          .tasks = take_tasks(j)};
}

Failure decode_failure(const Json& j) {
  return {.generation = j.at("generation"),
          .rank = j.at("rank"),
          .node = j.at("node"),
          .pid = j.at("pid"),
          .text = j.at("text"),
          .peer_lost = j.at("peer_lost"),
          .lost_peer = j.at("lost_peer"),
          .device_failed = j.at("device_failed"),
          .gpu_usable = j.at("gpu_usable")};
}

Finished decode_finished(const Json& j) {
  return {.generation = j.at("generation"),
          .rank = j.at("rank"),
          .peak_rss_bytes = j.at("peak_rss_bytes"),
          .max_in_flight = j.at("max_in_flight"),
          .paced_tasks = j.at("paced_tasks"),
          .overrun_tasks = j.at("overrun_tasks"),
          .overrun_s = j.at("overrun_s"),
          .paced_s = j.at("paced_s")};
}

Generation decode_generation(const Json& j) {
  Generation generation{.number = j.at("number"),
                        .base = j.at("base"),
                        .plan = parse_plan(j.at("plan").get<std::string>(), "the generation's plan"),
                        .scope = j.at("scope"),
                        .why = j.at("why")};
  for (const Json& r : j.at("ranks"))
    generation.ranks.push_back({r.at(0), r.at(1), r.at(2), r.at(3), r.at(4)});
  return generation;
}

Started decode_started(const Json& j) {
  return {.generation = j.at("generation"),
          .rank = j.at("rank"),
          .steps_done = j.at("steps_done"),
          .state_from = j.at("state_from"),
          .bytes_received = j.at("bytes_received"),
          .groups_s = j.at("groups_s"),
          .state_s = j.at("state_s"),
          .pid = j.at("pid"),
          .start_ticks = j.at("start_ticks"),
          .device_contexts = j.at("device_contexts")};
}

ProgramsReport decode_programs(const Json& j) {
  ProgramsReport report{.node = j.at("node"), .generation = j.at("generation")};
  if (j.contains("exit_code")) report.exit_code = j.at("exit_code").get<int>();
  return report;
}

ControlMessage decode(const Json& j) {
  const std::string type = j.at("type");
  if (type == "hello") return decode_hello(j);
  if (type == "lease") return Lease{.generation = j.at("generation"), .seconds = j.at("seconds")};
  if (type == "alive") return Alive{.generation = j.at("generation"), .in_step_s = j.at("in_step_s")};
  if (type == "step") return decode_step(j);
  if (type == "failure") return decode_failure(j);
  if (type == "ended")
    return ProcessEnded{.node = j.at("node"), .pid = j.at("pid"), .wait_status = j.at("wait_status")};
  if (type == "note")
    return Note{.generation = j.at("generation"),
                .rank = j.at("rank"),
                .step = j.at("step"),
                .text = j.at("text"),
                .save_s = take_optional(j, "save_s")};
  if (type == "finished") return decode_finished(j);
  if (type == "generation") return decode_generation(j);
  if (type == "interrupt")
    return Interrupt{
        .generation = j.at("generation"), .after_step = j.at("after_step"), .save = j.at("save")};
  if (type == "idle")
    return Idle{.generation = j.at("generation"), .rank = j.at("rank"), .steps_done = j.at("steps_done")};
  if (type == "started") return decode_started(j);
  if (type == "leaving")
    return Leaving{.node = j.at("node"), .grace_s = j.at("grace_s"), .continues = j.at("continues")};
  if (type == "end_process") return EndProcess{.node = j.at("node"), .pid = j.at("pid")};
  if (type == "start_process")
    return StartProcess{.node = j.at("node"), .place = j.at("place"), .gpu = j.at("gpu")};
  if (type == "start_programs")
    return StartPrograms{.node = j.at("node"),
                         .generation = j.at("generation"),
                         .command = j.at("command"),
                         .environment = j.at("environment")};
  if (type == "signal_programs")
    return SignalPrograms{.node = j.at("node"),
                          .generation = j.at("generation"),
                          .signal = j.at("signal"),
                          .kill_after_s = take_optional(j, "kill_after_s")};
  if (type == "programs") return decode_programs(j);
  if (type == "stop") return Stop{.exit_code = j.at("exit_code"), .text = j.at("text")};
  throw std::runtime_error(fmt::format("unknown type \"{}\"", type));
}

}  // namespace

std::string to_json(const ControlMessage& message) {
  // The text of a failing rank may have bytes that are not UTF-8: they are replaced.
  return std::visit([](const auto& m) { return encode(m); }, message)
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

ControlMessage parse_control_message(const std::string& json) {
  try {
    return decode(Json::parse(json));
  } catch (const std::exception& e) {
    throw std::runtime_error(
        fmt::format("control message: {:.300} in: {:.200}", one_line(e.what()), one_line(json)));
  }
}

}  // namespace sailor
