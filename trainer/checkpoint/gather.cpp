#include "trainer/checkpoint/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "trainer/model/element_types.h"
#include "trainer/parallel/groups.h"

namespace sailor {
namespace {

// In the host's memory.
at::Tensor value_of(const std::vector<Parameter*>& held, const std::string& name) {
  for (const Parameter* parameter : held) {
    if (parameter->name == name) return parameter->value.detach().to(at::kCPU);
  }
  throw std::logic_error(fmt::format("{} is not held by the rank that owns it", name));
}

}  // namespace

at::Tensor gather_on_first_rank(Communicator& world, const Plan& plan, const RankLayout& layout,
                                const ParameterSpec& parameter, const std::vector<Parameter*>& held) {
  const PlanPipeline& pipeline = plan.pipelines.front();
  // A tied matrix counts as a layer after the last one; the first stage has it.
  const bool tied = parameter.layer >= pipeline.stages.back().end_layer;
  const int stage = tied ? 0 : stage_of(pipeline, parameter.layer);
  const int parts = parameter.sharded ? pipeline.stages[static_cast<std::size_t>(stage)].shape.parts() : 1;
  const int first = layout.base(0, stage);
  if (world.rank() != 0) {
    if (world.rank() < first || world.rank() >= first + parts) return {};
    const at::Tensor mine = value_of(held, parameter.name);
    world.send(mine.data_ptr(), static_cast<std::size_t>(mine.numel()), element_type(mine.scalar_type()), 0)
        ->wait();
    return {};
  }
  // Every rank trains in one type: that of anything held here.
  const at::ScalarType type = held.front()->value.scalar_type();
  at::Tensor whole = parameter.columns > 0 ? at::empty({parameter.rows, parameter.columns}, type)
                                           : at::empty({parameter.rows}, type);
  const int64_t rows = parameter.rows / parts;
  for (int part = 0; part < parts; ++part) {
    at::Tensor target = whole.narrow(0, part * rows, rows);
    if (first + part == 0) {
      target.copy_(value_of(held, parameter.name));
    } else {
      world
          .recv(target.data_ptr(), static_cast<std::size_t>(target.numel()), element_type(type), first + part)
          ->wait();
    }
  }
  return whole;
}

}  // namespace sailor
