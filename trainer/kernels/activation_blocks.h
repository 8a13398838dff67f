// The device kernels of activation.h: every thread has elements at the distance of all threads.
#pragma once

#include "trainer/kernels/activation_functions.h"
#include "trainer/kernels/grid.h"

namespace sailor::kernels {

template <class T, class Grid>
SAILOR_BLOCKS void activation_forward_blocks(Grid& grid, const ActivationPass& pass) {
  const int64_t threads = grid.threads(), first = grid.block() * threads + grid.thread();
  with_activation(pass.kind, [&](auto kind) {
    activate<decltype(kind)::value, T>(pass, first, pass.count, grid.blocks() * threads);
  });
}

template <class T, class Grid>
SAILOR_BLOCKS void activation_backward_blocks(Grid& grid, const ActivationPass& pass) {
  const int64_t threads = grid.threads(), first = grid.block() * threads + grid.thread();
  with_activation(pass.kind, [&](auto kind) {
    activate_backward<decltype(kind)::value, T>(pass, first, pass.count, grid.blocks() * threads);
  });
}

}  // namespace sailor::kernels
