// Between what a rank holds of the state of training (values of parameters, states of the optimizer) and the
// whole tensors of a checkpoint (checkpoint_manifest.h). A rank's rows of a sharded parameter, and every
// slice of an optimizer, are runs of elements of a whole tensor; rows of padding are not part of it.
//
// Which rank writes what follows from the plan alone: what several ranks hold, they share out evenly, so that
// every element is written once. Pure but for the tensors.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/job_spec.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/comm/device.h"
#include "trainer/model/parameter.h"
#include "trainer/optim/optimizer.h"

namespace sailor {

// A checkpoint has the master copy (kMasterState), where there is one, as the parameter's value.

// What one rank has to do with: of the job, its plan, and itself. All outlive the object.
struct RankState {
  const JobSpec& job;
  const Plan& plan;
  const RankLayout& layout;
  const RankSlot& slot;
  const std::vector<Parameter*> parameters;
  Optimizer& optimizer;
  Device& device = host_device();  // in whose memory the tensors are
};

// Runs {first, count} of a parameter's elements (rows of padding included) that a rank writes of those that
// it shares with others.
std::vector<std::pair<int64_t, int64_t>> own_share(const Plan& plan, const RankLayout& layout,
                                                   const RankSlot& slot, const ParameterSpec& parameter);

// What this rank writes. Points into the tensors of the parameters and the optimizer.
std::vector<ShardPiece> pieces_to_write(const RankState& state);
// The tensors of a checkpoint of this model, whose states have these names, in order.
std::vector<CheckpointTensor> checkpoint_tensors(const JobSpec& job, const std::vector<std::string>& states);

// Fills the rank's parameters and its optimizer's states, converting where the precision is another. Throws
// InputError when the checkpoint lacks a state, CheckpointDamaged; what was filled until then stays filled.
void read_state(CheckpointReader& reader, const RankState& state);

// A whole parameter out of a checkpoint of its model, without padding.
at::Tensor read_whole(CheckpointReader& reader, const ParameterSpec& parameter);

}  // namespace sailor
