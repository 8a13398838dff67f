// The ranks of the current generation: which have joined, their progress, which have finished, and the cause
// of a failure if no other generation can follow. Pure bookkeeping of messages and ended processes, without
// sockets, processes or clock. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/history/run_summary.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/control/control_message.h"
#include "trainer/elastic/failure_cause.h"
#include "trainer/elastic/loss_signs.h"
#include "trainer/record/training_progress.h"

namespace sailor {

class Supervisor final : public LossSigns {
 public:
  Supervisor(const JobSpec& job, const Plan& plan);

  // A new plan is in force, with these processes, by rank. Messages of other generations are ignored.
  void begin_generation(int number, const Plan& plan, const std::vector<Hello>& ranks);

  // A message that does not indicate a loss. `peer` is an opaque name of the connection.
  void receive(const std::string& peer, const ControlMessage& message);
  // Any loss makes the job fail.
  void process_ended(const std::string& node, int64_t pid, int wait_status) override;
  void child_ended(int64_t pid, int wait_status) override;
  void unreachable(const std::string& peer, const Failure& failure) override;
  void device_failed(const std::string& peer, const Failure& failure) override;
  void peer_silent(const std::string& peer, double silence_s) override;
  void peer_dropped(const std::string& peer, const std::string& reason) override;
  void no_children() override;
  // An error that is not specific to a rank.
  void fail(const std::string& text) { cause_.fail(text); }
  // All processes have been told to end: later errors are not causes.
  void told_to_end() { cause_.close(); }

  bool all_joined() const { return static_cast<int>(ranks_.size()) == num_ranks_; }
  bool all_finished() const { return static_cast<int>(finished_.size()) == num_ranks_; }
  // Ranks of the plan without a process.
  std::vector<int> missing_ranks() const;

  FailureCause& failure() { return cause_; }
  TrainingProgress& progress() { return progress_; }
  const TrainingProgress& progress() const { return progress_; }

  // Values of the run so far; the caller adds status, job id and error.
  RunSummary summarize() const;

 private:
  std::string describe(int rank) const;

  const JobSpec& job_;
  Plan plan_;
  int num_ranks_;
  int generation_ = 1;
  std::map<int, Hello> ranks_;
  std::map<std::string, Hello> peers_;
  std::map<int, Finished> finished_;
  std::set<std::pair<std::string, int64_t>> early_ends_;  // ended before their hello arrived
  TrainingProgress progress_;
  FailureCause cause_;
};

}  // namespace sailor
