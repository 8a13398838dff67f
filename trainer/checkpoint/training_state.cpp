#include "trainer/checkpoint/training_state.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

#include "planner/spec/error.h"
#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "trainer/checkpoint/stored_rows.h"
#include "trainer/model/registry.h"
#include "trainer/model/torch_device.h"
#include "trainer/parallel/groups.h"
#include "trainer/parallel/parameter_place.h"

namespace sailor {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

// The GPUs over which a parameter is sharded.
struct Replica {
  int base = 0;  // first rank
  ReplicaShape shape;
};

std::vector<Replica> replicas_of(const Plan& plan, const RankLayout& layout, const ParameterSpec& parameter) {
  std::vector<Replica> replicas;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
    const PlanPipeline& pipeline = plan.pipelines[p];
    const int last = static_cast<int>(pipeline.stages.size()) - 1;
    std::vector<int> stages = {0, last};  // a matrix that is shared by the first and the last layer
    if (parameter.layer < pipeline.stages.back().end_layer) stages = {stage_of(pipeline, parameter.layer)};
    for (const int stage : stages) {
      const Replica replica{layout.base(static_cast<int>(p), stage),
                            pipeline.stages[static_cast<std::size_t>(stage)].shape};
      if (replicas.empty() || replicas.back().base != replica.base) replicas.push_back(replica);
    }
  }
  return replicas;
}

// How many GPUs have each element of a sharded one.
int copies_of(const std::vector<Replica>& replicas) {
  int copies = 0;
  for (const Replica& replica : replicas) copies += replica.shape.copies();
  return copies;
}

// Number of elements of a tensor, from `first` on, that belong in `out`; the rest of `out` is padding.
int64_t count_into(const CheckpointTensor* tensor, int64_t first, const at::Tensor& out) {
  return std::clamp<int64_t>(tensor->elements() - first, 0, out.numel());
}

// Elements [first, first + out.numel()) of a tensor. Elements beyond its end are unchanged.
void read_into(CheckpointReader& reader, const CheckpointTensor* tensor, int64_t first,
               const at::Tensor& out) {
  const int64_t count = count_into(tensor, first, out);
  if (count == 0) return;
  const at::Tensor target = out.narrow(0, 0, count);
  const at::ScalarType type = stored_scalar_type(tensor->dtype, reader.path());
  if (type == target.scalar_type() && target.device().is_cpu()) {
    reader.read(tensor, first, count, target.data_ptr());
    return;
  }
  const at::Tensor stored = at::empty({count}, at::TensorOptions().dtype(type));
  reader.read(tensor, first, count, stored.data_ptr());
  target.copy_(stored);
}

const CheckpointTensor* find(const CheckpointReader& reader, const JobSpec& job, const std::string& name) {
  const CheckpointTensor* tensor = reader.find(name);
  if (tensor == nullptr)
    throw InputError(
        job.where("training.optimizer"),
        fmt::format("training.optimizer: the checkpoint {} has no {}, which this job's {} needs; "
                    "continue with the optimizer that wrote it, or name another "
                    "checkpoint.directory",
                    reader.path(), name, job.training.optimizer.name));
  return tensor;
}

// The part that this rank writes of a range that one rank of each group of pipelines has.
std::pair<int64_t, int64_t> share_of_copies(const RankState& state, int64_t first, int64_t count) {
  const int copies = num_zero_groups(state.plan),
            index = zero_group_of(state.plan, state.slot.pipeline).first * copies /
                    static_cast<int>(state.plan.pipelines.size());
  const BlockRange share = block_of(static_cast<std::size_t>(count), copies, index);
  return {first + static_cast<int64_t>(share.first), static_cast<int64_t>(share.count)};
}

// Has the checkpoint only the values from which the state starts?
bool follows_values(const CheckpointReader& reader, const Parameter& parameter, const OptimizerState& held) {
  return held.name == kMasterState ||
         (held.name == kAverageState && reader.find(parameter.name + "/" + held.name) == nullptr);
}

}  // namespace

