#include "trainer/model/recomputed.h"

#include <ATen/core/grad_mode.h>

namespace sailor {

const at::Tensor& Recomputed::get() {
  const at::NoGradGuard no_graph;
  if (!value_.defined()) value_ = compute_();
  return value_;
}

at::Tensor Recomputed::take() {
  get();
  return std::exchange(value_, at::Tensor());
}

RecomputedPtr recomputed(TensorCall compute) {
  return c10::make_intrusive<Recomputed>(std::move(compute));
}

c10::IValue packed(const RecomputedPtr& tensor) {
  return c10::IValue::make_capsule(tensor);
}

Recomputed& unpacked(const c10::IValue& packed) {
  return static_cast<Recomputed&>(*packed.toCapsule());
}

}  // namespace sailor
