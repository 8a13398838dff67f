// The gradients of a layer's weights that its backward leaves for later (planner/spec/split_backward.h): of
// one microbatch.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <utility>
#include <vector>

namespace sailor {

// Filled by the thread of the backward, used by the caller's after it.
class LaterGradients : public torch::CustomClassHolder {
 public:
  // What is still to be done for a weight.
  void add(std::function<void()> task) { tasks_.push_back(std::move(task)); }
  // Does it, in the order of the backward, which is the same on all ranks of a TP group, and frees what it
  // needed. Without a graph. Throws CommError where tokens are split.
  void compute();

 private:
  std::vector<std::function<void()>> tasks_;
};
using LaterGradientsPtr = c10::intrusive_ptr<LaterGradients>;

// For autograd's saved data.
c10::IValue packed(const LaterGradientsPtr& later);
LaterGradients& unpacked_later(const c10::IValue& packed);

}  // namespace sailor
