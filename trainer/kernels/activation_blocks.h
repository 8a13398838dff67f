// The device kernels of activation.h: every thread has elements, or packs of them, at the distance of all
// threads.
#pragma once

#include "trainer/kernels/activation_functions.h"
#include "trainer/kernels/pack.h"

namespace sailor::kernels {

template <ActivationKind kind, class T>
SAILOR_BLOCKS void activate_pack(const ActivationPass& pass, int64_t i) {
  constexpr int kPairs = kPack<T> / 2;
  Pack<T> y;
  if (pass.gated) {
    for (int half = 0; half < 2; ++half) {
      const Pack<T> x = packs_at<T>(pass.x)[2 * i + half];
      for (int k = 0; k < kPairs; ++k)
        store(activated<kind>(load(x, 2 * k)) * load(x, 2 * k + 1), y.elements[half * kPairs + k]);
    }
  } else {
    const Pack<T> x = packs_at<T>(pass.x)[i];
    for (int k = 0; k < kPack<T>; ++k) store(activated<kind>(load(x, k)), y.elements[k]);
  }
  packs_at<T>(pass.result)[i] = y;
}

template <ActivationKind kind, class T>
SAILOR_BLOCKS void activate_pack_backward(const ActivationPass& pass, int64_t i) {
  using R = Computed<T>;
  constexpr int kPairs = kPack<T> / 2;
  const Pack<T> g = packs_at<T>(pass.for_y)[i];
  Pack<T> for_x;
  if (pass.gated) {
    for (int half = 0; half < 2; ++half) {
      const Pack<T> x = packs_at<T>(pass.x)[2 * i + half];
      for (int k = 0; k < kPairs; ++k) {
        const ValueAndSlope<R> f = value_and_slope<kind>(load(x, 2 * k));
        const R gradient = load(g, half * kPairs + k);
        store(gradient * load(x, 2 * k + 1) * f.slope, for_x.elements[2 * k]);
        store(gradient * f.value, for_x.elements[2 * k + 1]);
      }
      packs_at<T>(pass.result)[2 * i + half] = for_x;
    }
  } else {
    const Pack<T> x = packs_at<T>(pass.x)[i];
    for (int k = 0; k < kPack<T>; ++k)
      store(load(g, k) * value_and_slope<kind>(load(x, k)).slope, for_x.elements[k]);
    packs_at<T>(pass.result)[i] = for_x;
  }
}

template <class T, class Grid>
SAILOR_BLOCKS void activation_forward_blocks(Grid& grid, const ActivationPass& pass) {
  const int64_t threads = grid.threads(), first = grid.block() * threads + grid.thread(),
                step = grid.blocks() * threads;
  const int64_t packs = aligned(pass.x, pass.result) ? pass.count / kPack<T> : 0;
  with_activation(pass.kind, [&](auto kind) {
    for (int64_t i = first; i < packs; i += step) activate_pack<decltype(kind)::value, T>(pass, i);
    activate<decltype(kind)::value, T>(pass, packs * kPack<T> + first, pass.count, step);
  });
}

template <class T, class Grid>
SAILOR_BLOCKS void activation_backward_blocks(Grid& grid, const ActivationPass& pass) {
  const int64_t threads = grid.threads(), first = grid.block() * threads + grid.thread(),
                step = grid.blocks() * threads;
  const int64_t packs = aligned(pass.x, pass.for_y, pass.result) ? pass.count / kPack<T> : 0;
  with_activation(pass.kind, [&](auto kind) {
    for (int64_t i = first; i < packs; i += step) activate_pack_backward<decltype(kind)::value, T>(pass, i);
    activate_backward<decltype(kind)::value, T>(pass, packs * kPack<T> + first, pass.count, step);
  });
}

}  // namespace sailor::kernels
