// Brings the state of training from the ranks that hold it to those that need it, under a plan of its own:
// from memory to memory, over the data plane.
//
//     const std::optional<TransferredState> state = transfer_state(world, held, target);
//     if (!state) load_checkpoint(...);
//
// Every rank tells the others which elements of which state it holds (held_state.h). Of the newest state that
// is whole among all of them, each rank asks for what its parameters and its optimizer's slices need: it
// takes from its own memory what is there, else from ranks of its node, else from all ranks alike that hold
// it. All messages are under way at once, in pieces, from the memory of the one straight into that of the
// other.
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
  bool from_copies = false;    // copies were needed, on some rank at least
  int64_t bytes_received = 0;  // by this rank
};

// Fills the parameters and the optimizer of `target`. Called by all ranks of its plan, which `world` holds in
// their order, and by those behind them that are in no plan any more and only give: their `target` is
// nullptr. Each comes with all states that it holds, or none. Nothing when no state is whole, and then
// nothing was changed. What is in use counts before what is a copy of the same version. Throws CommError,
// after which `target` is undefined and what is held is as it was.
std::optional<TransferredState> transfer_state(Communicator& world, const std::vector<HeldState>& held,
                                               const RankState* target, Precision precision);

}  // namespace sailor
