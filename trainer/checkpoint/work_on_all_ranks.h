// What every rank does on its own (write its part, read its part), and what came of it, the same on all of
// them: the gravest failure, told by the first rank that has it.
//
//     const Outcome outcome = on_all_ranks(world, [&] { write_my_part(); });
//     require(outcome);
//
// The work may take any time, on one rank much longer than on another: those that are done hear from the
// others all the while, so that the communicator's deadline still finds a rank that hangs altogether. It runs
// on a thread of its own and does not use `world`.
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
  std::string text;  // of the first rank that failed with the gravest failure
};

// For work that may hang, on a disk that does not answer: tells it to stop.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

// How far long work is. The work counts, on its thread; what all ranks have counted is told now and then, and
// at the end, on each of them by the thread that called on_all_ranks().
struct WorkProgress {
  std::function<void(int64_t done_bytes, int64_t total_bytes)> tell;
  std::function<std::pair<int64_t, int64_t>()> own;  // done and total bytes of this rank; thread-safe
};

// Called by all members of `world` alike. Throws CommError when ranks are lost; then it waits for this rank's
// own work to end first. With `stop` it sets the flag and waits half a second at most: the work may go on
// beyond the call, and owns all that it uses.
// `progress` is given by all of them, or by none.
Outcome on_all_ranks(Communicator& world, const std::function<void()>& work, const StopFlag& stop = nullptr,
                     const WorkProgress* progress = nullptr);
// Throws InputError or std::runtime_error when there was a failure.
void require(const Outcome& outcome);

// Rank `root`'s text, on all members. Throws CommError.
std::string broadcast_text(Communicator& world, std::string text, int root);

}  // namespace sailor
