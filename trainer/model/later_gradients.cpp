#include "trainer/model/later_gradients.h"

#include <ATen/core/grad_mode.h>

namespace sailor {

void LaterGradients::compute() {
  const at::NoGradGuard no_graph;
  for (std::function<void()>& task : tasks_) {
    task();
    task = nullptr;
  }
  tasks_.clear();
}

c10::IValue packed(const LaterGradientsPtr& later) {
  return c10::IValue::make_capsule(later);
}

LaterGradients& unpacked_later(const c10::IValue& packed) {
  return static_cast<LaterGradients&>(*packed.toCapsule());
}

}  // namespace sailor
