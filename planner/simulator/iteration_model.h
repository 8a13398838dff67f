// One iteration of a plan under the native cost model, fast enough for a search: it uses numbers instead of
// names, and computes equal parts once. simulate() is built on it, so a search ranks plans by the same model
// that judges them.
//
// Caches results (tables of kinds, memory of stages) for the next plan: not thread-safe, one object per
// thread.
#pragma once

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "planner/simulator/compact_plan.h"
#include "planner/simulator/gradient_sync.h"
#include "planner/simulator/memory.h"
#include "planner/simulator/mesh_replay.h"
#include "planner/simulator/plan_classes.h"
#include "planner/simulator/recent_values.h"
#include "planner/simulator/round_replay.h"
#include "planner/simulator/timeline.h"

namespace sailor::native {

struct Iteration {
  double iteration_s = 0;
  double pipeline_s = 0;  // slowest pipeline's forward and backward timeline, with its StageTimes::ready_s
  double sync_s = 0;      // gradient sync that is not overlapped
  double update_s = 0;
  double overhead_s = 0;
  PerExpense<Spent> spent;

  Figures figures() const { return {iteration_s, totals(spent)}; }
};

// Intermediate results from a plan to its iteration, for displaying them.
struct IterationDetails {
  PlanClasses classes;
  std::vector<std::vector<StageTimes>> times;  // [class of pipelines][stage or chunk]
  // The same times as factors: the base times of a kind, and their multiplier.
  std::vector<std::vector<std::pair<const KindTimes*, double>>> layer_times;
  std::vector<Timeline> timelines;  // by class of pipelines
  std::vector<LayerGroup> groups;
  // By class of ranks: end of the backward; end of its gradient sync; begin of the optimizer step; duration
  // of the step, and with the rest.
  std::vector<double> backward_done_s, synced_s, stepping_s, update_s, after_s;
  // The next iteration begins that long after the sums, with the first GPU groups, while other ones may still
  // be busy: what is left of after_s is their StageTimes::ready_s.
  double next_after_s = 0;
  // By layer group: end of its last backward; remaining gradient sync after that; gathering of weights.
  std::vector<double> group_start_s, group_sync_s, gather_s;
  bool has_rounds = false;  // of sharded gradients or parameters, in every microbatch
  // Those of our trainer, by class of pipelines, are replayed; those of others are in the times of the
  // stages.
  std::vector<RoundPipeline> rounds;
  RoundCards cards;
  double least_rounds_s = 0;         // what they exchange takes, of any rank
  std::vector<double> rounds_end_s;  // by class of ranks
  double tied_s = 0;                 // sums of matrices that layers share, after all rounds
};

// All inputs of the memory of a stage with one chunk.
struct StageMemoryInput {
  int kind = 0;
  int first_layer = 0, end_layer = 0;
  StageRecompute recompute{};
  int in_flight = 1;
  int microbatch = 1;
  bool several_microbatches = false;
  int replicas = 1;  // that share the sums of gradients (sharers())
  Zero zero = Zero::none;
  bool nothing_again = false;         // for lower bounds (ChunkMemoryInput)
  int weight_delay = kWholeBackward;  // less than there are microbatches
  Offload offload = Offload::none;
  bool ignores_host = false;  // without the memory of nodes
};

// Of all stages of a pipeline, what else the memory of its ranks depends on.
struct PipelineMemoryInput {
  int microbatch = 1;
  int interleave = 1;
  int microbatches = 1;  // of the pipeline
  int replicas = 1;      // that share the sums of gradients (sharers())
  Zero zero = Zero::none;
  bool ignores_host = false;
};

class IterationModel {
 public:
  // Keeps references.
  explicit IterationModel(StageKinds& kinds) : kinds_(kinds) {}

  // What the memory of a rank lacks; negative or 0 if it is sufficient.
  int64_t missing_bytes(const StageMemoryInput& stage);
  // That of a rank of a group of GPUs, with the stages of its pipeline.
  int64_t missing_bytes(std::span<const CompactStage> stages, int group, const PipelineMemoryInput& of);
  bool fits(const StageMemoryInput& stage) { return missing_bytes(stage) <= 0; }

