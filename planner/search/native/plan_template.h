// The search state of the native search: a plan without names, in which equal pipelines appear once. A
// template has the stages of each class of pipelines, its number of pipelines and microbatches, and how its
// GPU groups are assigned to nodes; assign() turns it into a plan on nodes. Value types.
//
// Placement is one number, the block: pipelines are assigned to the nodes in blocks of that size, within a
// block stage by stage. Block 1 keeps a pipeline together on its nodes, a block of all pipelines keeps the
// replicas of a stage together, and sizes in between divide a node among several stages with several replicas
// each.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/native/space.h"
#include "planner/simulator/compact_plan.h"

namespace sailor::native {

struct TemplateStage {
  int option = 0;  // of the space: pool and TP degree
  int end_layer = 0;
  StageRecompute recompute{};
  int weight_delay = kWholeBackward;
  Offload offload = Offload::none;

  bool operator==(const TemplateStage&) const = default;
};

struct TemplateClass {
  // With interleave v, v entries per group of GPUs: entry k is chunk k / P on the GPUs of entry k mod P.
  std::vector<TemplateStage> stages;
  int pipelines = 1;
  // Of all its pipelines together; divided as evenly as possible, if interleaved in rounds of as many as
  // there are groups.
  int64_t microbatches = 0;
  int microbatch = 0;  // sequences of each; 0: the template's

  bool operator==(const TemplateClass&) const = default;
};

// The next node of a pool.
enum class Fill {
  packed,    // the first with room
  even,      // all nodes that the pool needs, with equal numbers of GPUs on each
  together,  // the one that all replicas of a stage, within a block, fill best; if there is none, the first
};

struct PlanTemplate {
  int microbatch = 1;
  Zero zero = Zero::none;
  int zero_group = 0;  // pipelines that share one copy of the states, if they can (zero_group_of()); 0: all
  int interleave = 1;
  int block = 1;
  Fill fill = Fill::packed;
  std::vector<TemplateClass> classes;

  bool operator==(const PlanTemplate&) const = default;
  int pipelines() const;
  int microbatch_of(const TemplateClass& of) const { return of.microbatch > 0 ? of.microbatch : microbatch; }
  size_t groups(const TemplateClass& of) const { return of.stages.size() / static_cast<size_t>(interleave); }
};

// Does any layer have several holders, whose gradients are summed?
bool has_replicas(const Space& space, const PlanTemplate& of);
// Do its pipelines have microbatches of different sizes?
bool has_unlike_microbatches(const PlanTemplate& of);
// The ZeRO degrees that it may have.
std::span<const Zero> zero_degrees_of(const Space& space, const PlanFeatures& offered,
                                      const PlanTemplate& of);
// Its zero_group if the plan can have it, else 0; and those that are worth trying: as many pipelines as a
// node has replicas of a stage, and those of a class.
int zero_group_of(const Space& space, const PlanTemplate& of);
std::vector<int> zero_groups_to_try(const Space& space, const PlanTemplate& of);
// GPUs that share the sums of the gradients of a stage on this option, were all pipelines alike.
int sharers(const Space& space, const PlanTemplate& of, int option);

// Assigns GPUs to a template. False if the space does not have the GPUs, or not together on nodes. Nodes are
// numbered as in the space.
bool assign(const Space& space, const PlanTemplate& of, CompactPlan& plan);

// The plan with names: the same nodes, and GPUs of each.
Plan plan_of(const Space& space, const CompactPlan& compact);

// The template of a plan, with block 1, whole backwards and nothing offloaded; nothing if the plan uses GPUs
// that the space does not have.
bool template_of(const Space& space, const Plan& plan, PlanTemplate& out);

uint64_t hash_of(const PlanTemplate& of);

}  // namespace sailor::native
