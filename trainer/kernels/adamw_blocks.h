// The device kernel of adamw.h: every thread has packs of elements at the distance of all threads.
#pragma once

#include "trainer/kernels/adamw.h"
#include "trainer/kernels/arithmetic.h"
#include "trainer/kernels/pack.h"

namespace sailor::kernels {

template <class T>
class AdamWFormula {
 public:
  SAILOR_BLOCKS explicit AdamWFormula(const AdamWUpdate& u)
      : beta1_(static_cast<T>(u.beta1)),
        rest1_(static_cast<T>(1 - u.beta1)),
        beta2_(static_cast<T>(u.beta2)),
        rest2_(static_cast<T>(1 - u.beta2)),
        epsilon_(static_cast<T>(u.epsilon)),
        keep_(static_cast<T>(u.keep)),
        step_size_(static_cast<T>(u.step_size)),
        second_correction_(static_cast<T>(u.second_correction)),
        scale_(static_cast<T>(u.gradient_scale)) {}

  SAILOR_BLOCKS void operator()(T& value, T gradient, T& m, T& v) const {
    gradient *= scale_;
    m = beta1_ * m + rest1_ * gradient;
    v = beta2_ * v + rest2_ * gradient * gradient;
    value = keep_ * value - step_size_ * m / (square_root(v * second_correction_) + epsilon_);
  }

 private:
  T beta1_, rest1_, beta2_, rest2_, epsilon_, keep_, step_size_, second_correction_, scale_;
};

// As many 16-bit elements as a pack has wider ones.
template <class T, class R>
struct alignas(kPack<T> * sizeof(R)) RoundedPack {
  R elements[kPack<T>];
};

template <class T, class R>
SAILOR_BLOCKS void store_rounded(const Pack<T>& values, void* rounded, int64_t i) {
  RoundedPack<T, R> pack;
  for (int k = 0; k < kPack<T>; ++k) store(static_cast<float>(values.elements[k]), pack.elements[k]);
  static_cast<RoundedPack<T, R>*>(rounded)[i] = pack;
}

template <class T, class Grid>
SAILOR_BLOCKS void adamw_blocks(Grid& grid, const AdamWUpdate& update) {
  const AdamWFormula<T> formula(update);
  const int64_t threads = grid.threads(), first = grid.block() * threads + grid.thread(),
                step = grid.blocks() * threads;
  const bool in_packs = aligned(update.value, update.rounded, update.gradient, update.m, update.v);
  const int64_t packs = in_packs ? update.count / kPack<T> : 0;
  for (int64_t i = first; i < packs; i += step) {
    const Pack<T> g = packs_at<T>(update.gradient)[i];
    Pack<T> value = packs_at<T>(update.value)[i], m = packs_at<T>(update.m)[i], v = packs_at<T>(update.v)[i];
    for (int k = 0; k < kPack<T>; ++k)
      formula(value.elements[k], g.elements[k], m.elements[k], v.elements[k]);
    packs_at<T>(update.value)[i] = value;
    packs_at<T>(update.m)[i] = m;
    packs_at<T>(update.v)[i] = v;
    if (!update.rounded) continue;
    if (update.rounded_type == Element::bf16) {
      store_rounded<T, Bf16>(value, update.rounded, i);
    } else {
      store_rounded<T, Fp16>(value, update.rounded, i);
    }
  }
  T* const value = static_cast<T*>(update.value);
  for (int64_t i = packs * kPack<T> + first; i < update.count; i += step) {
    formula(value[i], static_cast<const T*>(update.gradient)[i], static_cast<T*>(update.m)[i],
            static_cast<T*>(update.v)[i]);
    if (!update.rounded) continue;
    if (update.rounded_type == Element::bf16) {
      store(static_cast<float>(value[i]), static_cast<Bf16*>(update.rounded)[i]);
    } else {
      store(static_cast<float>(value[i]), static_cast<Fp16*>(update.rounded)[i]);
    }
  }
}

}  // namespace sailor::kernels
