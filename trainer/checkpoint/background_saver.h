// Saves checkpoints during training: a step only waits until its state is copied, and for the previous
// checkpoint if that is still being written.
//
//     saver.start(state, version, directory, keep);       // all ranks, between the same two steps
//     for (const SaveResult& result : saver.results()) ...  // after any step
//     saver.wait();                                         // after the last
//
// The ranks write together (checkpointing.h), each from its own low-priority thread, over their own
// communicator. Before that they exchange copies of their parts, if the job wants it (memory_copies.h). One
// thread uses an object.
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
  SavedCheckpoint saved;   // if there is no error
  std::string error;       // the same on all ranks; earlier checkpoints stay
  int64_t not_copied = 0;  // ranks whose copy found no room in another's memory
  double stopped_s = 0;    // time that training of this rank paused
  double written_s = 0;    // from the copy until everything is on disk
};

class BackgroundSaver {
 public:
  // `group` has all ranks of the plan in their order, and is not used elsewhere. Job and plan outlive the
  // object.
  BackgroundSaver(const JobSpec& job, const Plan& plan, std::unique_ptr<Communicator> group);
  // Calls give_up().
  ~BackgroundSaver();
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  void start(const RankState& state, const StateVersion& version, const std::string& directory, int keep);
  // Ends the current write within a second, complete or not. Nothing can be started afterwards.
  void give_up();
  // Waits until nothing is being written.
  void wait();
  // After give_up(): the snapshots in memory, as configured by the job (checkpoint.memory_copies).
  std::vector<std::shared_ptr<const StateSnapshot>> copies() const;
  // Results of checkpoints that have ended since the last call. Throws CommError when ranks were lost
  // meanwhile.
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
