// A uniform plan as frameworks that run no others see it: degrees of parallelism, one cut of the layers, and
// the microbatches of every pipeline. What the emitters of configurations (framework_config.h) read. Plain
// value type; the functions are pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"

namespace sailor {

struct UniformPlan {
  int tensor = 1, context = 1, data = 1, pipeline = 1;  // degrees
  int ring = 1;                             // of the context-parallel degree: ModelSpec::ring_degree()
  int interleave = 1;                       // chunks of every group of GPUs
  std::vector<std::pair<int, int>> layers;  // half-open ranges of the stages, or chunks in their order
  std::vector<int> blocks;                  // transformer blocks of each: without embedding and head
  int microbatch = 1;                       // sequences
  int microbatches = 1;                     // of every pipeline, per iteration
  int64_t global_batch = 1;                 // = microbatch x microbatches x data
  bool sequence_parallel = false;           // also if the framework always splits tokens
  Zero zero = Zero::none;                   // also if the framework always shards
  int copies = 1;                           // of what ZeRO shards: data-parallel ranks in a row share each
  Recompute recompute = Recompute::none;
  // With Recompute::full, if not of all blocks: the first ones of every stage or chunk, and of those that a
  // rank has every n-th one, if that are as many. 0: all.
  int first_recomputed = 0, recomputed_every = 0;
  Precision precision = Precision::fp32;

  int ranks() const { return tensor * context * data * pipeline; }
  bool splits_model() const { return tensor > 1 || pipeline > 1; }
  // Sequences of a rank per iteration.
  int64_t local_batch() const { return static_cast<int64_t>(microbatch) * microbatches; }
};

// What else a configuration can say.
struct ConfigReach {
  bool copies = false;            // hybrid ZeRO
  bool context = false;           // context parallelism that splits heads
  bool ring = false;              // that splits tokens where there are too few heads
  bool first_recomputed = false;  // recomputation of the first blocks of every stage
  bool recomputed_every = false;  // and of every n-th block
};

// Why no configuration of uniform plans can say it, in a few words, or nothing.
std::string uniform_obstacle(const JobSpec& job, const Plan& plan, const ConfigReach& reach);

// Requires a plan without uniform_obstacle().
UniformPlan uniform_plan(const JobSpec& job, const Plan& plan);

// How many ranks to start, of which degrees.
std::string start_note(const UniformPlan& plan);

// Which nodes in which order, so that frameworks that number ranks TP, then pipelines, then stages have every
// stage on its own GPUs: one line where stages differ in type, else nothing.
std::string node_order_note(const Plan& plan);

// Nodes and the ranks of each, for launchers that start as many on every node.
struct EvenNodes {
  int nodes = 0;  // 0: the plan is not placed, or its nodes have different numbers of ranks
  int ranks = 0;  // of each
  bool placed = false;
};
EvenNodes even_nodes(const Plan& plan);

}  // namespace sailor
