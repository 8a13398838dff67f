// A plan: which GPUs train which layers of the model, and how the global batch is divided among them.
//
// A pipeline is a chain of stages; pipelines are data-parallel copies of the whole model, each with its own
// split of the layers, GPU types and TP degrees. The order of pipelines is significant: it determines the
// order of ranks, of reductions and of the sequences of the global batch. Value type. A Plan in memory is not
// necessarily valid: see validate.h.
//
// The JSON form (plan_json.h) is fixed by DESIGN section 5, because other tools read and score it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "planner/spec/objective.h"
#include "planner/spec/offload.h"
#include "planner/spec/precision.h"
#include "planner/spec/recompute.h"
#include "planner/spec/replica_shape.h"
#include "planner/spec/split_backward.h"
#include "planner/spec/zero.h"

namespace sailor {

struct PlanStage {
  int first_layer = 0;  // half-open range of layer indices: 0 = embedding, last = head
  int end_layer = 0;
  std::string gpu_type;
  std::string zone;
  ReplicaShape shape;  // of this stage's GPUs, all of one node
  StageRecompute recompute{};
  int weight_delay = kWholeBackward;  // in microbatches, if its backward is split
  Offload offload = Offload::none;
  std::string node;       // empty until placed
  std::vector<int> gpus;  // indices on the node, shape.gpus() of them; empty until placed
};

struct PlanPipeline {
  int microbatches = 0;  // per iteration
  // In the order of layers. With interleave v there are v entries per group of GPUs: with P groups, entry k
  // is chunk k / P on the GPUs of entry k mod P.
  std::vector<PlanStage> stages;
  // Sequences of each of its microbatches, where that is not what Plan::microbatch says.
  std::optional<int> microbatch{};
};

// The planner's prediction, kept with the plan for comparison with measured values.
struct PlanPrediction {
  double iteration_s = 0;
  PerExpense<double> spent;                 // per iteration
  std::optional<double> bound_iteration_s;  // lower bound over all plans of the search space
  PerExpense<std::optional<double>> bound;  // likewise
  int64_t peak_memory_bytes = 0;            // maximum over ranks

  Figures figures() const { return {iteration_s, spent}; }
};

struct Plan {
  std::string model;
  int64_t global_batch = 0;
  // Sequences of the microbatches of every pipeline that has no other size; the very last microbatch of the
  // last pipeline may be smaller.
  int microbatch = 0;
  std::vector<PlanPipeline> pipelines;
  Zero zero = Zero::none;
  // Hybrid ZeRO: consecutive pipelines that share one copy of what ZeRO shards; each group of them has its
  // own. 0: all pipelines share one.
  int zero_group = 0;
  int interleave = 1;
  // Stages with a TP degree above 1 split the tokens between their tensor-parallel regions; so it is if any
  // stage has a CP degree above 1.
  bool sequence_parallel = false;
  std::optional<Precision> precision{};  // where the job leaves it to the plan; absent = the job's
  std::optional<PlanPrediction> prediction;
};

// Sequences of a pipeline's microbatches.
inline int microbatch_of(const Plan& plan, const PlanPipeline& pipeline) {
  return pipeline.microbatch.value_or(plan.microbatch);
}
// The different sizes that there are, ascending.
std::set<int> microbatch_sizes(const Plan& plan);
inline bool has_unlike_microbatches(const Plan& plan) {
  return microbatch_sizes(plan).size() > 1;
}
// Sequences of all microbatches: the global batch, and what the very last microbatch lacks.
int64_t sequences_of_microbatches(const Plan& plan);
// Groups of GPUs of a pipeline: one per stage, or per `interleave` stages.
int num_groups(const Plan& plan, const PlanPipeline& pipeline);
std::set<std::string> gpu_types_of(const Plan& plan);
// Number of its GPUs by type, then zone.
std::map<std::string, std::map<std::string, int>> gpu_counts_of(const Plan& plan);
bool has_tensor_parallelism(const Plan& plan);
bool has_context_parallelism(const Plan& plan);
// Are the states of its optimizer in the memory of its nodes?
inline bool offloads_optimizer(const PlanStage& stage) {
  return stage.offload == Offload::optimizer;
}
// Is anything there?
inline bool offloads(const PlanStage& stage) {
  return offloads_optimizer(stage) || stage.recompute.offloads();
}
bool offloads(const Plan& plan);
// Are there GPUs that train the same parameters, whose gradients must be summed?
bool has_replicas(const Plan& plan);
// A range of pipelines, [first, end).
struct PipelineRange {
  int first = 0, end = 0;
};
// How many groups of pipelines there are, each with a copy of what ZeRO shards; and that of a pipeline.
int num_zero_groups(const Plan& plan);
PipelineRange zero_group_of(const Plan& plan, int pipeline);
// Number of GPUs of the plan = number of trainer ranks.
int num_ranks(const Plan& plan);
// Microbatches of all pipelines: ceil(global_batch / microbatch).
int64_t num_microbatches(int64_t global_batch, int microbatch);
// Distributes `total` microbatches over `pipelines` as floor or ceiling, larger numbers first.
std::vector<int> share_microbatches(int64_t total, int pipelines);
// The precision in which the job is trained under the plan.
inline Precision precision_of(const Plan& plan, const JobSpec& job) {
  return plan.precision.value_or(job.training.precision);
}
// The job with the choices that it leaves to the plan.
JobSpec job_under(const Plan& plan, JobSpec job);
// Divides the global batch among the pipelines anew: evenly, or, where their microbatches have unlike sizes,
// in the proportions of now. Every pipeline keeps at least one microbatch, so that what results may have too
// many of them (validate.h).
void share_batch(Plan& plan);
// One line for the user: `2 pipelines: 2xA tp2 | 1xB tp1, 8 microbatches of 4`.
std::string summary(const Plan& plan);

}  // namespace sailor
