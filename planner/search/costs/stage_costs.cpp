#include "planner/search/costs/stage_costs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "planner/profile/collectives.h"
#include "planner/simulator/cost.h"
#include "planner/simulator/lookup.h"
#include "planner/simulator/memory.h"
#include "planner/simulator/published_model.h"

namespace sailor {
namespace {
constexpr double kNever = std::numeric_limits<double>::infinity();

// Replicas that share optimizer states among more than so many are counted as so many: what is left of a
// shard is about a hundredth of a parameter's states.
constexpr int kMostShards = 64;

// Weights, gradients and optimizer state of a layer that has nothing else; of `replicas` that share.
double state_bytes(const LayerSizes& layer, const PlanningContext& context, int replicas) {
  RankMemoryInput input;
  input.replicas = replicas;
  input.zero1 = replicas > 1;
  ChunkMemoryInput chunk;
  chunk.layers = {&layer, 1};
  input.chunks.push_back(chunk);
  const MemoryBreakdown memory = rank_memory(input, context.framework, context.job.training.precision);
  // At least: buffers for sums do not grow with every layer.
  return static_cast<double>(memory.total() - memory.communication_bytes - memory.fragmentation_bytes);
}

}  // namespace

StageCosts::StageCosts(const PlanningContext& context, const Resources& resources, CostModel model,
                       int microbatch, bool recomputing, bool sharded)
    : context_(context),
      resources_(resources),
      model_(model),
      microbatch_(microbatch),
      sharded_(sharded && model == CostModel::native),
      layers_(context.job.model.num_all_layers()) {
  const size_t n = resources.options.size();
  compute_.resize(n);
  update_.resize(n);
  parameters_.resize(n);
  activations_.resize(n);
  sizes_.resize(n);
  links_.assign(n, std::vector<const LinkCurve*>(n, nullptr));
  single_links_ = links_;
  std::vector<double> least(layers_, kNever), least_usd(layers_, kNever), state(layers_, kNever),
      activation(layers_, kNever);
  LayerSizes one;
  one.parameters = 1;
  const double bytes_per_parameter = model == CostModel::published
                                         ? static_cast<double>(published::memory({&one, 1}, 1, 1, 1).total() -
                                                               published::memory({}, 1, 1, 1).total())
                                         : state_bytes(one, context, sharded_ ? 1 << 20 : 1);
  for (size_t o = 0; o < n; ++o) {
    const Option& option = resources.options[o];
    const LayerProfile::Cell* cell = context.profiles.layers.at(option.gpu_type).find(microbatch, option.tp);
    const std::vector<LayerSizes>* sizes = context.profiles.sizes.find(option.tp);
    if (cell == nullptr || sizes == nullptr || static_cast<int>(cell->size()) != layers_ ||
        static_cast<int>(sizes->size()) != layers_)
      continue;
    // What never binds is not worth recomputing.
    if (option.plain >= 0 && (!recomputing || sizes_[option.plain] == nullptr || !memory_binds(option.plain)))
      continue;
    options_.push_back(static_cast<int>(o));
    sizes_[o] = sizes;
    compute_[o].assign(1, 0);
    update_[o].assign(1, 0);
    parameters_[o].assign(1, 0);
    activations_[o].assign(1, 0);
    for (int layer = 0; layer < layers_; ++layer) {
      const LayerTimes& times = (*cell)[layer];
      double compute_s = times.forward_s + times.backward_s;
      // As in the simulator: only blocks are computed again.
      if (option.recompute == Recompute::full && layer > 0 && layer + 1 < layers_)
        compute_s += times.forward_s;
      compute_[o].push_back(compute_[o].back() + compute_s);
      update_[o].push_back(update_[o].back() + times.update_s);
      parameters_[o].push_back(parameters_[o].back() + (*sizes)[layer].parameters);
      activations_[o].push_back(activations_[o].back() + (*sizes)[layer].activation_bytes);
      least[layer] = std::min(least[layer], compute_s);
      least_usd[layer] = std::min(least_usd[layer], compute_s * option.usd_per_s);
      state[layer] = std::min(
          state[layer], static_cast<double>((*sizes)[layer].parameters) * option.tp * bytes_per_parameter);
      activation[layer] =
          std::min(activation[layer], static_cast<double>((*sizes)[layer].kept_bytes(option.recompute)) *
                                          option.tp * microbatch);
    }
  }
  const auto prefix_sums = [](const std::vector<double>& values) {
    std::vector<double> sums(1, 0);
    for (double value : values) sums.push_back(sums.back() + value);
    return sums;
  };
  least_ = prefix_sums(least);
  least_usd_ = prefix_sums(least_usd);
  least_memory_bytes_ = std::accumulate(state.begin(), state.end(), 0.0) +
                        std::accumulate(activation.begin(), activation.end(), 0.0);
  for (int a : options_)
    for (int b : options_) {
      const Option &from = resources.options[a], &to = resources.options[b];
      links_[a][b] = find_link(context.profiles.network, {from.gpu_type, from.zone, from.tp},
                               {to.gpu_type, to.zone, to.tp}, false);
      single_links_[a][b] = find_link(context.profiles.network, {from.gpu_type, from.zone, 1},
                                      {to.gpu_type, to.zone, 1}, false);
      const LinkCurve* sync = sync_link(a, b);
      if (sync != nullptr &&
          std::find(distinct_links_.begin(), distinct_links_.end(), sync) == distinct_links_.end())
        distinct_links_.push_back(sync);
    }
  // Whole layers: the published formulas take the sizes at TP degree 1; ours add up the shards of any degree.
  parameter_bytes_.assign(1, 0);
  const std::vector<LayerSizes>* whole = context.profiles.sizes.find(1);
  const double bytes =
      model == CostModel::published ? published::kFloatBytes : element_bytes(context.job.training.precision);
  for (int layer = 0; layer < layers_; ++layer) {
    double parameters = 0;
    if (whole != nullptr) {
      parameters = static_cast<double>((*whole)[layer].parameters);
    } else if (!options_.empty()) {
      const int o = options_.front();
      parameters = static_cast<double>((*sizes_[o])[layer].parameters) * resources.options[o].tp;
    }
    parameter_bytes_.push_back(parameter_bytes_.back() + parameters * bytes);
  }
  number_messages();
  number_sizes();
}

void StageCosts::number_messages() {
  same_messages_.assign(layers_, 0);
  for (int layer = 1; layer < layers_; ++layer) {
    int same = layer;
    for (int before = 1; before < layer && same == layer; ++before)
      if (std::all_of(options_.begin(), options_.end(), [&](int o) {
            return message_bytes(o, layer) == message_bytes(o, before) &&
                   message_bytes(o, layer - 1) == message_bytes(o, before - 1);
          }))
        same = before;
    same_messages_[layer] = same;
  }
}

void StageCosts::number_sizes() {
  std::map<double, std::pair<int, int>> by_bytes;
  const auto bytes = [&](int first, int end) { return parameter_bytes_[end] - parameter_bytes_[first]; };
  for (int first = 0; first < layers_; ++first)
    for (int end = first + 1; end <= layers_; ++end) by_bytes[bytes(first, end)] = {first, end};
  std::map<double, int> number;
  for (const auto& [size, stage] : by_bytes) {
    number[size] = static_cast<int>(size_class_stages_.size());
    size_class_stages_.push_back(stage);
  }
  size_class_.assign(static_cast<size_t>(layers_ + 1) * (layers_ + 1), 0);
  for (int first = 0; first < layers_; ++first)
    for (int end = first + 1; end <= layers_; ++end)
      size_class_[first * (layers_ + 1) + end] = number.at(bytes(first, end));
}

int StageCosts::memory_replicas(int replicas) const {
  return std::min(replicas, sharded_ ? kMostShards : 2);
}

bool StageCosts::memory_binds() const {
  return std::any_of(options_.begin(), options_.end(), [&](int o) { return memory_binds(o); });
}

bool StageCosts::memory_binds(int option) const {
  // Who holds n microbatches has n - 1 stages behind it, of a layer each at least; the embedding in front is
  // among its layers, so no stage of n microbatches needs more than these.
  for (int in_flight = 1; in_flight <= layers_; ++in_flight)
    if (!fits(option, 0, layers_ - in_flight + 1, in_flight, 2)) return true;
  return false;
}

int64_t StageCosts::memory_bytes(int option, int first, int end, int in_flight, int replicas) const {
  if (model_ == CostModel::published) {
    LayerSizes sum;
    sum.parameters = parameters_[option][end] - parameters_[option][first];
    sum.activation_bytes = activations_[option][end] - activations_[option][first];
    return published::memory({&sum, 1}, resources_.options[option].tp, microbatch_, in_flight).total();
  }
  ChunkMemoryInput stage;
  stage.layers = {sizes_[option]->data() + first, static_cast<size_t>(end - first)};
  stage.recompute = resources_.options[option].recompute;
  stage.in_flight = in_flight;
  stage.has_previous = first > 0;
  stage.has_next = end < layers_;
  if (first > 0) stage.input_elements = (*sizes_[option])[first - 1].output_elements;
  RankMemoryInput input;
  input.chunks.push_back(stage);
  input.microbatch = microbatch_;
  input.microbatches = 2;  // of a pipeline; more change nothing
  input.replicas = replicas;
  input.zero1 = sharded_;
  input.both_ends = first == 0 && end == layers_;
  input.tp = resources_.options[option].tp;
  if (input.tp > 1) input.gathered_elements = sizes_[option]->front().output_elements;
  input.base_bytes =
      context_.profiles.layers.at(resources_.options[option].gpu_type).overheads.base_memory_bytes;
  return rank_memory(input, context_.framework, context_.job.training.precision).total();
}

bool StageCosts::fits(int option, int first, int end, int in_flight, int replicas) const {
  return memory_bytes(option, first, end, in_flight, replicas) <= resources_.options[option].capacity_bytes;
}

double StageCosts::most_free_bytes(int option) const {
  const Option& o = resources_.options[option];
  const int64_t base = model_ == CostModel::published
                           ? published::memory({}, o.tp, microbatch_, 1).total()
                           : context_.profiles.layers.at(o.gpu_type).overheads.base_memory_bytes;
  return static_cast<double>(o.capacity_bytes - base);
}

double StageCosts::least_sync_s(int replicas, double gpus) const {
  // Some stage has at least its share of the bytes; in the native model sums may hide behind other stages'
  // work.
  if (replicas < 2 || model_ == CostModel::native) return 0;
  double least = kNever;
  for (const LinkCurve* link : distinct_links_)
    least = std::min(least, published::all_reduce_s(*link, parameter_bytes_.back() / gpus, replicas));
  return least;
}

double StageCosts::message_bytes(int option, int layer) const {
  const double element = model_ == CostModel::published ? published::kFloatBytes
                                                        : element_bytes(context_.job.training.precision);
  return static_cast<double>((*sizes_[option])[layer].output_elements) * element * microbatch_;
}

double StageCosts::native_message_s(const LinkCurve& link, double bytes, int from, int to) const {
  const Option &sender = resources_.options[from], &receiver = resources_.options[to];
  return context_.profiles.layers.at(sender.gpu_type).overheads.message_slowdown *
         scatter_gather_s(link, bytes, sender.tp, receiver.tp, std::min(sender.tp, receiver.tp));
}

double StageCosts::activation_s(int from, int to, int layer) const {
  const LinkCurve* link = links_[from][to];
  if (link == nullptr) return kNever;
  const double bytes = message_bytes(from, layer - 1);
  return model_ == CostModel::published ? link->published_time_s(bytes)
                                        : native_message_s(*link, bytes, from, to);
}

double StageCosts::gradient_s(int from, int to, int layer) const {
  const LinkCurve* link = links_[from][to];
  if (link == nullptr) return kNever;
  // The published formula sizes the gradient by the output of the stage's own first layer.
  if (model_ == CostModel::published) return link->published_time_s(message_bytes(from, layer));
  return native_message_s(*link, message_bytes(from, layer - 1), from, to);
}

double StageCosts::message_usd(int upstream, int downstream, int layer) const {
  const std::string &from = resources_.options[upstream].zone, &to = resources_.options[downstream].zone;
  const double there = egress_usd_per_gb(context_.snapshot, from, to);
  const double back = model_ == CostModel::published ? there : egress_usd_per_gb(context_.snapshot, to, from);
  return (there + back) * message_bytes(upstream, layer - 1) / 1e9;
}

double StageCosts::sync_s(int a, int b, int tp, int first, int end, int replicas) const {
  const double bytes = parameter_bytes_[end] - parameter_bytes_[first];
  if (model_ == CostModel::published) {
    const LinkCurve* link = single_links_[a][b];
    return link == nullptr ? kNever
                           : published::all_reduce_s(*link, published::sync_bytes(bytes, tp), replicas);
  }
  const LinkCurve* link = links_[a][b];
  if (link == nullptr) return kNever;
  const Ring ring{replicas, replicas, static_cast<double>(tp), nullptr, link};
  return ring_all_reduce_s(ring, bytes / tp);
}

double StageCosts::sync_usd(int a, int b, int first, int end, int replicas) const {
  const double price =
      egress_usd_per_gb(context_.snapshot, resources_.options[a].zone, resources_.options[b].zone);
  return price * (parameter_bytes_[end] - parameter_bytes_[first]) / 1e9 * 2 * (replicas - 1) / replicas;
}

}  // namespace sailor
