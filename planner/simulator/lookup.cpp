#include "planner/simulator/lookup.h"

#include <fmt/format.h>

#include "planner/spec/error.h"

namespace sailor {

const LayerProfile& profile_of(const PlanningContext& context, const std::string& gpu_type) {
  const auto it = context.profiles.layers.find(gpu_type);
  if (it == context.profiles.layers.end())
    throw InputError(fmt::format(
        "no layer profile of model \"{}\"{} on GPU type \"{}\": measure one with `sailor profile`",
        context.job.model.name,
        context.job.training.fallback_precision ? fmt::format(" in {}", to_string(context.precision)) : "",
        gpu_type));
  return it->second;
}

const LayerProfile::Cell& cell_of(const PlanningContext& context, const std::string& gpu_type, int microbatch,
                                  ReplicaShape shape) {
  const LayerProfile& profile = profile_of(context, gpu_type);
  const LayerProfile::Cell* cell = profile.find(microbatch, shape);
  if (cell == nullptr)
    throw InputError({profile.file, 0}, fmt::format("microbatch {} at TP degree {} was not profiled on GPU "
                                                    "type \"{}\": measure it with `sailor profile`",
                                                    microbatch, shape.tp, gpu_type));
  return *cell;
}

const std::vector<LayerSizes>& sizes_of(const PlanningContext& context, ReplicaShape shape) {
  const std::vector<LayerSizes>* sizes = context.profiles.sizes.find(shape);
  if (sizes == nullptr)
    throw InputError(fmt::format(
        "the layer sizes of model \"{}\" at TP degree {} are not in any profile: measure them with "
        "`sailor profile`",
        context.job.model.name, shape.tp));
  if (static_cast<int>(sizes->size()) != context.job.model.num_all_layers())
    throw InputError(
        fmt::format("the profile of model \"{}\" at TP degree {} has {} layers, the model has {}",
                    context.job.model.name, shape.tp, sizes->size(), context.job.model.num_all_layers()));
  return *sizes;
}

LinkEnd link_end(const PlanStage& stage, int gpus) {
  return LinkEnd{stage.gpu_type, stage.zone, gpus};
}

const LinkCurve* find_link(const NetworkProfile& network, const LinkEnd& from, const LinkEnd& to,
                           bool same_node) {
  const LinkCurve* curve = network.find(from, to, same_node);
  return curve != nullptr || same_node ? curve : network.find(from, to, true);
}

const LinkCurve& link_of(const PlanningContext& context, const LinkEnd& from, const LinkEnd& to,
                         bool same_node) {
  const LinkCurve* curve = find_link(context.profiles.network, from, to, same_node);
  if (curve == nullptr)
    throw InputError(
        {context.profiles.network.file, 0},
        fmt::format(
            "no network profile from GPU type \"{}\" in zone \"{}\" ({} GPUs) to GPU type \"{}\" in zone "
            "\"{}\" ({} GPUs): measure it with `sailor probe`",
            from.gpu_type, from.zone, from.gpus, to.gpu_type, to.zone, to.gpus));
  return *curve;
}

bool on_one_node(const PlanStage& a, const PlanStage& b) {
  return !a.node.empty() && a.node == b.node;
}

}  // namespace sailor
