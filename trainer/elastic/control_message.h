// The messages of the control channel, and their JSON form. Plain value types; to_json() then
// parse_control_message() gives the same message. Everything a rank, an agent and the controller tell each
// other is here; tensors never are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/elastic/step_trace.h"

namespace sailor {

enum class ControlRole { rank, agent };

// First message of every peer: who it is and where it lives.
struct Hello {
  ControlRole role = ControlRole::rank;
  int rank = -1;  // plan rank; -1 for an agent
  std::string node{};
  std::string host{};
  int64_t pid = 0;
  int generation = 0;
  int64_t step_pid = 0;  // of an agent: the process on the controller's node that holds its Slurm step
};

// Controller -> all, once a second: permission to live for `seconds` more.
struct Lease {
  int generation = 0;
  double seconds = 0;
};

// Peer -> controller, in answer to every lease: still here.
struct Alive {
  int generation = 0;
};

// One iteration as one rank saw it. Loss and gradient norm are known to the ranks that hold the last stage.
struct StepReport {
  int rank = 0;
  int64_t step = 0;  // from 1
  std::optional<double> loss{};
  std::optional<double> gradient_norm{};
  std::optional<double> learning_rate{};
  std::optional<double> validation_loss{};   // after this step, when it was computed
  double step_s = 0;                         // without validation
  std::map<std::string, double> phases_s{};  // where the time went, by name
  int64_t peak_rss_bytes = 0;
  int max_in_flight = 0;            // most microbatches whose activations were held at once
  std::vector<TracedTask> tasks{};  // of the one step that is traced
};

// A rank cannot go on. `peer_lost` marks a failure that is only the echo of another one: a connection that
// went away, or an answer that did not come.
struct Failure {
  int rank = 0;
  std::string node{};
  int64_t pid = 0;
  std::string text{};
  bool peer_lost = false;
  int lost_peer = -1;  // the rank that was waited for; -1 = none in particular
};

// An agent reaped a process that it had adopted.
struct ProcessEnded {
  std::string node{};
  int64_t pid = 0;
  int wait_status = 0;  // as of waitpid
};

// A line for people, e.g. that a checkpoint was written.
struct Note {
  int rank = 0;
  int64_t step = 0;  // iterations that the state of training has behind it
  std::string text{};
};

// A rank has done all its steps.
struct Finished {
  int rank = 0;
  int64_t peak_rss_bytes = 0;
  int max_in_flight = 0;
  int64_t paced_tasks = 0;    // computations that an emulated device timed; 0 without emulation
  int64_t overrun_tasks = 0;  // of them, those whose real computation took longer than the emulated time
  double overrun_s = 0;       // by how much, together
  double paced_s = 0;         // emulated time of all paced tasks
};

// Controller -> all: end now with this exit code.
struct Stop {
  int exit_code = 0;
  std::string text{};
};

using ControlMessage =
    std::variant<Hello, Lease, Alive, StepReport, Failure, ProcessEnded, Note, Finished, Stop>;

std::string to_json(const ControlMessage& message);
// Throws std::runtime_error naming what is wrong with the text.
ControlMessage parse_control_message(const std::string& json);

}  // namespace sailor
