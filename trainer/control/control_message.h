// The messages between controller, agents and ranks, and their JSON form. Plain value types; to_json() then
// parse_control_message() gives the same message. Tensors are never sent over this channel.
//
// A message about training has the number of its generation (the time between two reconfigurations, under one
// plan; from 1). The receiver ignores messages of any generation except the current one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/history/validation_losses.h"
#include "planner/plan/plan.h"
#include "trainer/control/step_trace.h"

namespace sailor {

enum class ControlRole { rank, agent };

// First message of every peer: its identity and location.
struct Hello {
  ControlRole role = ControlRole::rank;
  int rank = -1;  // plan rank in generation 1; -1 for an agent and for a process that joins a running job
  std::string node{};
  std::string host{};
  int64_t pid = 0;
  int generation = 0;
  int64_t step_pid = 0;  // of an agent: the process of its Slurm step on the controller's node
  // Of a rank: its start time in clock ticks of its machine. Identifies the process together with the pid.
  int64_t start_ticks = 0;
  std::string place{};  // node of its GPU in the plan; differs from `node` in a run on one machine
  int gpu = -1;
  std::string address{};  // for connections of the data plane
  int port = 0;
};

// Controller -> all, twice a second: permission to run for `seconds` more.
struct Lease {
  int generation = 0;  // in which training runs, or last ran
  double seconds = 0;
};

// Peer -> controller, the answer to every lease.
struct Alive {
  int generation = 0;
  double in_step_s = 0;  // of a rank: time since its current step began; 0 = not in a step
};

// One iteration on one rank. Only ranks of the last stage know loss and gradient norm; nobody knows the norm
// of gradients that overflowed.
struct StepReport {
  int generation = 1;
  int rank = 0;
  int64_t step = 0;  // from 1
  std::optional<double> loss{};
  std::optional<double> z_loss{};  // if the job has one; not part of the loss
  std::optional<double> gradient_norm{};
  std::optional<double> learning_rate{};
  std::optional<double> loss_scale{};        // in precisions that need one
  bool skipped = false;                      // gradients overflowed or spiked: nothing was updated
  std::optional<int64_t> spikes{};           // steps that were skipped for theirs, if the job skips them
  std::vector<double> layer_norms{};         // of each layer's gradient, if they were computed
  std::optional<double> gradient_signal{};   // see trainer/parallel/gradient_noise.h; if computed, like the
  std::optional<double> gradient_noise{};    // next
  ValidationLosses validation{};             // after this step, if it was computed
  int64_t data_digest = 0;                   // of the tokens of the global batch; the same under every plan
  double step_s = 0;                         // without validation
  std::map<std::string, double> phases_s{};  // times of the phases of the step, by name
  int64_t peak_rss_bytes = 0;
  int max_in_flight = 0;            // maximum number of microbatches with stored activations
  std::vector<TracedTask> tasks{};  // of the traced step only
};

// A rank cannot continue. `peer_lost` marks a failure that is the consequence of another one: a lost
// connection, or a missing answer. `device_failed` marks one of its GPU: its process ends, and others can go
// on without it. Any other is the job's.
struct Failure {
  int generation = 1;
  int rank = 0;
  std::string node{};
  int64_t pid = 0;
  std::string text{};
  bool peer_lost = false;
  int lost_peer = -1;  // the rank that did not answer; -1 = unknown
  bool device_failed = false;
  bool gpu_usable = true;  // another process may use it: it only had too little memory
};

// Agent -> controller: it has reaped an adopted process.
struct ProcessEnded {
  std::string node{};
  int64_t pid = 0;
  int wait_status = 0;  // as of waitpid
};

// A line for the user, e.g. that a checkpoint was written.
struct Note {
  int generation = 1;
  int rank = 0;
  int64_t step = 0;  // number of iterations in the training state
  std::string text{};
  std::optional<double> save_s{};  // duration of the save that it is about
};

// A rank has completed all its steps.
struct Finished {
  int generation = 1;
  int rank = 0;
  int64_t peak_rss_bytes = 0;
  int max_in_flight = 0;
  int64_t paced_tasks = 0;    // computations on an emulated device; 0 without emulation
  int64_t overrun_tasks = 0;  // number of these whose real computation took longer than the emulated time
  double overrun_s = 0;       // total excess time of these
  double paced_s = 0;         // emulated time of all paced tasks
};

// One process of a generation, and its address on the data plane.
struct GenerationRank {
  std::string node{};
  int64_t pid = 0;
  std::string address{};
  int port = 0;
  // It has no memory for the states of two plans: it frees its own before it builds what the plan needs.
  bool drops_state = false;

