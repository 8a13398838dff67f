// Saving and loading by all ranks of a plan together.
//
// Every function is called by all ranks with the same arguments (except their own state) between the same two
// steps; `world` has all of them in their order. An error on one rank is the same exception on all of them,
// naming the rank, and leaves the communicator usable. Throw CommError when ranks are lost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/state_snapshot.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/communicator.h"

namespace sailor {

struct SavedCheckpoint {
  std::string path;
  int64_t bytes = 0;
};

// Writes the ranks' copies of one step to `directory` (checkpoint_directory.h), then removes all but the
// newest `keep`. Returns when everything is on disk. Throws std::runtime_error when it cannot be written;
// earlier checkpoints stay. With a CommError it ends within a second: a write that hangs is abandoned, with
// its part of the snapshot.
SavedCheckpoint save_checkpoint(Communicator& world, const JobSpec& job, const Plan& plan,
                                const std::shared_ptr<const StateSnapshot>& snapshot,
                                const std::string& directory, int keep);

struct LoadedCheckpoint {
  std::string path;  // empty: there was none, and nothing was changed
  int64_t steps_done = 0;
  std::vector<std::string> skipped;  // a line for each newer one that is damaged
};

// Called periodically while a checkpoint is read, on every rank, with sums over all of them.
using LoadProgress = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

// Loads the newest complete one. Throws InputError when this job cannot resume from it, std::runtime_error
// when all that looked complete turned out to be damaged: the state is undefined then.
LoadedCheckpoint load_checkpoint(Communicator& world, const RankState& state, const std::string& directory,
                                 const LoadProgress& progress = nullptr);

}  // namespace sailor
