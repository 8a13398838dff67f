#include "tests/convert/uniform_plan.h"

namespace sailor::convert {

std::vector<int> even_cuts(int blocks, int parts) {
  std::vector<int> cuts{0};
  int next = 1;
  for (int part = 0; part < parts; ++part) {
    next += blocks / parts + (part < blocks % parts ? 1 : 0);
    cuts.push_back(next);
  }
  cuts.back() = blocks + 2;
  return cuts;
}

Plan UniformPlan::plan() const {
  Plan plan;
  plan.model = model;
  plan.global_batch = global_batch;
  plan.microbatch = microbatch;
  plan.zero = zero;
  plan.interleave = interleave;
  plan.sequence_parallel = cp > 1;
  const std::vector<int> microbatches = share_microbatches(num_microbatches(global_batch, microbatch), dp);
  for (int d = 0; d < dp; ++d) {
    PlanPipeline pipeline;
    pipeline.microbatches = microbatches[static_cast<size_t>(d)];
    for (int chunk = 0; chunk < pp * interleave; ++chunk) {
      const int p = chunk % pp;
      const int first_rank = cp * tp * (order == RankOrder::tp_dp_pp ? d + dp * p : p + pp * d);
      PlanStage stage;
      stage.first_layer = cuts.at(static_cast<size_t>(chunk));
      stage.end_layer = cuts.at(static_cast<size_t>(chunk) + 1);
      stage.gpu_type = gpu_type;
      stage.zone = "default";
      stage.shape = {.tp = tp, .cp = cp};
      stage.recompute = recompute;
      stage.node = std::to_string(first_rank / gpus_per_node);
      for (int g = 0; g < cp * tp; ++g) stage.gpus.push_back(first_rank % gpus_per_node + g);
      pipeline.stages.push_back(std::move(stage));
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
  return plan;
}

}  // namespace sailor::convert
