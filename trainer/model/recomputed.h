// Tensors that a backward computes again instead of keeping them (planner/spec/recompute.h), with the same
// bits.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <utility>

namespace sailor {

// Computes a tensor.
using TensorCall = std::function<at::Tensor()>;

// How to compute a tensor again, from others that are kept. It must not depend on what changes between the
// forward and the backward of a microbatch. Used by the thread of the backward.
class Recomputed : public torch::CustomClassHolder {
 public:
  explicit Recomputed(TensorCall compute) : compute_(std::move(compute)) {}
  // Without a graph. The result stays for take().
  const at::Tensor& get();
  // The same, for the last that needs it in a backward.
  at::Tensor take();

 private:
  const TensorCall compute_;
  at::Tensor value_;
};
using RecomputedPtr = c10::intrusive_ptr<Recomputed>;

RecomputedPtr recomputed(TensorCall compute);
// For autograd's saved data.
c10::IValue packed(const RecomputedPtr& tensor);
Recomputed& unpacked(const c10::IValue& packed);

// An input of an operator, which keeps it for its backward; or, where there is a way to compute it again,
// keeps that.
struct OperatorInput {
  at::Tensor value;
  RecomputedPtr again{};

  // NOLINTNEXTLINE(google-explicit-constructor): most inputs are kept.
  OperatorInput(at::Tensor kept) : value(std::move(kept)) {}
  OperatorInput(at::Tensor now, RecomputedPtr later) : value(std::move(now)), again(std::move(later)) {}
};

}  // namespace sailor
