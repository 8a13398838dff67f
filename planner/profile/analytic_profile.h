// Layer profiles of a (model, GPU type) that nobody measured: times from the kernels of a transformer on a
// roofline, sizes from the tensors that a framework keeps. Estimates: what they are good for stands in
// etc/doc/simulator.md. Pure.
#pragma once

#include "planner/profile/collectives.h"
#include "planner/profile/kernels.h"
#include "planner/profile/layer_profile.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/transformer_shape.h"

namespace sailor {

// The host queues a layer's kernels; a device that is faster waits for it. Seconds per block and pass.
struct HostTimes {
  double block_s = 0;     // whatever the TP degree
  double tp_block_s = 0;  // more, with any tensor parallelism
  double tp_rank_s = 0;   // more, for each further rank of the TP group

  double pass_s(int tp) const { return block_s + (tp > 1 ? tp_block_s : 0) + (tp - 1) * tp_rank_s; }
};

struct AnalyticInput {
  const TransformerShape& shape;
  const FrameworkStyle& style;
  KernelModel kernels;
  HostTimes host;
  Precision precision = Precision::bf16;
  int microbatch = 1;
  Ring tp;                        // ranks = the TP degree
  double collective_start_s = 0;  // of every TP collective, beside its steps
};

// One entry per layer of the model.
LayerProfile::Cell analytic_times(const AnalyticInput& input);
// Per GPU of a TP group of `tp`, one sequence.
std::vector<LayerSizes> analytic_sizes(const TransformerShape& shape, const FrameworkStyle& style,
                                       Precision precision, int tp);
// Rows of the embedding as the framework pads them.
int64_t padded_vocabulary(const TransformerShape& shape, const FrameworkStyle& style, int tp);

}  // namespace sailor
