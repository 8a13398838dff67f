#include "tests/bench/native/feature_gains.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/bench/native/searched.h"

namespace sailor::bench {
namespace {

constexpr double kByChance_pct = 5;
constexpr double kGain_pct = 1;

// What needs it goes with it.
PlanFeatures without(PlanFeature feature) {
  PlanFeatures features = all_plan_features();
  features.erase(feature);
  if (feature == PlanFeature::zero1)
    for (const PlanFeature needing : {PlanFeature::zero2, PlanFeature::hybrid_zero}) features.erase(needing);
  if (!features.contains(PlanFeature::zero2)) features.erase(PlanFeature::zero3);
  return features;
}

struct FeatureGain {
  std::string name;
  double sum_pct = 0, most_pct = 0, least_pct = 0;
  int compared = 0, gained = 0, only_with = 0, only_without = 0;

  // Per cent that a plan without the feature is slower; text for the table.
  std::string add(const Searched& with, const Searched& without) {
    if (with.iteration_s == 0 || without.iteration_s == 0) {
      only_with += with.iteration_s > 0;
      only_without += without.iteration_s > 0;
      return with.iteration_s > 0 ? "new" : without.iteration_s > 0 ? "lost" : "";
    }
    const double pct = 100 * (without.iteration_s / with.iteration_s - 1);
    ++compared;
    sum_pct += pct;
    gained += pct > kGain_pct;
    most_pct = std::max(most_pct, pct);
    least_pct = std::min(least_pct, pct);
    return fmt::format("{:.2f}", pct);
  }
};

}  // namespace

int run_feature_gains(const NativeOptions& options) {
  const Catalog catalog = load_catalog(options.catalog);
  fmt::print(stderr, "# seed {}\n", options.seed);
  std::vector<FeatureGain> features;
  fmt::print("problem,gpus,types,iteration_s,gap_pct,cpu_s");
  for (const PlanFeature feature : all_plan_features()) {
    features.push_back({.name = to_string(feature)});
    fmt::print(",{}", to_string(feature));
  }
  fmt::print("\n");
  const int first = std::max(0, options.only), end = options.only < 0 ? options.count : first + 1;
  for (int number = first; number < end; ++number) {
    const RandomProblem problem = random_problem(catalog, options.seed, number, options.limits);
    const Searched all = searched(problem.inputs, all_plan_features(), options);
    const bool has_gap = all.iteration_s > 0 && all.bound_s > 0;
    fmt::print("{},{},{},{},{},{:.2f}", number, problem.gpus(), fmt::join(problem.types(), " "),
               all.iteration_s > 0 ? fmt::format("{:.6g}", all.iteration_s) : "none",
               has_gap ? fmt::format("{:.1f}", 100 * (all.iteration_s / all.bound_s - 1)) : "", all.cpu_s);
    size_t at = 0;
    for (const PlanFeature feature : all_plan_features())
      fmt::print(",{}", features[at++].add(all, searched(problem.inputs, without(feature), options)));
    fmt::print("\n");
    std::fflush(stdout);
  }
  bool by_chance = true;
  for (const FeatureGain& of : features) {
    fmt::print(stderr,
               "# {}: {:.2f} % in the mean, {:.2f} % at most, more than {} % on {} of {}; no plan without it "
               "on {}, faster without it by {:.2f} % at most\n",
               of.name, of.sum_pct / std::max(1, of.compared), of.most_pct, kGain_pct, of.gained, of.compared,
               of.only_with, -of.least_pct);
    by_chance = by_chance && of.least_pct >= -kByChance_pct && of.only_without == 0;
  }
  return by_chance ? 0 : 1;
}

}  // namespace sailor::bench
