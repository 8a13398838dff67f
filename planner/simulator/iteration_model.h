// One iteration of a plan under the native cost model, as fast as a search needs it: what simulate() tells of
// names is told of numbers here, and once for all that is alike. simulate() is made of this, so what a search
// ranks by is what its plans are judged by.
//
// Keeps what it has worked out (tables of kinds, memory of stages) for the next plan: not thread-safe, one
// object per thread.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "planner/simulator/compact_plan.h"
#include "planner/simulator/known_values.h"
#include "planner/simulator/memory.h"
#include "planner/simulator/mesh_replay.h"
#include "planner/simulator/plan_classes.h"
#include "planner/simulator/timeline.h"

namespace sailor::native {

struct Iteration {
  double iteration_s = 0;
  double pipeline_s = 0;  // slowest pipeline's forward and backward timeline
  double sync_s = 0;      // gradient sums that are not hidden
  double update_s = 0;
  double overhead_s = 0;
  PerExpense<Spent> spent;

  Figures figures() const { return {iteration_s, totals(spent)}; }
};

// The steps from a plan to its iteration, for who wants to show them.
struct IterationDetails {
  PlanClasses classes;
  std::vector<std::vector<StageTimes>> times;  // [class of pipelines][stage or chunk]
  // The same: what of_kind times are made of, and what they are multiplied by.
  std::vector<std::vector<std::pair<const KindTimes*, double>>> layer_times;
  std::vector<Timeline> timelines;  // by class of pipelines
  std::vector<LayerGroup> groups;
  // By class of ranks: backward done, then its sums; the optimizer begins; it and what follows takes.
  std::vector<double> backward_done_s, synced_s, stepping_s, after_s;
  // By layer group: the last of its backwards ends; what of its sums comes after that; weights handed out.
  std::vector<double> group_start_s, group_sync_s, gather_s;
};

// All that the memory of a stage without further chunks depends on.
struct StageMemoryInput {
  int kind = 0;
  int first_layer = 0, end_layer = 0;
  Recompute recompute = Recompute::none;
  int in_flight = 1;
  int microbatch = 1;
  bool several_microbatches = false;
  int replicas = 1;
  bool zero1 = false;
};

class IterationModel {
 public:
  // Keeps references.
  explicit IterationModel(StageKinds& kinds) : kinds_(kinds) {}

  // Does the memory of one rank suffice?
  bool fits(const StageMemoryInput& stage);

  // Does every rank's memory suffice? Throws InputError where something is not profiled, as iteration() does.
  bool fits(const CompactPlan& plan);
  // What ranks are short of, as parts of a GPU's memory, summed over unlike pipelines and their groups.
  double missing_memory(const CompactPlan& plan);
  // Of a group of GPUs of a pipeline.
  MemoryBreakdown memory(const CompactPlan& plan, int pipeline, int group) const;
  // May stop when it sees that the iteration takes `most_s` or longer: the times are then the least that is
  // known of them by then, at least `most_s`.
  Iteration iteration(const CompactPlan& plan, double most_s = std::numeric_limits<double>::infinity()) {
    return iteration(plan, false, details_, most_s, nullptr);
  }
  // Asks for the memory, too, unless it sees first that the iteration takes that long. Where `fits` becomes
  // false the times mean nothing.
  Iteration iteration_if_fits(const CompactPlan& plan, double most_s, bool& fits) {
    fits = true;
    return iteration(plan, false, details_, most_s, &fits);
  }
  Iteration iteration(const CompactPlan& plan, bool with_events, IterationDetails& details) {
    return iteration(plan, with_events, details, std::numeric_limits<double>::infinity(), nullptr);
  }

  StageKinds& kinds() { return kinds_; }
  // Steps taken until now, a few nanoseconds each on any machine: what a search may count instead of time.
  int64_t steps() const { return steps_; }

 private:
  Iteration iteration(const CompactPlan& plan, bool with_events, IterationDetails& details, double most_s,
                      bool* fits);
  bool rank_fits(const StageMemoryInput& stage);
  void set_times(const CompactPlan& plan, IterationDetails& details, Iteration& out) const;
  void play_pipelines(const CompactPlan& plan, bool with_events, IterationDetails& details, Iteration& out);
  // What follows the sums, but for the weights that a sharded optimizer hands out by rings.
  void set_after(const CompactPlan& plan, IterationDetails& details) const;
  // Sets when the backward of each bucket's lowest layer ends, from when those of chunks do, by class of
  // pipelines.
  void set_bucket_starts(const CompactPlan& plan, const IterationDetails& details,
                         const std::vector<const std::vector<double>*>& chunk_end_s, MeshSums& sums) const;
  // What no pipeline is faster than, before anything is played; and no iteration, sums and all.
  void find_timeline_floors(const CompactPlan& plan, const IterationDetails& details, Iteration& out);
  double floor_s(const CompactPlan& plan, const IterationDetails& details, const Iteration& out);
  // Returns whether it went to the end: no rank or card needs beyond `most_s`.
  bool sum_over_mesh(const CompactPlan& plan, IterationDetails& details, MeshSums& sums, double most_s);
  void sum_over_rings(const CompactPlan& plan, IterationDetails& details);
  void set_spent(const CompactPlan& plan, const IterationDetails& details, Iteration& out) const;
  void add_messages(const CompactPlan& plan, const PlanClasses& classes, PerExpense<Spent>& spent) const;

  StageKinds& kinds_;
  IterationDetails details_;
  MeshSums sums_;
  std::vector<TimelineFloor> floors_;  // by class of pipelines
  KnownValues<bool> stage_fits_;
  int64_t steps_ = 0;
};

// Microbatches in flight of each chunk of a group of GPUs.
std::vector<int> chunks_in_flight(const PipelineSchedule& schedule, int group, int groups, int microbatches);

// The schedule of pipelines with so many chunks on each group of GPUs under a framework's style.
PipelineSchedule schedule_of(const FrameworkStyle& style, int interleave);

}  // namespace sailor::native
