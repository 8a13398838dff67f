// What the native search moves around: a plan without names, in which equal pipelines stand once. A template
// says which stages a class of pipelines has, how many pipelines and microbatches it takes, and how its GPU
// groups are dealt to nodes; assign() turns it into a plan on nodes. Value types.
//
// Placement is one number, the block: pipelines go to the nodes in blocks of that many, within a block stage
// by stage. 1 keeps a pipeline together on its nodes, as many as there are pipelines keeps the replicas of a
// stage together, and what lies between divides a node among several stages with several replicas each.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/search/native/space.h"
#include "planner/simulator/compact_plan.h"

namespace sailor::native {

struct TemplateStage {
  int option = 0;  // of the space: pool and TP degree
  int end_layer = 0;
  Recompute recompute = Recompute::none;

  bool operator==(const TemplateStage&) const = default;
};

struct TemplateClass {
  // With interleave v, v entries per group of GPUs: entry k is chunk k / P on the GPUs of entry k mod P.
  std::vector<TemplateStage> stages;
  int pipelines = 1;
  // Of all of them together; divided as evenly as possible, interleaved in rounds of as many as there are
  // groups.
  int64_t microbatches = 0;

  bool operator==(const TemplateClass&) const = default;
};

// Which node of a pool is next.
enum class Fill {
  packed,    // the first with room
  even,      // of those that the pool needs, with as many GPUs on each
  together,  // the one that all replicas of a stage, within a block, fill best; without such a node the first
};

struct PlanTemplate {
  int microbatch = 1;
  bool zero1 = false;
  int interleave = 1;
  int block = 1;
  Fill fill = Fill::packed;
  std::vector<TemplateClass> classes;

  bool operator==(const PlanTemplate&) const = default;
  int pipelines() const;
  size_t groups(const TemplateClass& of) const { return of.stages.size() / static_cast<size_t>(interleave); }
};

// Deals GPUs to a template. False when the space does not
// have the GPUs, or not together on nodes. Nodes are numbered as in the space.
bool assign(const Space& space, const PlanTemplate& of, CompactPlan& plan);

// The plan with names: the same nodes, and GPUs of each.
Plan plan_of(const Space& space, const CompactPlan& compact);

// Back from a plan, with block 1; nothing when it uses what the space does not have.
bool template_of(const Space& space, const Plan& plan, PlanTemplate& out);

uint64_t hash_of(const PlanTemplate& of);

}  // namespace sailor::native
