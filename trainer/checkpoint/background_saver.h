// Saves checkpoints while training goes on: a step waits only until its state is copied, and, when the
// checkpoint before is still being written, for that.
//
//     saver.start(state, version, directory, keep);       // all ranks, between the same two steps
//     for (const SaveResult& result : saver.results()) ...  // after any step
//     saver.wait();                                         // after the last
//
// The ranks write together (checkpointing.h), each from a thread of its own with low priority, over a
// communicator of their own; before that they hand copies of what they write to each other, if the job wants
// it (memory_copies.h). One thread uses an object.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "trainer/checkpoint/checkpointing.h"
#include "trainer/checkpoint/state_snapshot.h"
#include "trainer/comm/communicator.h"

namespace sailor {

struct SaveResult {
  int64_t steps_done = 0;
  SavedCheckpoint saved;   // when there is no error
  std::string error;       // the same on all ranks; what was there before stays
  int64_t not_copied = 0;  // ranks of which no copy is kept in another's memory, for want of room
  double stopped_s = 0;    // for which this rank's training stood still
  double written_s = 0;    // from the copy until all is on the disk
};

class BackgroundSaver {
 public:
  // `group` has all ranks of the plan in their order, and nobody else uses it. Job and plan outlive the
  // object.
  BackgroundSaver(const JobSpec& job, const Plan& plan, std::unique_ptr<Communicator> group);
  // Gives up.
  ~BackgroundSaver();
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  void start(const RankState& state, const StateVersion& version, const std::string& directory, int keep);
  // Ends what is being written within a second, written or not. Nothing can be started then.
  void give_up();
  // Until nothing is being written.
  void wait();
  // After give_up(): what it keeps of snapshots in memory, as the job wants it (checkpoint.memory_copies).
  std::vector<std::shared_ptr<const StateSnapshot>> copies() const;
  // Of checkpoints that have ended since the last call. Throws CommError when ranks were lost meanwhile.
  std::vector<SaveResult> results();

 private:
  const JobSpec& job_;
  const Plan& plan_;
  const RankLayout layout_;
  const std::unique_ptr<Communicator> group_;
  // Shared with writes that hang.
  const std::shared_ptr<StateSnapshot> own_ = std::make_shared<StateSnapshot>();
  const std::shared_ptr<StateSnapshot> neighbours_ = std::make_shared<StateSnapshot>();
  std::future<SaveResult> writing_;
  std::vector<std::future<SaveResult>> ended_;
};

}  // namespace sailor