  // Missing memory of ranks, as fractions of a GPU's memory, summed over classes of pipelines and their
  // groups.
  double missing_memory(const CompactPlan& plan);
  // Memory of one GPU group of a pipeline.
  MemoryBreakdown memory(const CompactPlan& plan, int pipeline, int group) const {
    return memory(
        plan.of(pipeline), group,
        {plan.microbatch[static_cast<size_t>(pipeline)], plan.interleave,
         plan.microbatches[static_cast<size_t>(pipeline)], sharers_of(plan, pipeline, group), plan.zero});
  }
  MemoryBreakdown memory(std::span<const CompactStage> stages, int group,
                         const PipelineMemoryInput& of) const;
  // May stop when the iteration takes at least `most_s`: the times are then lower bounds known so far, at
  // least `most_s`.
  Iteration iteration(const CompactPlan& plan, double most_s = std::numeric_limits<double>::infinity()) {
    return iteration(plan, false, details_, most_s, nullptr);
  }
  // Also checks the memory, unless the iteration is known to take that long. When `fits` becomes false, the
  // times are meaningless.
  Iteration iteration_if_fits(const CompactPlan& plan, double most_s, bool& fits) {
    fits = true;
    return iteration(plan, false, details_, most_s, &fits);
  }
  Iteration iteration(const CompactPlan& plan, bool with_events, IterationDetails& details) {
    return iteration(plan, with_events, details, std::numeric_limits<double>::infinity(), nullptr);
  }

  // pipeline_s of the newest plan if all stages were ready at once. `details`: its own.
  double ready_pipeline_s(const CompactPlan& plan, IterationDetails details);

  StageKinds& kinds() { return kinds_; }
  // Steps so far, a few nanoseconds each on any machine: a search counts these instead of time.
  int64_t steps() const { return steps_; }

 private:
  Iteration iteration(const CompactPlan& plan, bool with_events, IterationDetails& details, double most_s,
                      bool* fits);
  int64_t missing_of_rank(const StageMemoryInput& stage);
  // Those of the layers of a group of GPUs.
  int sharers_of(const CompactPlan& plan, int pipeline, int group) const;
  // Is the memory of every rank sufficient?
  bool fits(const CompactPlan& plan, const PlanClasses& classes);
  void set_times(const CompactPlan& plan, IterationDetails& details, Iteration& out) const;
  // The sums of the plan's gradients, along rings or over a mesh.
  void find_sums(const CompactPlan& plan, const IterationDetails& details);
  // What replicas exchange in every microbatch (microbatch_rounds.h), if they share gradients.
  void add_rounds(const CompactPlan& plan, IterationDetails& details);
  // Both set the timelines.
  void play_pipelines(const CompactPlan& plan, bool with_events, IterationDetails& details, Iteration& out);
  void play_rounds(const CompactPlan& plan, bool with_events, IterationDetails& details);
  // Sets the times after gradient sync, of which the gathering of weights is that in `details`.
  void set_after(const CompactPlan& plan, IterationDetails& details) const;
  // Of these, when each stage is ready for the next iteration.
  void set_ready(const CompactPlan& plan, IterationDetails& details) const;
  // Gathers over a mesh take longer than alone: ranks have one after the other, over cards that they share.
  void gather_over_mesh(const CompactPlan& plan, IterationDetails& details);
  // Sets when the backward of each bucket's lowest layer ends, from the ends of chunks, by class of
  // pipelines.
  void set_bucket_starts(const CompactPlan& plan, const IterationDetails& details,
                         const std::vector<const std::vector<double>*>& chunk_end_s, MeshSums& sums) const;
  // Lower bounds of every pipeline before its timeline is computed, and of the iteration with gradient sync.
  void find_timeline_floors(const CompactPlan& plan, const IterationDetails& details, Iteration& out);
  double floor_s(const CompactPlan& plan, const IterationDetails& details, const Iteration& out);
  // Returns whether it finished: no rank or card needs more than `most_s`.
  bool sum_over_mesh(const CompactPlan& plan, IterationDetails& details, MeshSums& sums, double most_s);
  void sum_over_rings(const CompactPlan& plan, IterationDetails& details);
  // What follows the replayed rounds.
  void sum_after_rounds(const CompactPlan& plan, IterationDetails& details) const;
  double usd_per_s(const CompactPlan& plan);
  void set_spent(const CompactPlan& plan, const IterationDetails& details, Iteration& out);
  void add_messages(const CompactPlan& plan, const PlanClasses& classes, PerExpense<Spent>& spent) const;

  StageKinds& kinds_;
  IterationDetails details_;
  MeshSums sums_;                      // of the newest plan, or
  std::vector<SyncTimes> ring_times_;  // by layer group
  std::vector<TimelineFloor> floors_;  // by class of pipelines
  // Of stages with one chunk; of groups with several.
  RecentValues<int64_t> missing_of_stage_, missing_of_group_;
  std::vector<ChunkMemoryInput> chunks_;  // of the newest rank: its memory is reused
  std::vector<char> is_paid_;             // by node; all false between plans
  int64_t steps_ = 0;
};

}  // namespace sailor::native
