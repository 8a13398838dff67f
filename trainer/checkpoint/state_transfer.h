// Transfers the training state from the ranks that hold it to those that need it under another plan: from
// memory to memory, over the data plane.
//
//     const std::optional<TransferredState> state = transfer_state(world, held, target);
//     if (!state) load_checkpoint(...);
//
// Every rank tells the others which elements of which state it holds (held_state.h). Of the newest state that
// is complete over all of them, each rank fetches what its parameters and optimizer slices need: from its own
// memory, else from ranks of its node, else evenly from all ranks that hold it. All messages are in flight
// concurrently, in pieces, directly from memory to memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/checkpoint/held_state.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/communicator.h"

namespace sailor {

struct TransferredState {
  StateVersion version;
  bool from_copies = false;    // copies were needed on some rank
  int64_t bytes_received = 0;  // by this rank
};

// Fills the parameters, the optimizer and the loss scale of `target`. Called by all ranks of its plan, which
// `world` has in their order, and by further ranks that are not in the plan and only send: their `target` is
// nullptr. Each passes all states that it holds, or none. Nothing if no state is complete, and then nothing
// was changed. States in use are preferred to copies of the same version. Throws CommError, after which
// `target` is undefined and the held states are unchanged.
std::optional<TransferredState> transfer_state(Communicator& world, const std::vector<HeldState>& held,
                                               const RankState* target, Precision precision);

}  // namespace sailor