std::vector<HeldValues> RankState::values() const {
  std::vector<HeldValues> all;
  std::map<std::string, const Parameter*> gathered;
  for (const Parameter* parameter : parameters) {
    if (parameter->gathered) {
      gathered[parameter->name] = parameter;
    } else {
      all.push_back({parameter, 0, parameter->value.detach().view({-1})});
    }
  }
  for (const OptimizerSlice& slice : optimizer.slices()) {
    const auto found = gathered.find(slice.name);
    if (found != gathered.end()) all.push_back({found->second, slice.first, slice.value});
  }
  return all;
}

Ranges own_share(const Plan& plan, const RankLayout& layout, const RankSlot& slot,
                 const ParameterSpec& parameter) {
  const std::vector<Replica> replicas = replicas_of(plan, layout, parameter);
  const int copies = copies_of(replicas);
  int shards = 1, holders = 0;
  for (const Replica& replica : replicas) {
    shards = std::lcm(shards, replica.shape.parts());
    holders += replica.shape.gpus();
  }
  Ranges ranges;
  const int64_t elements = parameter.rows * row_elements(parameter);
  int before = 0, copies_before = 0;  // of earlier replicas
  for (const Replica& replica : replicas) {
    const int gpu = slot.rank - replica.base;
    if (gpu >= 0 && gpu < replica.shape.gpus()) {
      const auto add = [&](int64_t first, int64_t count, int sharers, int index) {
        const BlockRange block = block_of(static_cast<std::size_t>(count), sharers, index);
        if (block.count > 0)
          ranges.emplace_back(first + static_cast<int64_t>(block.first), static_cast<int64_t>(block.count));
      };
      if (parameter.sharded) {
        // One rank of each copy has each sub-shard.
        const int64_t shard = elements / shards;
        const int part = replica.shape.part_of(gpu), of_part = shards / replica.shape.parts();
        for (int k = part * of_part; k < (part + 1) * of_part; ++k)
          add(k * shard, shard, copies, copies_before + replica.shape.copy_of(gpu));
      } else {
        add(0, elements, holders, before + gpu);
      }
    }
    before += replica.shape.gpus();
    copies_before += replica.shape.copies();
  }
  return ranges;
}

std::vector<ShardPiece> pieces_to_write(const RankState& state) {
  const std::map<std::string, ParameterSpec> specs = specs_by_name(state.job, state.layout);
  std::vector<ShardPiece> pieces;
  const auto add = [&](const std::string& name, const at::Tensor& data, int64_t first) {
    pieces.push_back({name, stored_dtype(data.scalar_type()), first, data.numel(), data.data_ptr()});
  };
  const std::vector<OptimizerSlice>& slices = state.optimizer.slices();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const OptimizerSlice& slice = slices[i];
    const ParameterSpec& spec = specs.at(slice.name);
    const int64_t begin = base_of(state.slot, spec) + slice.first;
    const int64_t end = std::min(begin + slice.count, real_elements(spec));
    // With ZeRO-1 each slice of the reduced gradient belongs to one rank of each group of pipelines.
    const bool sharded =
        shards_optimizer(state.plan.zero) && copies_of(replicas_of(state.plan, state.layout, spec)) > 1;
    const Ranges share = sharded ? Ranges{share_of_copies(state, begin, slice.count)}
                                 : own_share(state.plan, state.layout, state.slot, spec);
    for (const auto& [share_first, share_count] : share) {
      const int64_t first = std::max(begin, share_first),
                    count = std::min(end, share_first + share_count) - first;
      if (count <= 0) continue;
      at::Tensor value = slice.value;
      for (const OptimizerState& held : state.optimizer.state(i)) {
        if (held.name == kMasterState) value = held.tensor;
      }
      add(slice.name, value.narrow(0, first - begin, count), first);
      for (const OptimizerState& held : state.optimizer.state(i)) {
        if (held.name != kMasterState)
          add(slice.name + "/" + held.name, held.tensor.narrow(0, first - begin, count), first);
      }
    }
  }
  return pieces;
}

