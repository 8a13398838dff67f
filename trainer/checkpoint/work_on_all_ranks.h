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

#include <cstdint>
#include <functional>
#include <string>

#include "trainer/comm/communicator.h"

namespace sailor {

struct Outcome {
  enum class Failure : int64_t { none, damaged, input, other };  // CheckpointDamaged, InputError, any other
  Failure failure = Failure::none;
  std::string text;  // of the first rank that failed with the gravest failure
};

// Called by all members of `world` alike. Throws CommError when ranks are lost; then it waits for this rank's
// own work to end first.
Outcome on_all_ranks(Communicator& world, const std::function<void()>& work);
// Throws InputError or std::runtime_error when there was a failure.
void require(const Outcome& outcome);

// Rank `root`'s text, on all members. Throws CommError.
std::string broadcast_text(Communicator& world, std::string text, int root);

}  // namespace sailor
