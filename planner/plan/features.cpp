#include "planner/plan/features.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <sstream>

#include "planner/spec/error.h"

namespace sailor {

const char* to_string(PlanFeature feature) {
  switch (feature) {
    case PlanFeature::unlike_cuts:
      return "unlike-cuts";
    case PlanFeature::unlike_shares:
      return "unlike-shares";
    case PlanFeature::unlike_microbatches:
      return "unlike-microbatches";
    case PlanFeature::recompute:
      return "recompute";
    case PlanFeature::zero1:
      return "zero1";
    case PlanFeature::zero2:
      return "zero2";
    case PlanFeature::hybrid_zero:
      return "hybrid-zero";
    case PlanFeature::interleave:
      return "interleave";
    case PlanFeature::split_backward:
      return "split-backward";
    case PlanFeature::sequence_parallel:
      return "sequence-parallel";
    case PlanFeature::context_parallel:
      return "context-parallel";
    case PlanFeature::offload:
      return "offload";
    case PlanFeature::selective_recompute:
      return "selective";
    case PlanFeature::zero3:
      return "zero3";
  }
  return "";
}

std::vector<std::string> plan_feature_names() {
  std::vector<std::string> names;
  for (PlanFeature feature : all_plan_features()) names.push_back(to_string(feature));
  return names;
}

PlanFeatures parse_plan_features(const std::string& text) {
  if (text == "none") return {};
  if (text == "all") return all_plan_features();
  const std::vector<std::string> names = plan_feature_names();
  PlanFeatures out;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ',');) {
    const size_t before = out.size();
    bool known = false;
    for (PlanFeature feature : all_plan_features())
      if (name == to_string(feature)) {
        out.insert(feature);
        known = true;
      }
    if (!known)
      throw InputError(
          fmt::format("unknown plan feature \"{}\" ({}, all or none)", name, fmt::join(names, ", ")));
    if (out.size() == before) throw InputError(fmt::format("plan feature \"{}\" is listed twice", name));
  }
  if (out.contains(PlanFeature::zero3)) out.insert(PlanFeature::zero2);
  if (out.contains(PlanFeature::zero2) || out.contains(PlanFeature::hybrid_zero))
    out.insert(PlanFeature::zero1);
  if (out.contains(PlanFeature::context_parallel)) out.insert(PlanFeature::sequence_parallel);
  if (out.empty())
    throw InputError(fmt::format("no plan feature is given ({}, all or none)", fmt::join(names, ", ")));
  return out;
}

PlanFeatures all_plan_features() {
  return {PlanFeature::unlike_cuts,
          PlanFeature::unlike_shares,
          PlanFeature::unlike_microbatches,
          PlanFeature::recompute,
          PlanFeature::zero1,
          PlanFeature::zero2,
          PlanFeature::zero3,
          PlanFeature::hybrid_zero,
          PlanFeature::interleave,
          PlanFeature::split_backward,
          PlanFeature::sequence_parallel,
          PlanFeature::context_parallel,
          PlanFeature::offload};
}

PlanFeatures predictable_features() {
  PlanFeatures features = trainable_features();
  features.insert(PlanFeature::selective_recompute);
  return features;
}

PlanFeatures trainable_features() {
  return all_plan_features();
}

std::span<const Zero> zero_degrees(const PlanFeatures& features, int replicas) {
  static constexpr std::array kDegrees = {Zero::none, Zero::optimizer, Zero::gradients, Zero::parameters};
  static constexpr std::array kFeatures = {PlanFeature::zero1, PlanFeature::zero2, PlanFeature::zero3};
  size_t count = 1;
  while (replicas > 1 && count < kDegrees.size() && features.contains(kFeatures[count - 1])) ++count;
  return std::span<const Zero>(kDegrees).first(count);
}

}  // namespace sailor
