// Gradient sums as our own trainer's communicators do them: every member of a group sends each other member
// its part, then the sum of its own part, over ports that a rank has for itself and network cards that the
// ranks of a node share. The rank's own processor packs, adds and unpacks between the messages. Here is what
// a sum needs of each; when the sums of a plan end is in mesh_replay.h. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/simulator/plan_classes.h"

namespace sailor::native {

struct MeshSums {
  // What GPU groups (all TP ranks of a stage) of one class on nodes of one class need for one phase, parts or
  // sums, of a bucket.
  struct Member {
    int rank = 0;       // class
    int node = 0;       // class
    int count = 0;      // on one node
    double port_s = 0;  // of the sender's own port, the slowest of its TP ranks
    double card_s = 0;  // of the node's cards, all of its TP ranks together; 0 when nothing leaves the node
    double backward_end_s = 0;  // of the bucket's lowest layer; filled in by who replays
  };
  // Neighbouring layers with the same holders that are summed together.
  struct Bucket {
    int group = 0;  // in the list of layer groups
    int first_layer = 0;
    double latency_s = 0;                        // of a phase
    uint32_t first_member = 0, num_members = 0;  // in `members`
  };

  std::span<Member> of(const Bucket& bucket) {
    return {members.data() + bucket.first_member, bucket.num_members};
  }
  std::span<const Member> of(const Bucket& bucket) const {
    return {members.data() + bucket.first_member, bucket.num_members};
  }

  std::vector<double> alone_s;      // by layer group: with the network to itself
  std::vector<double> processor_s;  // of that: the ranks' own work
  std::vector<Bucket> buckets;      // from the last layer down, the order in which ranks sum them
  std::vector<Member> members;      // by bucket, then class of ranks
  double tally_s = 0;               // two numbers that all ranks sum at the end of an iteration
};

// Buckets take layers until they hold the style's sync_bucket_bytes (of one TP rank's share), as the
// trainer's do (trainer/parallel/gradient_buckets.h). None for a single pipeline. Fills `sums`, which may be
// those of another plan: their memory is used again.
void find_mesh_sums(const CompactPlan& plan, const PlanClasses& classes,
                    const std::vector<LayerGroup>& groups, StageKinds& kinds, MeshSums& sums);

}  // namespace sailor::native
