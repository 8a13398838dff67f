#include "planner/search/native/shapes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace sailor::native {
namespace {

constexpr double kLarge_bytes = 64e6;

double s_per_byte(const LinkCurve* link, double senders) {
  if (link == nullptr) return 0;
  return (link->time_s(2 * kLarge_bytes, senders) - link->time_s(kLarge_bytes, senders)) / kLarge_bytes /
         senders;
}

}  // namespace

int TemplateShape::groups() const {
  int groups = 0;
  for (size_t i = 0; i < num_parts; ++i) groups += parts[i].groups;
  return groups;
}

Estimates::Estimates(const Space& space) : space_(space) {
  models_.resize(space.options.size() * space.microbatches.size() * kRecomputeLevels);
  for (const SpaceOption& option : space.options) {
    near_s_per_byte_.push_back(s_per_byte(space.kinds.find_link(option.kind, option.kind, true), 1));
    card_s_per_byte_.push_back(
        s_per_byte(space.kinds.find_link(option.kind, option.kind, false), kManySenders));
    zone_links_.push_back(zone_link(option));
  }
  if (space.options.empty()) return;
  const SpaceOption& any = space.options.front();
  const PlanningContext& context = space.context;
  const FrameworkStyle& style = context.framework;
  const Precision precision = context.precision;
  const double parameters = space.kinds.parameters(any.kind, 0, space.layers()) * any.shape.parts();
  const std::vector<LayerSizes>& sizes = *space.kinds[any.kind].sizes;
  message_bytes_ = static_cast<double>(sizes[sizes.size() / 2].output_elements) * element_bytes(precision);
  sum_bytes_ = parameters * style.sync_bytes_at(precision);
  // Tied matrices are one where a rank holds both.
  const double at_least =
      parameters -
      static_cast<double>(space.kinds[any.kind].sizes->back().tied_parameters) * any.shape.parts();
  double frozen = -static_cast<double>(sizes.back().tied_frozen_parameters);
  for (const LayerSizes& layer : sizes) frozen += static_cast<double>(layer.frozen_parameters);
  weight_bytes_ = (at_least + frozen * any.shape.parts()) * style.weight_bytes(precision);
  gradient_bytes_ = at_least * style.gradient_bytes_at(precision);
  state_bytes_ = space.may_offload
                     ? 0
                     : at_least * style.state_bytes_at(precision, context.job.training.ema.has_value());
}

const LinkCurve* Estimates::zone_link(const SpaceOption& option) const {
  const SpacePool& pool = space_.pools[static_cast<size_t>(option.pool)];
  std::set<int> kinds;  // one per zone
  if (pool.joint)
    for (const int node : pool.nodes)
      if (const int here = space_.option_of(space_.pool_of_node[static_cast<size_t>(node)], option.shape);
          here >= 0)
        kinds.insert(space_.options[static_cast<size_t>(here)].kind);
  const LinkCurve* fastest = nullptr;
  for (const int from : kinds)
    for (const int to : kinds) {
      const LinkCurve* link = from == to ? nullptr : space_.kinds.find_link(from, to, false);
      if (link != nullptr && (fastest == nullptr || link->time_s(kLarge_bytes, kManySenders) <
                                                        fastest->time_s(kLarge_bytes, kManySenders)))
        fastest = link;
    }
  return fastest;
}

double Estimates::model_bytes(Zero zero, int replicas) const {
  zero = std::max(zero, space_.context.framework.zero);
  const auto held = [&](double bytes, Zero degree) { return zero >= degree ? bytes / replicas : bytes; };
  return held(weight_bytes_, Zero::parameters) + held(gradient_bytes_, Zero::gradients) +
         held(state_bytes_, Zero::optimizer);
}

bool Estimates::may_fit(const TemplateShape& shape, Zero zero) const {
  double capacity = 0;
  for (size_t i = 0; i < shape.num_parts; ++i) {
    const SpaceOption& option = space_.options[static_cast<size_t>(shape.parts[i].option)];
    capacity += static_cast<double>(shape.parts[i].groups) * option.shape.gpus() *
                static_cast<double>(space_.kinds[option.kind].capacity_bytes);
  }
  return model_bytes(zero, shape.pipelines) <= capacity;
}

