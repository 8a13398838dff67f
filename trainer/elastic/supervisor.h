// What the controller knows about the ranks of the generation in force: who has joined, how far they are, who
// has finished, what went wrong first. Pure bookkeeping: messages and ended processes in, answers out; no
// sockets, no processes, no clock. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "planner/history/run_summary.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/control/control_message.h"

namespace sailor {

class Supervisor {
 public:
  Supervisor(const JobSpec& job, const Plan& plan);

  // Another plan is in force from now on, with these processes, by rank. Messages of other generations are
  // ignored. What the generation before reported without its rank 0 is progress all the same.
  void begin_generation(int number, const Plan& plan, const std::vector<Hello>& ranks);

  // A message of a peer (an opaque name of its connection).
  void receive(const std::string& peer, const ControlMessage& message);
  // A process that was adopted on a node has ended. Anything but a rank is ignored.
  void process_ended(const std::string& node, int64_t pid, int wait_status);
  // A child of the controller has ended. Anything but the Slurm step of an agent is ignored.
  void child_ended(int64_t pid, int wait_status);
  // Nothing has been heard of the peer for `silence_s`.
  void peer_silent(const std::string& peer, double silence_s);
  // Something that concerns no rank in particular went wrong.
  void fail(const std::string& text);
  // Everybody has been told to end: how they end from now on says nothing of what went wrong.
  void told_to_end() {
    verdict_ = failure();
    told_to_end_ = true;
  }

  bool all_joined() const { return static_cast<int>(ranks_.size()) == num_ranks_; }
  bool all_finished() const { return static_cast<int>(finished_.size()) == num_ranks_; }
  // Ranks of the plan that no process has taken yet.
  std::vector<int> missing_ranks() const;

  // One line about the cause, when something went wrong. The cause beats its echoes: a process that died or
  // threw explains the connections that others lost.
  std::optional<std::string> failure() const;
  // Whether failure() is a cause. An echo alone means that the cause may still arrive.
  bool cause_known() const { return cause_.has_value(); }

  // Steps that rank 0 has reported since the last call, and what it had to say to people, in order. A job
  // that had to go back to an earlier state reports steps again.
  std::vector<std::variant<StepReport, Note>> take_progress();
  // The traced step's tasks by rank, once every rank has reported them; then never again.
  std::optional<std::map<int, std::vector<TracedTask>>> take_trace();
  // How far rank 0 has said that training is: in a run that goes on from a checkpoint, more than the steps of
  // this run.
  int64_t last_step() const { return last_step_; }
  int64_t steps_done() const { return steps_done_; }
  // Of the generation in force: how long its steps took, in their order.
  const std::vector<double>& steps_s() const { return steps_s_; }

  // Figures of the run so far; status, job id and error are the caller's.
  RunSummary summarize() const;

 private:
  std::string describe(int rank) const;
  void add_progress(const StepReport& step);

  const JobSpec& job_;
  Plan plan_;
  int num_ranks_;
  int generation_ = 1;
  std::map<int, Hello> ranks_;
  std::map<std::string, Hello> peers_;
  std::map<int, Finished> finished_;
  std::map<int, StepReport> last_reports_;
  std::set<std::pair<std::string, int64_t>> early_ends_;  // reaped before their hello arrived
  std::vector<std::variant<StepReport, Note>> progress_;
  std::vector<double> steps_s_;
  int64_t steps_done_ = 0;
  double training_s_ = 0;
  int64_t last_step_ = 0;
  std::map<int, std::vector<TracedTask>> trace_;
  std::optional<double> first_loss_, last_loss_, validation_loss_;
  // What is said to have gone wrong, most telling first: a rank's own end, a node's end, a lost connection.
  std::optional<std::string> cause_;
  std::optional<std::string> node_lost_;
  struct Echo {
    int rank, lost_peer;  // who says it, and whom it waited for
    std::string text;
  };
  std::vector<Echo> echoes_;  // in the order of their arrival
  bool told_to_end_ = false;
  std::optional<std::string> verdict_;  // failure() at that time
};

}  // namespace sailor
