// The part of the training state that one process holds after some step, in use by a trainer or in a copy:
// ranges of elements of unsharded parameters, each with its values and optimizer states. This form is
// independent of the plan, so that ranks of any plan can use it (state_transfer.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "trainer/checkpoint/state_snapshot.h"
#include "trainer/checkpoint/state_version.h"
#include "trainer/checkpoint/training_state.h"

namespace sailor {

// Elements [first, first + count) of an unsharded parameter, without padding.
struct HeldRange {
  std::size_t parameter = 0;  // index in the order of specs_by_name() (parameter_place.h)
  int64_t first = 0;
  int64_t count = 0;
  // The values in the type in which they are updated, then the optimizer states in order, all in
  // gradient_type().
  std::vector<const char*> tensors{};
};

struct HeldState {
  StateVersion version;
  int64_t optimizer_steps = 0;
  LossScaleState loss_scale{};
  SpikeState spikes{};
  bool copy = false;  // not in use by a trainer
  // Device whose memory has the ranges.
  Device* device = &host_device();
  std::vector<HeldRange> ranges{};
};

// State of a trainer: what its optimizer's slices own, which is complete even if distributing updated values
// to other ranks was interrupted. Points into its tensors.
HeldState held_by(const RankState& state, const StateVersion& version);
// State of a snapshot of this job; points into it.
HeldState held_by(const JobSpec& job, const RankLayout& layout, const StateSnapshot& snapshot);

}  // namespace sailor
