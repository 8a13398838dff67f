// Runs independent work on every rank (writing or reading its part), with the same outcome on all of them:
// the most severe failure, from the first rank that has it.
//
//     const Outcome outcome = on_all_ranks(world, [&] { write_my_part(); });
//     require(outcome);
//
// The work may take any time, much longer on one rank than on another: finished ranks keep communicating, so
// that the communicator's deadline still finds a rank that hangs completely. The work runs on its own thread
// and does not use `world`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "trainer/comm/communicator.h"

namespace sailor {

struct Outcome {
  enum class Failure : int64_t { none, damaged, input, other };  // CheckpointDamaged, InputError, any other
  Failure failure = Failure::none;
  std::string text;  // of the first rank with the most severe failure
};

// Tells work that may hang, on a disk that does not answer, to stop.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

// Progress of long work. The work counts, on its thread; the total over all ranks is reported periodically
// and at the end, on each of them, by the thread that called on_all_ranks().
struct WorkProgress {
  std::function<void(int64_t done_bytes, int64_t total_bytes)> tell;
  std::function<std::pair<int64_t, int64_t>()> own;  // done and total bytes of this rank; thread-safe
};

// Called by all members of `world`. Throws CommError when ranks are lost, after this rank's own work has
// ended. With `stop` it sets the flag and waits half a second at most: the work may then outlive the call,
// and must own everything that it uses. `progress` is given by all of them, or by none.
Outcome on_all_ranks(Communicator& world, const std::function<void()>& work, const StopFlag& stop = nullptr,
                     const WorkProgress* progress = nullptr);
// Throws InputError or std::runtime_error when there was a failure.
void require(const Outcome& outcome);

// The text of rank `root`, on all members. Throws CommError.
std::string broadcast_text(Communicator& world, std::string text, int root);

}  // namespace sailor
