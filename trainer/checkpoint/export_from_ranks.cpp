#include "trainer/checkpoint/export_from_ranks.h"

#include <map>

#include "planner/spec/lora_parameters.h"
#include "trainer/checkpoint/adapter_directory.h"
#include "trainer/checkpoint/export_model.h"
#include "trainer/checkpoint/gather.h"
#include "trainer/model/element_types.h"
#include "trainer/model/registry.h"

namespace sailor {

void export_from_ranks(const std::string& directory, const JobSpec& job, const Plan& plan,
                       const RankLayout& layout, Communicator& world, const std::vector<Parameter*>& held,
                       const std::function<void(int layer)>& gather) {
  const std::vector<ParameterSpec> listed =
      trained_parameters(job.model, job.training.lora, padded_vocabulary(job.model.vocabulary, layout));
  const auto gathered = [&](const ParameterSpec& spec) {
    gather(spec.layer);
    return gather_on_first_rank(world, plan, layout, spec, held);
  };
  if (world.rank() != 0) {
    for (const ParameterSpec& spec : listed) gathered(spec);
    return;
  }
  std::map<std::string, ParameterSpec> padded;
  for (const ParameterSpec& spec : listed) padded[spec.name] = spec;
  const auto whole = [&](const ParameterSpec& spec) { return gathered(padded.at(spec.name)); };
  const at::ScalarType type = scalar_type(job.training.precision);
  try {
    if (job.training.lora) {
      export_adapters(directory, job.model, *job.training.lora, type, whole);
    } else {
      export_model(directory, job.model, type, whole);
    }
  } catch (...) {
    world.abort();  // the others wait for this rank
    throw;
  }
}

}  // namespace sailor
