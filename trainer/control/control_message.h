// The messages of the control channel, and their JSON form. Plain value types; to_json() then
// parse_control_message() gives the same message. Everything a rank, an agent and the controller tell each
// other is here; tensors never are.
//
// A message about training carries the number of the generation that it is about (one plan in force between
// two reconfigurations, from 1); who receives one of another generation than the present one ignores it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/plan/plan.h"
#include "trainer/control/step_trace.h"

namespace sailor {

enum class ControlRole { rank, agent };

// First message of every peer: who it is and where it lives.
struct Hello {
  ControlRole role = ControlRole::rank;
  int rank = -1;  // plan rank in generation 1; -1 for an agent and for a process that joins a running job
  std::string node{};
  std::string host{};
  int64_t pid = 0;
  int generation = 0;
  int64_t step_pid = 0;  // of an agent: the process on the controller's node that holds its Slurm step
  // Of a rank: since when it runs, in clock ticks of its machine: with the pid, who it is.
  int64_t start_ticks = 0;
  std::string place{};  // node of the plan whose GPU it has; another name than `node` in a run on one machine
  int gpu = -1;
  std::string address{};  // where it accepts connections of the data plane
  int port = 0;
};

// Controller -> all, once a second: permission to live for `seconds` more.
struct Lease {
  int generation = 0;  // in which training runs, or ran last
  double seconds = 0;
};

// Peer -> controller, in answer to every lease: still here.
struct Alive {
  int generation = 0;
  double in_step_s = 0;  // of a rank: for how long it has been inside its present step; 0 = in none
};

// One iteration as one rank saw it. Loss and gradient norm are known to the ranks that hold the last stage.
struct StepReport {
  int generation = 1;
  int rank = 0;
  int64_t step = 0;  // from 1
  std::optional<double> loss{};
  std::optional<double> gradient_norm{};
  std::optional<double> learning_rate{};
  std::optional<double> validation_loss{};   // after this step, when it was computed
  int64_t data_digest = 0;                   // of the tokens of the global batch; the same under every plan
  double step_s = 0;                         // without validation
  std::map<std::string, double> phases_s{};  // where the time went, by name
  int64_t peak_rss_bytes = 0;
  int max_in_flight = 0;            // most microbatches whose activations were held at once
  std::vector<TracedTask> tasks{};  // of the one step that is traced
};

// A rank cannot go on. `peer_lost` marks a failure that is only the echo of another one: a connection that
// went away, or an answer that did not come.
struct Failure {
  int generation = 1;
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
  int generation = 1;
  int rank = 0;
  int64_t step = 0;  // iterations that the state of training has behind it
  std::string text{};
};

// A rank has done all its steps.
struct Finished {
  int generation = 1;
  int rank = 0;
  int64_t peak_rss_bytes = 0;
  int max_in_flight = 0;
  int64_t paced_tasks = 0;    // computations that an emulated device timed; 0 without emulation
  int64_t overrun_tasks = 0;  // of them, those whose real computation took longer than the emulated time
  double overrun_s = 0;       // by how much, together
  double paced_s = 0;         // emulated time of all paced tasks
};

// One process of a generation, and where the others reach it.
struct GenerationRank {
  std::string node{};
  int64_t pid = 0;
  std::string address{};
  int port = 0;

  bool operator==(const GenerationRank&) const = default;
};

// Controller -> all ranks: from now on this plan is in force. A process that is not in `ranks` stays, idle.
struct Generation {
  int number = 0;
  // The last generation in which training ran: the state that a process has of an older one is out of date.
  int base = 0;
  Plan plan{};
  // By rank of the plan; behind them those that are not in it, but have state that it may need.
  std::vector<GenerationRank> ranks{};
  std::string scope{};  // sets its communicators apart from those of others
  std::string why{};
};

// Controller -> all ranks: leave the generation and say so with Idle. At once, giving up the step that is
// being done; or, in an orderly way, when `after_step` steps are done.
struct Interrupt {
  int generation = 0;
  int64_t after_step = 0;  // 0 = at once
  bool save = false;       // with after_step: write a checkpoint first, and wait for it
};

// Rank -> controller: it has left the generation and waits for the next one, its state kept.
struct Idle {
  int generation = 0;
  int rank = 0;
  int64_t steps_done = 0;
};

// Rank -> controller: it has its groups and its state, and begins to train.
struct Started {
  int generation = 0;
  int rank = 0;
  int64_t steps_done = 0;
  std::string state_from{};  // peers | memory | checkpoint | start
  int64_t bytes_received = 0;
  double groups_s = 0;  // communicators and the stage's memory
  double state_s = 0;   // parameters and optimizer
  // Who it is: the same numbers in every generation that it lives through.
  int64_t pid = 0;
  int64_t start_ticks = 0;
  int device_contexts = 0;  // that this process has made in its life
};

// Agent -> controller: its node was told to go (SIGTERM) and has that long.
struct Leaving {
  std::string node{};
  double grace_s = 0;
};

// Controller -> agent: kill this process of its node.
struct EndProcess {
  std::string node{};
  int64_t pid = 0;
};

// Controller -> agent: start a rank that joins the running job, for a GPU whose process has ended.
struct StartProcess {
  std::string node{};
  std::string place{};
  int gpu = -1;
};

// Controller -> all: end now with this exit code.
struct Stop {
  int exit_code = 0;
  std::string text{};
};

using ControlMessage =
    std::variant<Hello, Lease, Alive, StepReport, Failure, ProcessEnded, Note, Finished, Generation,
                 Interrupt, Idle, Started, Leaving, EndProcess, StartProcess, Stop>;

std::string to_json(const ControlMessage& message);
// Throws std::runtime_error naming what is wrong with the text.
ControlMessage parse_control_message(const std::string& json);

}  // namespace sailor
