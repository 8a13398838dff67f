// Adds up the gradients of one rank's parameters over all pipelines, so that every replica ends up with the
// same bits.
//
// Gradients are copied into flat buckets, one all-reduce each, in one global order of groups. One thread per
// object.
#pragma once

#include <memory>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "trainer/comm/communicator.h"
#include "trainer/model/layer.h"
#include "trainer/parallel/groups.h"

namespace sailor {

class GradientSync {
 public:
  // Creates the communicators of the groups that `rank` is in (CommError). `tp` is the rank's TP group,
  // nullptr when alone; it and the parameters outlive the object.
  GradientSync(const Plan& plan, const RankLayout& layout, int rank, CommFactory& factory, Communicator* tp,
               std::vector<Parameter*> parameters);

  // In place on the gradients, which must all be defined.
  void run();

 private:
  struct Group {
    std::unique_ptr<Communicator> comm;
    std::vector<SubShard> shards;
  };
  std::vector<at::Tensor> gradients_of(const Group& group) const;

  std::vector<Group> groups_;
  Communicator* tp_;
  std::vector<Parameter*> parameters_;
  at::Tensor buffer_;  // of the largest bucket so far
};

}  // namespace sailor
