#include "planner/search/costs/stage_costs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "planner/search/problem/goal.h"
#include "planner/simulator/lookup.h"
#include "planner/simulator/published_model.h"

namespace sailor {
namespace {

std::vector<double> prefix_sums(const std::vector<double>& values) {
  std::vector<double> sums(1, 0);
  for (double value : values) sums.push_back(sums.back() + value);
  return sums;
}
}  // namespace

StageCosts::StageCosts(const PlanningContext& context, const Resources& resources, int microbatch)
    : context_(context),
      resources_(resources),
      charged_(goal_of(context.job).followed()),
      microbatch_(microbatch),
      layers_(context.job.model.num_all_layers()) {
  const size_t n = resources.options.size();
  compute_.resize(n);
  update_.resize(n);
  parameters_.resize(n);
  activations_.resize(n);
  sizes_.resize(n);
  links_.assign(n, std::vector<const LinkCurve*>(n, nullptr));
  single_links_ = links_;
  for (size_t o = 0; o < n; ++o) {
    const Option& option = resources.options[o];
    const LayerProfile::Cell* cell =
        context.profiles.layers.at(option.gpu_type).find(microbatch, option.shape);
    const std::vector<LayerSizes>* sizes = context.profiles.sizes.find(option.shape);
    if (cell != nullptr && sizes != nullptr && static_cast<int>(cell->size()) == layers_ &&
        static_cast<int>(sizes->size()) == layers_)
      add_option(static_cast<int>(o), *cell, *sizes);
  }
  std::vector<double> least(layers_, kNever), least_charge = least;
  for (int layer = 0; layer < layers_; ++layer)
    for (int o : options_) {
      const double seconds = compute_s(o, layer, layer + 1);
      least[layer] = std::min(least[layer], seconds);
      least_charge[layer] = std::min(least_charge[layer], seconds * resources.options[o].rate.busy_per_s);
    }
  work_charged_ = std::any_of(options_.begin(), options_.end(), [&](int o) {
    return resources.options[o].rate.busy_per_s != resources.options[o].rate.idle_per_s;
  });
  least_ = prefix_sums(least);
  least_charge_ = prefix_sums(least_charge);
  for (int a : options_)
    for (int b : options_) {
      const Option &from = resources.options[a], &to = resources.options[b];
      links_[a][b] = find_link(context.profiles.network, {from.gpu_type, from.zone, from.shape.gpus()},
                               {to.gpu_type, to.zone, to.shape.gpus()}, false);
      single_links_[a][b] = find_link(context.profiles.network, {from.gpu_type, from.zone, 1},
                                      {to.gpu_type, to.zone, 1}, false);
    }
  // The published formulas take the sizes of whole layers, those at TP degree 1.
  const std::vector<LayerSizes>* whole = context.profiles.sizes.find({});
  std::vector<double> bytes(layers_, 0);
  for (int layer = 0; layer < layers_; ++layer) {
    if (whole != nullptr)
      bytes[layer] = static_cast<double>((*whole)[layer].parameters) * published::kFloatBytes;
    else if (!options_.empty())
      bytes[layer] = static_cast<double>((*sizes_[options_.front()])[layer].parameters) *
                     resources.options[options_.front()].shape.parts() * published::kFloatBytes;
  }
  parameter_bytes_ = prefix_sums(bytes);
  number_messages();
  number_sizes();
}

void StageCosts::add_option(int o, const LayerProfile::Cell& cell, const std::vector<LayerSizes>& sizes) {
  options_.push_back(o);
  sizes_[o] = &sizes;
  compute_[o].assign(1, 0);
  parameters_[o].assign(1, 0);
  activations_[o].assign(1, 0);
  for (int layer = 0; layer < layers_; ++layer) {
    compute_[o].push_back(compute_[o].back() + cell[layer].forward_s + cell[layer].backward_s);
    update_[o].push_back(cell[layer].update_s);
    parameters_[o].push_back(parameters_[o].back() + sizes[layer].parameters);
    activations_[o].push_back(activations_[o].back() + sizes[layer].activation_bytes);
  }
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

bool StageCosts::fits(int option, int first, int end, int in_flight) const {
  LayerSizes sum;
  sum.parameters = parameters_[option][end] - parameters_[option][first];
  sum.activation_bytes = activations_[option][end] - activations_[option][first];
  const Option& of = resources_.options[option];
  return published::memory({&sum, 1}, of.shape, microbatch_, in_flight).total() <= of.capacity_bytes;
}

double StageCosts::longest_layer_s() const {
  double longest_s = 0;
  for (int layer = 0; layer < layers_; ++layer)
    longest_s = std::max(longest_s, least_compute_s(layer, layer + 1));
  return longest_s;
}

double StageCosts::least_sync_s(int replicas, double gpus) const {
  if (replicas < 2) return 0;
  // Some stage has at least its share of the bytes.
  std::set<const LinkCurve*> links;
  for (int a : options_)
    for (int b : options_)
      if (single_links_[a][b] != nullptr) links.insert(single_links_[a][b]);
  double least = kNever;
  for (const LinkCurve* link : links)
    least = std::min(least, published::all_reduce_s(*link, parameter_bytes_.back() / gpus, replicas));
  return least;
}

double StageCosts::message_bytes(int option, int layer) const {
  return static_cast<double>((*sizes_[option])[layer].output_elements) * published::kFloatBytes * microbatch_;
}

double StageCosts::message_s(int from, int to, int layer) const {
  const LinkCurve* link = links_[from][to];
  return link == nullptr ? kNever : link->published_time_s(message_bytes(from, layer));
}

double StageCosts::message_charge(int upstream, int downstream, int layer) const {
  const double price = traffic_per_gb(context_, charged_, resources_.options[upstream].zone,
                                      resources_.options[downstream].zone);
  return 2 * price * message_bytes(upstream, layer - 1) / 1e9;
}

double StageCosts::sync_s(int a, int b, int parts, int first, int end, int replicas) const {
  const LinkCurve* link = single_links_[a][b];
  const double bytes = parameter_bytes_[end] - parameter_bytes_[first];
  return link == nullptr ? kNever
                         : published::all_reduce_s(*link, published::sync_bytes(bytes, parts), replicas);
}

double StageCosts::sync_charge(int a, int b, int first, int end, int replicas) const {
  const double price =
      traffic_per_gb(context_, charged_, resources_.options[a].zone, resources_.options[b].zone);
  return price * (parameter_bytes_[end] - parameter_bytes_[first]) / 1e9 * 2 * (replicas - 1) / replicas;
}

}  // namespace sailor
