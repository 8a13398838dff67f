// Gradient reduction as in our own trainer's communicators: every member of a group sends each other member
// its part, then the sum of its own part, over a port per rank and network cards that the ranks of a node
// share. Between messages the rank's processor packs, adds and unpacks. This file computes the work of a
// reduction on each; mesh_replay.h computes when the reductions of a plan end. Pure.
//
// Where replicas have unlike TP degrees, a bucket falls into shares, and a rank of the lowest degree sums
// them in turn, each with the ranks that hold it. A rank of a higher degree has fewer of them. All ranks send
// the parts of their first share at once, over cards that they share; the parts of the next ones, and all
// sums, only in their turn.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/simulator/plan_classes.h"

namespace sailor::native {

struct MeshSums {
  // Work of the GPU groups (all TP ranks of a stage) of one class on nodes of one class in one phase (parts
  // or sums) of a bucket.
  struct Member {
    int rank = 0;       // class
    int node = 0;       // class
    int count = 0;      // on one node
    double port_s = 0;  // on the sender's port, the slowest of its TP ranks
    double card_s = 0;  // on the node's cards, all of its TP ranks together; 0 if nothing leaves the node
    double backward_end_s = 0;  // end of the backward of the bucket's lowest layer; filled in by the replay
    double turns = 1;  // port_s times this is what the phase of sums takes: only one TP rank sends in a turn
    double first = 1;  // part of port_s for the first share
    double card_first_s = 0;  // on the node's cards for the first share: all groups of the bucket
  };
  // Adjacent layers with the same holders that are reduced together.
  struct Bucket {
    int group = 0;  // in the list of layer groups
    int first_layer = 0;
    double latency_s = 0;                        // of a phase
    uint32_t first_member = 0, num_members = 0;  // in `members`
    double later_s = 0;  // of the parts of all shares but the first, after those of the first have arrived
  };

  std::span<Member> of(const Bucket& bucket) {
    return {members.data() + bucket.first_member, bucket.num_members};
  }
  std::span<const Member> of(const Bucket& bucket) const {
    return {members.data() + bucket.first_member, bucket.num_members};
  }

  // By layer group: the time without other traffic, additions on the ranks' processors included; that part
  // of it; the time to gather as many bytes.
  std::vector<double> alone_s, processor_s, gather_s;
  // By class of ranks: hybrid ZeRO's sums over copies after the rounds of sharded gradients. Otherwise they
  // are part of the members' phase of parts.
  std::vector<double> copies_s;
  std::vector<Bucket> buckets;  // from the last layer down, in the order of their reduction
  std::vector<Member> members;  // by bucket, then class of ranks
  double tally_s = 0;           // two numbers that all ranks reduce at the end of an iteration
};

// Buckets take layers until they have the style's sync_bucket_bytes (of one TP rank's share), like those of
// the trainer (trainer/parallel/gradient_buckets.h); with sharded gradients every layer is one. None for a
// single pipeline. Fills `sums`, whose memory is reused.
void find_mesh_sums(const CompactPlan& plan, const PlanClasses& classes,
                    const std::vector<LayerGroup>& groups, StageKinds& kinds, MeshSums& sums);

}  // namespace sailor::native
