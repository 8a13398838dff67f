#include "trainer/elastic/next_plan.h"

#include <algorithm>
#include <utility>

#include "planner/plan/rank_layout.h"
#include "trainer/elastic/growth_choice.h"

namespace sailor {
namespace {

constexpr double kLongerSearch_s = 10;  // during training

bool has_all(const std::vector<LiveGpu>& gpus, const Plan& plan) {
  const RankLayout layout(plan);
  return std::all_of(layout.slots().begin(), layout.slots().end(), [&](const RankSlot& slot) {
    return std::find(gpus.begin(), gpus.end(), LiveGpu{slot.node, slot.gpu}) != gpus.end();
  });
}

}  // namespace

NextPlan::NextPlan(const JobSpec& job, const Plan& first, const Replanner::Options& options)
    : replanner_(job, first, options), second_look_(kLongerSearch_s) {}

Replanned NextPlan::make(const Plan& in_force, const std::vector<LiveGpu>& gpus) {
  const std::optional<Replanned> found = std::exchange(found_, std::nullopt);
  if (found && has_all(gpus, *found->plan)) return *found;
  return replanner_.plan_for(gpus, in_force, runners_up_);
}

void NextPlan::take(const Replanned& made, const Plan& before) {
  runners_up_ = made.runners_up;
  // When the lost GPUs return, it is the best plan again.
  runners_up_.insert(runners_up_.begin(), before);
  second_look_.planned(made.complete);
}

bool NextPlan::pays_with(const Plan& in_force, const std::vector<LiveGpu>& gpus) {
  Replanned made = replanner_.plan_for(gpus, in_force, runners_up_);
  const bool pays = made.plan && replanner_.better(*made.plan, in_force);
  if (pays)
    found_ = std::move(made);
  else
    second_look_.planned(made.complete);
  return pays;
}

std::optional<NextPlan::LongerSearch> NextPlan::search_longer(const Plan& in_force,
                                                              const std::vector<LiveGpu>& gpus,
                                                              double change_s, int64_t steps_left) {
  std::optional<Replanned> found = second_look_.tick({gpus, in_force, runners_up_}, replanner_);
  if (!found) return std::nullopt;
  Plan now = in_force;  // with its prediction, which a reduced plan lacks
  now.prediction = replanner_.prediction_of(in_force);
  const std::optional<PlanPrediction> then = replanner_.prediction_of(*found->plan);
  if (!now.prediction || !then) return std::nullopt;
  LongerSearch result{*found->plan, now.prediction->iteration_s, then->iteration_s};
  result.pays = replanner_.better(*found->plan, now) &&
                (replanner_.job().objective.expense() ||
                 pays_in_time(result.now_s, result.then_s, change_s, steps_left, {}));
  if (result.pays) found_ = std::move(found);
  return result;
}

std::optional<double> NextPlan::promised_s(const Plan& plan) const {
  const std::optional<PlanPrediction> prediction = replanner_.prediction_of(plan);
  return prediction ? std::optional(prediction->iteration_s) : std::nullopt;
}

}  // namespace sailor