const Estimates::Model& Estimates::model(int option, int microbatch, Recompute recompute) {
  const auto size = static_cast<size_t>(
      std::lower_bound(space_.microbatches.begin(), space_.microbatches.end(), microbatch) -
      space_.microbatches.begin());
  Model& out = models_[(static_cast<size_t>(option) * space_.microbatches.size() + size) * kRecomputeLevels +
                       static_cast<size_t>(recompute)];
  if (out.all_s >= 0) return out;
  const KindTimes& times = space_.times(option, microbatch);
  const int layers = space_.layers();
  out.all_s = times.forward(0, layers) + times.backward(recompute, 0, layers);
  std::vector<double> layer_s;
  for (int layer = 0; layer < layers; ++layer)
    layer_s.push_back(times.forward(layer, layer + 1) + times.backward(recompute, layer, layer + 1));
  out.longest_s = *std::max_element(layer_s.begin(), layer_s.end());
  const auto middle = layer_s.begin() + layers / 2;
  std::nth_element(layer_s.begin(), middle, layer_s.end());
  out.layer_s = std::max(*middle, std::numeric_limits<double>::min());
  out.update_s = times.update_s.back();
  return out;
}

double Estimates::model_s(int option, int microbatch, Recompute recompute) {
  return model(option, microbatch, recompute).all_s;
}

double Estimates::longest_s(int option, int microbatch, Recompute recompute) {
  return model(option, microbatch, recompute).longest_s;
}

double Estimates::layer_s(int option, int microbatch, Recompute recompute) {
  return model(option, microbatch, recompute).layer_s;
}

double Estimates::speed(int pool) {
  const SpacePool& of = space_.pools[static_cast<size_t>(pool)];
  double speed = 0;
  for (const int option : of.options)
    for (const int size : space_.microbatches)
      if (space_.has_times(option, size))
        speed = std::max(speed, static_cast<double>(of.gpus) * size /
                                    space_.options[static_cast<size_t>(option)].shape.gpus() /
                                    model_s(option, size, Recompute::none));
  return speed;
}

Estimates::Stages Estimates::stages_of(const TemplateShape& shape) {
  Stages out;
  for (size_t i = 0; i < shape.num_parts; ++i)
    out.rate += shape.parts[i].groups / model_s(shape.parts[i].option, shape.microbatch, shape.recompute);
  // The longest layer may be where it is fastest.
  double longest_layer_s = kNever;
  for (size_t i = 0; i < shape.num_parts; ++i)
    longest_layer_s =
        std::min(longest_layer_s, longest_s(shape.parts[i].option, shape.microbatch, shape.recompute));
  out.stage_s = std::max(1 / out.rate, longest_layer_s);
  // Layers are whole: the least time in which the stages do all of them.
  for (int tries = 0; tries < space_.layers(); ++tries) {
    double layers = 0, next_s = kNever, wanted = 0;
    for (size_t i = 0; i < shape.num_parts; ++i) {
      const Model& of = model(shape.parts[i].option, shape.microbatch, shape.recompute);
      const double each = std::floor(out.stage_s / of.layer_s * (1 + 1e-9));
      layers += shape.parts[i].groups * each;
      next_s = std::min(next_s, (each + 1) * of.layer_s);
      wanted = std::max(wanted, of.all_s / of.layer_s - 0.5);  // with those that are no blocks
    }
    if (layers >= wanted) break;
    out.stage_s = next_s;
  }
  return out;
}

double Estimates::iteration_s(const TemplateShape& shape, double microbatches, int replicas) {
  const Stages stages = stages_of(shape);
  return std::min(iteration_s(shape, stages, microbatches, replicas, true),
                  iteration_s(shape, stages, microbatches, replicas, false));
}

