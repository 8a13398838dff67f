#include "planner/simulator/assumed_links.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr double kIdealBytesPerS = 1e18;

}  // namespace

double assumed_links_share(const PlanningContext& context, const Plan& plan, const Prediction& prediction,
                           CostModel cost_model) {
  if (cost_model == CostModel::published || !(prediction.iteration_s > 0)) return 0;
  const PlanningContext own = under(plan, context);
  ProfileSet profiles = own.profiles;
  using Reach = NetworkProfile::Reach;
  for (const Reach reach : {Reach::zone, Reach::region, Reach::world}) {
    NetworkProfile ideal;
    ideal.add(
        {{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(0, kIdealBytesPerS, 0)});
    profiles.network.assume(std::move(ideal), reach);
  }
  const double least_s =
      simulate({own.job, own.snapshot, own.catalog, profiles, own.framework, own.precision}, plan)
          .iteration_s;
  return std::clamp(1 - least_s / prediction.iteration_s, 0.0, 1.0);
}

}  // namespace sailor