  bool operator==(const GenerationRank&) const = default;
};

// Controller -> all ranks: this plan is in force from now on. A process that is not in `ranks` stays idle.
struct Generation {
  int number = 0;
  // The last generation in which training ran. State from an older generation is out of date.
  int base = 0;
  Plan plan{};
  // By rank of the plan, followed by processes that are not in the plan but have state that it may need.
  std::vector<GenerationRank> ranks{};
  std::string scope{};  // unique name for its communicators
  std::string why{};
};

// Controller -> all ranks: leave the generation and answer with Idle. Either at once, aborting the current
// step, or in an orderly way: ranks that know of it tell the others in their next step, and all leave after
// the same one.
struct Interrupt {
  int generation = 0;
  int64_t after_step = 0;  // at least so many steps; 0 = at once
  bool save = false;       // with after_step: first write a checkpoint and wait for it
};

// Rank -> controller: it has left the generation, keeps its state and waits for the next generation.
struct Idle {
  int generation = 0;
  int rank = 0;
  int64_t steps_done = 0;
};

// Rank -> controller: its groups and its state are complete, and training begins.
struct Started {
  int generation = 0;
  int rank = 0;
  int64_t steps_done = 0;
  std::string state_from{};  // peers | memory | checkpoint | start
  int64_t bytes_received = 0;
  double groups_s = 0;  // time for communicators and memory of the stage
  double state_s = 0;   // time for parameters and optimizer states
  // Identity of the process; constant over generations.
  int64_t pid = 0;
  int64_t start_ticks = 0;
  int device_contexts = 0;  // number that this process has ever created
};

// Agent -> controller: its node got a signal and will end after `grace_s`.
struct Leaving {
  std::string node{};
  double grace_s = 0;
  bool continues = false;  // the signal asks the whole job to go on in another one (signals.h)
};

// Controller -> agent: kill this process of its node.
struct EndProcess {
  std::string node{};
  int64_t pid = 0;
};

// Controller -> agent: start a rank that joins the running job on a GPU whose process has ended.
struct StartProcess {
  std::string node{};
  std::string place{};
  int gpu = -1;
};

// Controller -> agent: start the ranks of another trainer's program on its node (trainer/launch/programs.h).
struct StartPrograms {
  std::string node{};
  int generation = 0;
  std::vector<std::string> command{};
  std::map<std::string, std::string> environment{};
};

// Controller -> agent: send a signal to these ranks.
struct SignalPrograms {
  std::string node{};
  int generation = 0;
  int signal = 0;
  std::optional<double> kill_after_s{};  // the time until those that still run are killed
};

// Agent -> controller: these ranks have been started, or all of them have ended.
struct ProgramsReport {
  std::string node{};
  int generation = 0;
  std::optional<int> exit_code{};  // of those that have ended: of the first rank that failed, else 0
};

// Controller -> all: end now with this exit code.
struct Stop {
  int exit_code = 0;
  std::string text{};
};

using ControlMessage = std::variant<Hello, Lease, Alive, StepReport, Failure, ProcessEnded, Note, Finished,
                                    Generation, Interrupt, Idle, Started, Leaving, EndProcess, StartProcess,
                                    StartPrograms, SignalPrograms, ProgramsReport, Stop>;

std::string to_json(const ControlMessage& message);
// Throws std::runtime_error with the error in the text.
ControlMessage parse_control_message(const std::string& json);

}  // namespace sailor
