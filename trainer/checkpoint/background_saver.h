// Saves checkpoints while training goes on: a step waits only until its state is copied, and, when the
// checkpoint before is still being written, for that.
//
//     saver.start(state, steps_done, directory, keep);     // all ranks, between the same two steps
//     for (const SaveResult& result : saver.results()) ...  // after any step
//     saver.wait();                                         // after the last
//
// The ranks write together (checkpointing.h), each from a thread of its own with low priority, over a
// communicator of their own. One thread uses an object.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpointing.h"
#include "trainer/checkpoint/state_snapshot.h"
#include "trainer/comm/communicator.h"

namespace sailor {

struct SaveResult {
  int64_t steps_done = 0;
  SavedCheckpoint saved;  // when there is no error
  std::string error;      // the same on all ranks; what was there before stays
  double stopped_s = 0;   // for which this rank's training stood still
  double written_s = 0;   // from the copy until all is on the disk
};

class BackgroundSaver {
 public:
  // `group` has all ranks of the plan in their order, and nobody else uses it.
  BackgroundSaver(const JobSpec& job, const Plan& plan, std::unique_ptr<Communicator> group);
  // Gives a checkpoint up that is still being written.
  ~BackgroundSaver();
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  void start(const RankState& state, int64_t steps_done, const std::string& directory, int keep);
  // Until nothing is being written.
  void wait();
  // Of checkpoints that have ended since the last call. Throws CommError when ranks were lost meanwhile.
  std::vector<SaveResult> results();

 private:
  const JobSpec& job_;
  const Plan& plan_;
  const std::unique_ptr<Communicator> group_;
  StateSnapshot snapshot_;
  std::future<SaveResult> writing_;
  std::vector<std::future<SaveResult>> ended_;
};

}  // namespace sailor
