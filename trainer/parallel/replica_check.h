// Compares the replicas of the training state: the parameters that the ranks of several pipelines hold alike,
// those that all ranks of a TP group hold alike, and without ZeRO-1 their optimizer states. With hybrid ZeRO
// the groups of pipelines compare among themselves what each shares. Replicas have the same bits after every
// step, on any hardware and under any plan; a difference is a fault of memory, of a device or of the program.
//
//     ReplicaCheck check(plan, layout, rank, gradient_sync, tp, world, tied_embeddings, device);
//     const ReplicaReport report = check.run(state, OnDivergence::heal);   // the same on every rank
//
// Every rank hashes what it holds for each of its groups (groups.h), and all ranks exchange the hashes: 8 B a
// rank and group. All ranks call these functions between the same two steps. They throw CommError, after
// which the object is unusable. One thread per object.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/plan/rank_layout.h"
#include "planner/spec/job_spec.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/gradient_sync.h"

namespace sailor {

// Flat tensors, values first: what the replicas of a parameter hold alike, by its name, nothing of gathered
// parameters (ZeRO-3); with ZeRO-1 each slice of the optimizer, of which hybrid ZeRO has replicas.
struct ReplicatedState {
  std::map<std::string, std::vector<at::Tensor>> parameters;
  std::vector<std::vector<at::Tensor>> slices;
};
// `sharded`: ZeRO-1.
ReplicatedState replicated_state(const std::vector<Parameter*>& parameters, const Optimizer& optimizer,
                                 bool sharded);

struct ReplicaReport {
  // A line for each rank of a minority, and one for each group without a majority: "rank 3 (pipeline 1, stage
  // 0, node a2) has another state of layers 2 to 5 than 2 other ranks".
  std::vector<std::string> lines;
  bool ends_job = false;  // as wanted, or because there is no majority to repair the state from
};

class ReplicaCheck {
 public:
  // The arguments are those of `sync`; they outlive the object.
  ReplicaCheck(const Plan& plan, const RankLayout& layout, int rank, const GradientSync& sync,
               Communicator* tp, Communicator& world, bool tied_embeddings, Device& device);

  // Compares, and with OnDivergence::heal copies what differs from its majority.
  ReplicaReport run(const ReplicatedState& state, OnDivergence action) const;

 private:
  struct Divergence {
    std::size_t group = 0;   // index
    std::vector<int> ranks;  // of the job, that differ from the majority; all members if there is none
    int healthy = -1;        // the first rank of the majority; -1: no majority
  };
  // In the order of the groups.
  std::vector<Divergence> compare(const ReplicatedState& state) const;
  std::vector<std::string> lines_of(const Divergence& divergence) const;
  // Ranks that hold the same elements of some parameters: those of a gradient group that share states, or
  // have copies of the same slices; or a TP group with its replicated parameters.
  struct Group {
    std::vector<int> ranks;
    std::string what;
    Communicator* communicator = nullptr;  // nullptr: this rank is not a member
    std::vector<GradientSegment> segments;
    std::vector<std::size_t> slices{};  // indices in ReplicatedState::slices
  };
  void add_gradient_groups(const Plan& plan, const RankLayout& layout, const GradientSync& sync,
                           bool tied_embeddings);
  void add_tp_groups(const RankLayout& layout, Communicator* tp);
  // The memory of what this rank holds of a group: runs of bytes whose concatenation is the same on all
  // members, values before states.
  std::vector<std::span<char>> memory_of(const Group& group, const ReplicatedState& state) const;
  int64_t hash(const Group& group, const ReplicatedState& state) const;
  void copy_from(int root, const Group& group, const ReplicatedState& state) const;

  const int rank_;
  const RankLayout& layout_;
  const std::vector<Parameter*>& order_;
  Communicator& world_;
  Device& device_;
  std::vector<Group> groups_;  // equally many on all ranks
};

}  // namespace sailor
