#include "trainer/record/model_flops.h"

namespace sailor {

std::optional<double> peak_flops(const Plan& plan, const Catalog& catalog, Precision precision) {
  double sum = 0;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    // With interleaving, a group of GPUs has several stages; the first stages have every group once.
    const std::size_t groups = pipeline.stages.size() / static_cast<std::size_t>(plan.interleave);
    for (std::size_t i = 0; i < groups; ++i) {
      const PlanStage& stage = pipeline.stages[i];
      auto type = catalog.gpu_types.find(stage.gpu_type);
      if (type == catalog.gpu_types.end() || type->second.emulation) return std::nullopt;
      const auto peak = type->second.flops(precision);
      if (!peak) return std::nullopt;
      sum += stage.shape.gpus() * *peak;
    }
  }
  return sum;
}

double training_flops_per_token(const ModelSpec& model, const std::optional<LoraSpec>& lora,
                                const std::map<int64_t, int64_t>& documents) {
  double flops = 0, tokens = 0;
  for (const auto& [length, number] : documents) {
    ModelSpec of_length = model;
    of_length.sequence = static_cast<int>(length);
    const auto in_documents = static_cast<double>(length * number);
    flops += in_documents * training_flops_per_token(of_length, lora);
    tokens += in_documents;
  }
  return flops / tokens;
}

}  // namespace sailor
