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

bool has_estimates(const SplitTimes& of) {
  return has_kernel_model(of.type, of.precision) && find_family(of.job.model.family) != nullptr;
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
  if (of.tp < 2 || of.style.sequence_parallel || of.type.emulation || of.link == nullptr) return;
  const Ring ring{of.tp, 1, 1, of.link, nullptr};
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

}  // namespace sailor
