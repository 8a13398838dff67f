// The parts of one rank before training: the communicators of its TP and its context-parallel group and to
// its neighbours, and the layers of its chunks with their initial values. Built by all ranks of the plan
// together.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/job_spec.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/layer.h"
#include "trainer/parallel/stage_link.h"
#include "trainer/pipeline/chunk.h"
#include "trainer/pipeline/executor.h"

namespace sailor {

// Throws InputError when the trainer cannot run this plan of this job.
void check_trainable(const JobSpec& job, const Plan& plan);

struct RankStage {
  // Parameters and activations are in `place`, the memory of the factory's communicators. Throws CommError.
  // Requires check_trainable().
  RankStage(const JobSpec& job, const Plan& plan, const RankLayout& layout, int rank, CommFactory& factory,
            at::Device place);

  GroupPosition position;
  std::unique_ptr<Communicator> tp, cp;        // nullptr if the group has one GPU
  std::unique_ptr<StageLink> previous, next;   // nullptr if there is no neighbour
  std::vector<std::unique_ptr<Layer>> layers;  // with their initial values, except with ZeRO-3
  std::vector<Chunk> chunks;                   // of the layers

  // Calls function() for a copy of each layer, one at a time, that has the initial values; with ZeRO-3
  // `layers` have none.
  void for_each_filled_layer(const JobSpec& job, const RankLayout& layout, at::Device place,
                             const std::function<void(Layer&)>& function) const;

  std::vector<Parameter*> parameters();  // in the order of layers
  std::vector<Parameter*> trained();     // of these: those that are not frozen
  void settle() const;                   // all communicators; throws CommError

 private:
  void connect(const Plan& plan, const RankLayout& layout, CommFactory& factory, at::Device place);
  void build(const JobSpec& job, const Plan& plan, const RankLayout& layout, at::Device place);
};

}  // namespace sailor
