#include "planner/profile/split_tokens.h"

#include <algorithm>
#include <cmath>

#include "planner/profile/analytic_profile.h"
#include "planner/profile/collectives.h"
#include "planner/spec/model_family.h"

namespace sailor {
namespace {

int64_t with_share_of_whole(int64_t at_tp, int64_t alone, int tp) {
  const auto all = static_cast<double>(at_tp);
  const double whole = std::clamp((tp * all - static_cast<double>(alone)) / (tp - 1), 0.0, all);
  return std::llround(all - whole * (1 - 1.0 / tp));
}

void multiply(double& value, double before, double after) {
  if (before > 0) value *= after / before;
}

// Of one sequence.
int64_t query_elements(const ModelSpec& model) {
  return int64_t{model.sequence} * model.heads * model.head_width();
}
int64_t key_value_elements(const ModelSpec& model) {
  return 2 * int64_t{model.sequence} * model.key_value_heads() * model.head_width();
}
int64_t qkv_elements(const ModelSpec& model) {
  return query_elements(model) + key_value_elements(model);
}

bool has_estimates(const SplitTimes& of) {
  return has_kernel_model(of.type, of.precision) && find_family(of.job.model.family) != nullptr;
}

// The part of a layer's time that remains of a microbatch divided by shape.cp.
double context_share(const LayerProfile& profile, int microbatch, const ReplicaShape& shape, size_t layer,
                     double LayerTimes::*part) {
  const double sequences = static_cast<double>(microbatch) / shape.cp;
  const auto at = [&](int size) { return (*profile.find(size, {.tp = shape.tp}))[layer].*part; };
  const double whole = at(microbatch);
  if (whole <= 0) return 1;
  std::vector<int> sizes;
  for (const auto& [key, cell] : profile.cells)
    if (key.second == ReplicaShape{.tp = shape.tp}) sizes.push_back(key.first);
  if (sizes.size() == 1) return 1.0 / shape.cp;
  const auto above = std::lower_bound(sizes.begin(), sizes.end(), sequences);
  if (above != sizes.begin()) {
    const int below = *std::prev(above);
    const double share = (sequences - below) / (*above - below);
    return (at(below) + share * (at(*above) - at(below))) / whole;
  }
  // What a microbatch takes however small it is, as far as the two smallest ones tell.
  const int first = sizes[0], second = sizes[1];
  const double fixed_s =
      std::clamp((at(first) * second - at(second) * first) / (second - first), 0.0, at(first));
  return (fixed_s + (at(first) - fixed_s) * sequences / first) / whole;
}

// What the backward of attention in a ring holds of a sequence, in the whole replica: keys and values of its
// own twice, as far as others see them, and of two other ranks; gradients of them for two ranks, and from
// two; and sums in fp32 of its own gradients and of those of the queries.
int64_t ring_bytes(const ModelSpec& model, Precision precision) {
  const int64_t sums = std::max<int64_t>(4, element_bytes(precision));
  return 8 * key_value_elements(model) * element_bytes(precision) +
         sums * (key_value_elements(model) + query_elements(model));
}

// Keys and values of a step travel while those of the step before are used, and so do the gradients of them,
// but for the last ones. Estimated by operations, a causal attention being half of a whole one.
void add_ring(LayerTimes& block, int number, const SplitTimes& of) {
  const ModelSpec& model = of.job.model;
  const int ring = model.ring_degree(of.shape);
  if (ring == 1) return;
  const double step_bytes = static_cast<double>(of.microbatch) * element_bytes(of.precision) *
                            static_cast<double>(key_value_elements(model)) / of.shape.gpus();
  const double message_s = of.link->time_s(step_bytes, 1);
  double attention_share = 0;
  if (find_family(model.family) != nullptr) {
    const TransformerShape shape = shape_of(model).of_block(number);
    const double attention = 6.0 * shape.heads * shape.head_width * shape.keys();
    attention_share = attention / (6.0 * static_cast<double>(shape.block_parameters()) + attention);
  }
  const auto waiting_s = [&](double pass_s, int messages) {
    return (ring - 1) * std::max(0.0, messages * message_s - attention_share * pass_s / ring);
  };
  const double forward_s = waiting_s(block.forward_s, 1);
  block.backward_s += waiting_s(block.backward_s, 2) + message_s;
  block.forward_s += forward_s;
  if (block.attention_s > 0) block.attention_s += forward_s;
}

}  // namespace

void split_tokens(std::vector<LayerSizes>& sizes, const std::vector<LayerSizes>& alone, int tp) {
  if (tp < 2) return;
  for (size_t layer = 0; layer < std::min(sizes.size(), alone.size()); ++layer)
    for (int64_t LayerSizes::*part :
         {&LayerSizes::activation_bytes, &LayerSizes::selective_bytes, &LayerSizes::light_bytes,
          &LayerSizes::mlp_bytes, &LayerSizes::checkpoint_bytes, &LayerSizes::workspace_bytes})
      sizes[layer].*part = with_share_of_whole(sizes[layer].*part, alone[layer].*part, tp);
  // Half of what is whole are gradients of results, which stay gathered.
  for (size_t layer = 0; layer < std::min(sizes.size(), alone.size()); ++layer) {
    const int64_t whole = sizes[layer].pending_bytes;
    const int64_t split = with_share_of_whole(whole, alone[layer].pending_bytes, tp);
    sizes[layer].pending_bytes = whole - (whole - split) / 2;
  }
}

void split_tokens(LayerProfile::Cell& cell, const SplitTimes& of) {
  const int tp = of.shape.tp;
  if (tp < 2 || of.style.sequence_parallel || of.type.emulation || of.link == nullptr) return;
  const Ring ring{tp, 1, 1, of.link, nullptr};
  FrameworkStyle split = of.style;
  split.sequence_parallel = true;
  // Frozen weights have no gradients, for which their inputs would be gathered again.
  if (of.job.training.lora) split.backward_extra_gathers = 0;
  if (!has_estimates(of)) {
    const double activation_bytes = static_cast<double>(of.job.model.sequence) * of.job.model.hidden *
                                    of.microbatch * element_bytes(of.precision);
    const double gather_s = ring_pass_s(ring, activation_bytes);
    for (size_t block = 1; block + 1 < cell.size(); ++block) {
      cell[block].backward_s += split.backward_extra_gathers * gather_s;
      if (cell[block].mlp_s > 0) cell[block].mlp_s += gather_s;
      if (cell[block].weight_s > 0) cell[block].weight_s += split.backward_extra_gathers * gather_s;
    }
    return;
  }
  const TransformerShape shape = shape_of(of.job.model);
  const KernelModel kernels = kernel_model(of.type, of.precision);
  const auto times = [&](const FrameworkStyle& style) {
    return analytic_times({shape, style, kernels, {}, of.precision, of.microbatch, ring, 0});
  };
  const LayerProfile::Cell before = times(of.style), after = times(split);
  for (size_t layer = 0; layer < cell.size(); ++layer)
    for (double LayerTimes::*part : {&LayerTimes::forward_s, &LayerTimes::backward_s, &LayerTimes::light_s,
                                     &LayerTimes::mlp_s, &LayerTimes::weight_s})
      multiply(cell[layer].*part, before[layer].*part, after[layer].*part);
}

void split_context(std::vector<LayerSizes>& sizes, const ModelSpec& model, Precision precision,
                   const ReplicaShape& shape) {
  if (shape.cp < 2) return;
  // Of queries, keys and values: what is sent, and what is received.
  int64_t exchanged = 2 * qkv_elements(model) / shape.gpus() * element_bytes(precision);
  if (model.ring_degree(shape) > 1)
    exchanged = std::max(exchanged, ring_bytes(model, precision) / shape.gpus());
  for (size_t layer = 0; layer < sizes.size(); ++layer) {
    for (int64_t LayerSizes::*part :
         {&LayerSizes::activation_bytes, &LayerSizes::selective_bytes, &LayerSizes::light_bytes,
          &LayerSizes::mlp_bytes, &LayerSizes::checkpoint_bytes, &LayerSizes::workspace_bytes,
          &LayerSizes::pending_bytes, &LayerSizes::persistent_bytes})
      sizes[layer].*part = (sizes[layer].*part + shape.cp - 1) / shape.cp;
    if (layer > 0 && layer + 1 < sizes.size()) sizes[layer].workspace_bytes += exchanged;
  }
}

void share_context(LayerProfile::Cell& cell, const LayerProfile& profile, int microbatch,
                   const ReplicaShape& shape) {
  if (shape.cp < 2) return;
  for (size_t layer = 0; layer < cell.size(); ++layer)
    for (double LayerTimes::*part :
         {&LayerTimes::forward_s, &LayerTimes::backward_s, &LayerTimes::attention_s, &LayerTimes::light_s,
          &LayerTimes::mlp_s, &LayerTimes::weight_s})
      cell[layer].*part *= context_share(profile, microbatch, shape, layer, part);
}

void split_context(LayerProfile::Cell& cell, const LayerProfile& profile, const SplitTimes& of) {
  const ReplicaShape& shape = of.shape;
  if (shape.cp < 2) return;
  share_context(cell, profile, of.microbatch, shape);
  if (of.type.emulation || of.link == nullptr) return;
  const double bytes = static_cast<double>(of.microbatch) / shape.gpus() * (shape.cp - 1) / shape.cp *
                       element_bytes(of.precision);
  const ModelSpec& model = of.job.model;
  const double exchanges_s = of.link->time_s(bytes * static_cast<double>(qkv_elements(model)), 1) +
                             of.link->time_s(bytes * static_cast<double>(query_elements(model)), 1);
  for (size_t block = 1; block + 1 < cell.size(); ++block) {
    add_ring(cell[block], static_cast<int>(block) - 1, of);
    cell[block].forward_s += exchanges_s;
    cell[block].backward_s += exchanges_s;
    if (cell[block].attention_s > 0) cell[block].attention_s += exchanges_s;
  }
}

}  // namespace sailor
