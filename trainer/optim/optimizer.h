// Updates this rank's parameters from their gradients.
//
//     auto optimizer = make_optimizer(job.training.optimizer, slices);
//     optimizer->step(learning_rate(job.training, step), clipping_factor);
//
// An optimizer owns slices: ranges of elements of the rank's parameters. Without ZeRO-1 a parameter is one
// slice; with it, a rank only has its part. Every update is elementwise, so that any division gives the same
// bits, and rounds equally on every CPU, so that replicas on different ones stay equal. Slices on a GPU are
// updated by libtorch's kernels there, on the calling thread's stream; a gradient scale other than 1 rounds
// the gradients.
//
// Values of 16 bits have an fp32 master copy, which is updated; the value is the master rounded to nearest
// even. State has the type of the gradient, and is where the gradient is; or offloaded, in host memory on
// which the device computes over its link (planner/spec/offload.h). One thread per object; step() itself uses
// ATen's threads.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "trainer/comm/device.h"
#include "trainer/optim/operator_kernels.h"

namespace sailor {

struct OptimizerSlice {
  std::string name;     // of the parameter
  bool decay = false;   // weight decay applies
  int64_t first = 0;    // elements [first, first + count) of the rank's flat parameter
  int64_t count = 0;    // > 0
  at::Tensor value;     // 1-D view of them in the model's type: f32, f64, bf16 or f16
  at::Tensor gradient;  // 1-D view, f32 (f64 where the value is), summed over all pipelines
  bool linear = false;  // the parameter is a weight of a linear layer in a block
  // Of the parameter's group (planner/spec/parameter_groups.h): a factor of the learning rate, and a weight
  // decay in place of the spec's, whatever `decay` says.
  double lr_scale = 1;
  std::optional<double> weight_decay{};

  // Of a spec with this weight decay.
  double own_weight_decay(double of_spec) const { return weight_decay.value_or(decay ? of_spec : 0); }
  bool is_updated_like(const OptimizerSlice& other) const {
    return decay == other.decay && linear == other.linear && lr_scale == other.lr_scale &&
           weight_decay == other.weight_decay;
  }
};

// The optimizer state that values of 16 bits are rounded from.
constexpr const char* kMasterState = "master";

// The moving average of the values (training.ema).
constexpr const char* kAverageState = "ema";

// State of a slice that must be saved to resume.
struct OptimizerState {
  std::string name;   // one of state_names(), `master` (16-bit values) or `ema`
  at::Tensor tensor;  // 1-D, as long as the slice; shared with the optimizer: write into it to load
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates every slice from its gradient times `gradient_scale` (the clipping factor; 1 = none).
  void step(double learning_rate, double gradient_scale);

  // Keeps a moving average of the values, or of their masters, from these on; once, before the first step.
  void keep_average();
  // After a step.
  void update_average(double decay);
  // Exchanges the values with their averages, the latter rounded to 16 bits where values are. Twice: as
  // before, with the same bits.
  void exchange_average();

  // As step() does on a device, wherever the slices are.
  void step_by_operators(double learning_rate, double gradient_scale);

  int64_t steps_done() const { return steps_done_; }
  void set_steps_done(int64_t steps) { steps_done_ = steps; }  // after loading a checkpoint

  const std::vector<OptimizerSlice>& slices() const { return slices_; }
  // State of slice i, in a fixed order of names.
  const std::vector<OptimizerState>& state(std::size_t i) const { return states_[i]; }
  // What a step reads of offloaded states, and writes; 0 if they are where the gradients are.
  int64_t offloaded_bytes() const;
  // Copies the values to the master weights and averages, after weights were loaded without a state.
  void values_were_loaded();

 protected:
  // Throws std::invalid_argument naming the slice whose tensors do not match. Creates a zeroed tensor for
  // each of a slice's state_names(), before `master`. `offloads`: the device of the slices, which outlives
  // this, if states are offloaded.
  Optimizer(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices, Device* offloads);

  // Called once per step before the elements.
  virtual void begin(double learning_rate) = 0;
  // Updates `count` elements of slice i from element `first` of the slice on. Called by several threads
  // concurrently, for elements that do not overlap.
  virtual void update(std::size_t i, int64_t first, int64_t count, double gradient_scale) = 0;
  // The same for whole slices on a device, those with these indices, which are updated alike.
  virtual void update_on_device(const std::vector<std::size_t>& alike, double gradient_scale) = 0;
  std::vector<UpdatedTensors> whole(const std::vector<std::size_t>& alike) const;

  // Calls work(slice, first element in it, count) for all elements, from several threads.
  using RangeWork = std::function<void(std::size_t i, int64_t first, int64_t count)>;
  void for_each_range(const RangeWork& work) const;
  // Calls run(value, rounded) with the memory of slice i from an element on: what is updated, and for 16-bit
  // values, whose masters that are, their own; a null pointer to void for others.
  template <class Run>
  void with_values(std::size_t i, int64_t first, const Run& run) const {
    const at::Tensor& value = slices_[i].value;
    const at::Tensor* const master = state(i, kMasterState);
    switch (value.scalar_type()) {
      case at::kDouble:
        return run(value.data_ptr<double>() + first, static_cast<void*>(nullptr));
      case at::kBFloat16:
        return run(master->data_ptr<float>() + first,
                   reinterpret_cast<Bf16*>(value.data_ptr<at::BFloat16>()) + first);
      case at::kHalf:
        return run(master->data_ptr<float>() + first,
                   reinterpret_cast<Fp16*>(value.data_ptr<at::Half>()) + first);
      default:
        return run(value.data_ptr<float>() + first, static_cast<void*>(nullptr));
    }
  }

 private:
  const at::Tensor* state(std::size_t i, const char* name) const;  // nullptr: slice i has no such
  at::Tensor new_state(std::size_t i) const;                       // zeros

  Device* const offloads_;
  std::vector<OptimizerSlice> slices_;
  std::vector<std::vector<OptimizerState>> states_;
  std::vector<int64_t> ends_;  // elements up to the end of each slice
  int64_t steps_done_ = 0;
  bool exchanged_ = false;  // by exchange_average()
};

// The slices with the settings of their parameters' groups.
std::vector<OptimizerSlice> in_groups(const JobSpec& job, std::vector<OptimizerSlice> slices);

// The states of a slice but for kMasterState and kAverageState, in their order: `m` and `v` of what AdamW
// updates; `momentum` of what Muon or SGD with momentum do.
std::vector<std::string> state_names(const OptimizerSpec& spec, bool linear);

// Throws InputError when the spec names an optimizer that the trainer does not have.
// `offloads`: as for Optimizer().
std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec, std::vector<OptimizerSlice> slices,
                                          Device* offloads = nullptr);

}  // namespace sailor