double Estimates::iteration_s(const TemplateShape& shape, const Stages& stages, double microbatches,
                              int replicas, bool by_stage) {
  double sums_s = 0, update_s = 0, send_s = 0, path_s = 0;
  for (size_t i = 0; i < shape.num_parts; ++i) {
    const TemplateShape::Part& part = shape.parts[i];
    const SpaceOption& option = space_.options[static_cast<size_t>(part.option)];
    const Model& of = model(part.option, shape.microbatch, shape.recompute);
    const double share = part.groups / (of.all_s * stages.rate);  // of the model
    update_s = std::max(update_s, of.update_s * share / part.groups);
    // Groups of GPUs, replicas of a stage and neighbouring stages on a node.
    const int node_groups =
        std::max(1, space_.pools[static_cast<size_t>(option.pool)].node_gpus() / option.shape.gpus());
    int here = std::min(replicas, node_groups);
    if (!by_stage) here = shape.num_parts == 1 ? std::clamp(node_groups / part.groups, 1, replicas) : 1;
    const int run = std::clamp(node_groups / here, 1, part.groups);

    const SpacePool& pool = space_.pools[static_cast<size_t>(option.pool)];
    const LinkCurve* zones = shape.pipelines * part.groups * option.shape.gpus() > pool.zone_gpus
                                 ? zone_links_[static_cast<size_t>(part.option)]
                                 : nullptr;
    const bool reduces_over_zones = zones != nullptr && replicas > 1 && (!by_stage || part.groups == 1);

    // Between stages: what leaves a node holds up what stays there.
    const bool leaves = shape.num_parts > 1 || run < part.groups;
    const double slowdown = space_.kinds[option.kind].profile->overheads.message_slowdown;
    const auto send_over = [&](const LinkCurve* link, double senders) {
      return link == nullptr
                 ? 0
                 : slowdown * link->time_s(message_bytes_ * shape.microbatch / option.shape.gpus(), senders);
    };
    const auto send = [&](bool near, double senders) {
      return send_over(space_.kinds.find_link(option.kind, option.kind, near), senders);
    };
    const double near_s = run > 1 ? send(true, 1) : 0,
                 far_s = leaves ? send(false, here * option.shape.gpus()) : 0;
    const double zones_s = zones != nullptr && !reduces_over_zones && part.groups > 1
                               ? send_over(zones, here * option.shape.gpus())
                               : 0;
    send_s = std::max({send_s, far_s, near_s, zones_s});
    path_s += 2 * part.groups * ((run - 1) * near_s + far_s) / run + 2 * zones_s;

    if (replicas < 2) continue;
    const double gradients = sum_bytes_ * share / part.groups;  // of a stage
    const double port_s = 2.0 * (replicas - 1) / replicas * gradients / option.shape.gpus() *
                          near_s_per_byte_[static_cast<size_t>(part.option)];
    const double card_s = 2.0 * here * run * (replicas - here) / replicas * gradients *
                          card_s_per_byte_[static_cast<size_t>(part.option)];
    const double zone_s = reduces_over_zones ? 2.0 * (replicas - 1) / replicas * here * run * gradients *
                                                   s_per_byte(zones, kManySenders)
                                             : 0;
    sums_s = std::max({sums_s, port_s, card_s, zone_s});
  }
  // What nothing hides.
  const double after_s = std::max(0.0, sums_s - stages.stage_s / 2) + update_s;
  return microbatches * std::max(stages.stage_s, shape.interleave * send_s) +
         (shape.groups() - 1.0) / shape.interleave * stages.stage_s + path_s + after_s;
}

double Estimates::busy_per_s(const TemplateShape& shape) const {
  double sum = 0;
  for (size_t i = 0; i < shape.num_parts; ++i)
    sum +=
        shape.parts[i].groups * space_.kinds[space_.options[static_cast<size_t>(shape.parts[i].option)].kind]
                                    .rate[space_.charged]
                                    .busy_per_s;
  return sum * shape.pipelines;
}

PlanTemplate template_of(const Space& space, const TemplateShape& shape) {
  PlanTemplate out;
  out.microbatch = shape.microbatch;
  out.interleave = shape.interleave;
  out.block = shape.pipelines;
  TemplateClass of;
  of.pipelines = shape.pipelines;
  of.microbatches = num_microbatches(space.context.job.training.global_batch, shape.microbatch);
  for (int chunk = 0; chunk < shape.interleave; ++chunk)
    for (size_t i = 0; i < shape.num_parts; ++i)
      of.stages.insert(of.stages.end(), static_cast<size_t>(shape.parts[i].groups),
                       {shape.parts[i].option, 0, shape.recompute});
  out.classes.push_back(std::move(of));
  return out;
}

std::vector<int> replica_counts(int64_t microbatches, int most, int per_node) {
  std::set<int, std::greater<>> counts;
  most = static_cast<int>(std::min<int64_t>(most, microbatches));
  for (int count = most; count > 0;) {
    const int64_t rounds = (microbatches + count - 1) / count;
    // The fewest pipelines with as many rounds.
    const auto fewest = static_cast<int>((microbatches + rounds - 1) / rounds);
    counts.insert(fewest);
    count = fewest - 1;
  }
  if (most > 0) counts.insert(most);
  for (int count = per_node; per_node > 1 && count <= most; count *= 2) counts.insert(count);
  if (per_node > 1)
    for (int count = most / per_node * per_node; count > most / 2 && count > 0; count -= per_node)
      counts.insert(count);
  return {counts.begin(), counts.end()};
}

}  // namespace sailor::native
