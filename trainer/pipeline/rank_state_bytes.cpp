#include <string>

#include "planner/plan/rank_layout.h"
#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "trainer/model/registry.h"
#include "trainer/parallel/parameter_place.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {

int64_t RankTrainer::state_bytes(const JobSpec& job, const Plan& plan, int rank) {
  const RankLayout layout(plan);
  const RankSlot& slot = layout.slots().at(static_cast<std::size_t>(rank));
  const PlanPipeline& pipeline = plan.pipelines[static_cast<std::size_t>(slot.pipeline)];
  const PrecisionKind& kind = kind_of(precision_of(plan, job));
  const bool masters = kind.element_bytes < kind.state_bytes;
  // The value and its gradient, each also in the type in which it is updated, two moments, and the average.
  const int64_t states =
      2 * kind.state_bytes + (masters ? kind.state_bytes : 0) + (job.training.ema ? kind.state_bytes : 0);
  const int64_t per_element = kind.element_bytes + kind.state_bytes + (masters ? kind.element_bytes : 0) +
                              (offloads_optimizer(stage_of(plan, slot)) ? 0 : states);
  const auto here = [&](const std::string& name) {
    const int layer = std::stoi(name);
    for (std::size_t s = static_cast<std::size_t>(slot.stage); s < pipeline.stages.size();
         s += pipeline.stages.size() / static_cast<std::size_t>(plan.interleave))
      if (layer >= pipeline.stages[s].first_layer && layer < pipeline.stages[s].end_layer) return true;
    return false;
  };
  int64_t trained = 0, frozen = 0;
  for (const auto& [name, spec] : specs_by_name(job, layout))
    if (here(name)) trained += held_elements(slot, spec);
  if (job.training.lora) {
    for (const ParameterSpec& spec :
         list_parameters(job.model, padded_vocabulary(job.model.vocabulary, layout)))
      if (here(spec.name)) frozen += held_elements(slot, spec);
  }
  return trained * per_element + frozen * kind.element_bytes;
}

}  // namespace sailor
