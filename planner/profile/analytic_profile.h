// Estimated layer profiles of a (model, GPU type) without measurements: times from a roofline model of a
// transformer's kernels, sizes from the tensors that a framework keeps. See etc/doc/simulator.md for their
// accuracy. Pure.
#pragma once

#include "planner/profile/collectives.h"
#include "planner/profile/kernels.h"
#include "planner/profile/layer_profile.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/transformer_shape.h"

namespace sailor {

// Times of the host to launch the kernels of a layer, which a faster device waits for. Seconds per block and
// pass.
struct HostTimes {
  double block_s = 0;     // for every TP degree
  double tp_block_s = 0;  // in addition, with any tensor parallelism
  double tp_rank_s = 0;   // in addition, for each further rank of the TP group

  HostTimes operator+(const HostTimes& other) const {
    return {block_s + other.block_s, tp_block_s + other.tp_block_s, tp_rank_s + other.tp_rank_s};
  }
  double pass_s(int tp) const { return block_s + (tp > 1 ? tp_block_s : 0) + (tp - 1) * tp_rank_s; }
};

// What the framework's own costs are, and `machines` with what it adds to them.
HostTimes host_times(const FrameworkStyle& style);
PlatformOverheads overheads_of(const FrameworkStyle& style, PlatformOverheads machines);

struct AnalyticInput {
  const TransformerShape& shape;
  const FrameworkStyle& style;
  KernelModel kernels;
  HostTimes host;
  Precision precision = Precision::bf16;
  int microbatch = 1;
  Ring tp;                        // ranks = the TP degree
  double collective_start_s = 0;  // start-up of every TP collective, in addition to its steps
};

// One entry per layer of the model.
LayerProfile::Cell analytic_times(const AnalyticInput& input);
// Per GPU of a replica, one sequence.
std::vector<LayerSizes> analytic_sizes(const TransformerShape& shape, const FrameworkStyle& style,
                                       Precision precision, ReplicaShape replica);
// Rows of the embedding as the framework pads them.
int64_t padded_vocabulary(const TransformerShape& shape, const FrameworkStyle& style, int tp);

}  // namespace sailor