std::vector<CheckpointTensor> checkpoint_tensors(const JobSpec& job) {
  const std::string dtype = kind_of(job.training.precision).state_type;
  std::vector<CheckpointTensor> tensors;
  for (const ParameterSpec& spec : trained_parameters(job.model, job.training.lora, job.model.vocabulary)) {
    std::vector<int64_t> shape = {spec.real_rows};
    if (spec.columns > 0) shape.push_back(spec.columns);
    tensors.push_back({spec.name, dtype, shape});
    for (const std::string& name : state_names(job.training.optimizer, is_linear_weight(spec, job.model)))
      tensors.push_back({spec.name + "/" + name, dtype, shape});
    if (job.training.ema) tensors.push_back({spec.name + "/" + kAverageState, dtype, shape});
  }
  return tensors;
}

void read_state(CheckpointReader& reader, const RankState& state) {
  const at::NoGradGuard no_graph;
  const ComputeOn computes(state.device);  // on the current thread, after previously enqueued work
  const std::map<std::string, ParameterSpec> specs = specs_by_name(state.job, state.layout);
  const std::vector<HeldValues> all = state.values();
  const std::vector<OptimizerSlice>& slices = state.optimizer.slices();
  const auto for_each_state_of = [&](const HeldValues& part, const auto& function) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (!part.cover(slices[i])) continue;
      for (const OptimizerState& held : state.optimizer.state(i)) function(slices[i], held);
    }
  };
  // First announce all reads, then read in the same order.
  for (const HeldValues& part : all) {
    const std::string& parameter = part.parameter->name;
    const int64_t base = base_of(state.slot, specs.at(parameter));
    const auto announce = [&](const std::string& name, int64_t first, const at::Tensor& out) {
      const CheckpointTensor* stored = find(reader, state.job, name);
      reader.announce(stored, first, count_into(stored, first, out));
    };
    announce(parameter, base + part.first, part.values);
    for_each_state_of(part, [&](const OptimizerSlice& slice, const OptimizerState& held) {
      if (!follows_values(reader, *part.parameter, held))
        announce(parameter + "/" + held.name, base + slice.first, held.tensor);
    });
  }
  for (const HeldValues& part : all) {
    const Parameter& parameter = *part.parameter;
    const ParameterSpec& spec = specs.at(parameter.name);
    const int64_t base = base_of(state.slot, spec);
    if (parameter.value.numel() != held_elements(state.slot, spec))
      throw std::logic_error(parameter.name + ": held with another number of rows");
    const CheckpointTensor* stored = find(reader, state.job, parameter.name);
    const at::Tensor& value = part.values;
    const at::ScalarType type = stored_scalar_type(stored->dtype, reader.path());
    const at::Tensor exact =
        type == value.scalar_type() ? value : at::zeros_like(value, value.options().dtype(type));
    read_into(reader, stored, base + part.first, exact);
    if (type != value.scalar_type()) value.copy_(exact);
    for_each_state_of(part, [&](const OptimizerSlice& slice, const OptimizerState& held) {
      if (follows_values(reader, parameter, held)) {
        held.tensor.copy_(exact.narrow(0, slice.first - part.first, slice.count));
      } else {
        read_into(reader, find(reader, state.job, parameter.name + "/" + held.name), base + slice.first,
                  held.tensor);
      }
    });
  }
  state.optimizer.set_steps_done(reader.manifest().optimizer_steps);
  if (state.loss_scaler) state.loss_scaler->continue_from(reader.manifest().loss_scale);
  if (state.spike_guard) state.spike_guard->continue_from(reader.manifest().spikes);
}

at::Tensor read_whole(CheckpointReader& reader, const ParameterSpec& parameter, bool average) {
  const std::string name = parameter.name + (average ? std::string("/") + kAverageState : "");
  const CheckpointTensor* tensor = reader.find(name);
  if (tensor == nullptr) throw CheckpointDamaged(fmt::format("{} has no {}", reader.path(), name));
  at::Tensor whole = at::empty(tensor->shape, at::dtype(stored_scalar_type(tensor->dtype, reader.path())));
  reader.read(tensor, 0, whole.numel(), whole.data_ptr());
  return whole;
}

}  // namespace sailor
