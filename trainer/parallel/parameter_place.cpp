#include "trainer/parallel/parameter_place.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/spec/lora_parameters.h"
#include "trainer/model/registry.h"

namespace sailor {

std::map<std::string, ParameterSpec> specs_by_name(const JobSpec& job, const RankLayout& layout) {
  std::map<std::string, ParameterSpec> specs;
  for (ParameterSpec& spec :
       trained_parameters(job.model, job.training.lora, padded_vocabulary(job.model.vocabulary, layout))) {
    const std::string name = spec.name;
    specs[name] = std::move(spec);
  }
  return specs;
}

int64_t row_elements(const ParameterSpec& spec) {
  return std::max<int64_t>(1, spec.columns);
}

int64_t real_elements(const ParameterSpec& spec) {
  return spec.real_rows * row_elements(spec);
}

int64_t base_of(const RankSlot& slot, const ParameterSpec& spec) {
  return spec.sharded ? spec.rows / slot.shape.parts() * slot.tp_rank * row_elements(spec) : 0;
}

int64_t held_elements(const RankSlot& slot, const ParameterSpec& spec) {
  return (spec.sharded ? spec.rows / slot.shape.parts() : spec.rows) * row_elements(spec);
}

}  // namespace sailor
