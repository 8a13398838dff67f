// Maps a rank's training state (parameter values, optimizer states) to the unsharded tensors of a checkpoint
// (checkpoint_manifest.h). A rank's rows of a sharded parameter, and every slice of an optimizer, are ranges
// of elements of an unsharded tensor, without rows of padding.
//
// The plan alone determines which rank writes what: replicas of a tensor divide it evenly, so that every
// element is written once. Pure except for the tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/job_spec.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/comm/device.h"
#include "trainer/model/parameter.h"
#include "trainer/optim/loss_scaler.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/spike_guard.h"

namespace sailor {

// A checkpoint has the master weights (kMasterState), if there are any, as the parameter's value.

// Elements [first, first + values.numel()) of a rank's parameter, and where their values are.
struct HeldValues {
  const Parameter* parameter = nullptr;
  int64_t first = 0;
  at::Tensor values{};  // flat

  bool cover(const OptimizerSlice& slice) const {
    return slice.name == parameter->name && slice.first >= first && slice.first < first + values.numel();
  }
};

// The job, its plan, and this rank's objects. All outlive the object.
struct RankState {
  const JobSpec& job;
  const Plan& plan;
  const RankLayout& layout;
  const RankSlot& slot;
  const std::vector<Parameter*> parameters;
  Optimizer& optimizer;
  Device& device = host_device();     // device whose memory has the tensors
  LossScaler* loss_scaler = nullptr;  // if the precision needs one
  SpikeGuard* spike_guard = nullptr;  // if the job has one
  // Memory that restoring may use, by parameter: of its size, in the type in which it is updated.
  std::map<std::string, at::Tensor> scratch{};

  LossScaleState loss_scale() const { return loss_scaler ? loss_scaler->state() : LossScaleState(); }
  SpikeState spikes() const { return spike_guard ? spike_guard->state() : SpikeState(); }
  // All that the rank holds between two steps: of gathered parameters (ZeRO-3) the optimizer's slices.
  std::vector<HeldValues> values() const;
};

// Ranges {first, count} of a parameter's elements (rows of padding included) that a rank writes of those that
// it shares with others.
std::vector<std::pair<int64_t, int64_t>> own_share(const Plan& plan, const RankLayout& layout,
                                                   const RankSlot& slot, const ParameterSpec& parameter);

// The ranges that this rank writes. Points into the tensors of the parameters and the optimizer.
std::vector<ShardPiece> pieces_to_write(const RankState& state);
// The tensors of a checkpoint of this job, in order.
std::vector<CheckpointTensor> checkpoint_tensors(const JobSpec& job);

// Fills the rank's parameters, optimizer states, loss scale and norms, converting if the precision differs.
// What a checkpoint may lack starts anew: the loss scale from its initial value, an average from the values,
// the median of norms without any. Throws InputError when the checkpoint
// lacks a state, CheckpointDamaged; values filled until then stay.
void read_state(CheckpointReader& reader, const RankState& state);

// An unsharded parameter of a checkpoint of its model, or its average, without padding.
at::Tensor read_whole(CheckpointReader& reader, const ParameterSpec& parameter, bool average = false);

}  // namespace sailor
