// How all of it stands: see sections.h.
#include <fmt/format.h>

#include <algorithm>

#include "tests/bench/evaluation/sections.h"

namespace sailor::bench {
namespace {

// Against one planner, or against several.
struct Tally {
  int better = 0, equal = 0, worse = 0, noted = 0, without_plan = 0;
  double most = 0;  // by how much ours is better, at most
};

void count_one(Tally& tally, const Scenario& scenario, const RowResult& ours, const Baseline& theirs) {
  const double ratio =
      scenario.objective == Expense::cost ? cheaper_by(ours, theirs) : faster_by(ours, theirs);
  switch (against(scenario, theirs, ours.iter_per_s.value_or(0), ours.usd_per_iter.value_or(0))) {
    case Against::reached:
      ++(ratio > 1 + kTolerance ? tally.better : tally.equal);
      tally.most = std::max(tally.most, ratio);
      break;
    case Against::missed:
      ++tally.worse;
      break;
    case Against::no_plan:
      ++tally.without_plan;
      break;
    case Against::noted:
    case Against::outside_limits:
      ++tally.noted;
      break;
  }
}

// Who asks for throughput gets it, at any price within the budget: by how much that is more than the
// published planner's price.
void say_what_speed_costs(const Study& study, Section& section) {
  int dearer = 0, all = 0;
  double most = 0;
  std::string where;
  for (const Scenario* scenario : study.scenarios("")) {
    const auto ours = study.planned().find(scenario->name);
    if (ours == study.planned().end() || scenario->objective != Objective::throughput ||
        !scenario->ref.usd_per_iter || !ours->second.usd_per_iter)
      continue;
    const double ratio = *ours->second.usd_per_iter / *scenario->ref.usd_per_iter;
    ++all;
    dearer += ratio > 1 + kTolerance;
    if (ratio > most) {
      most = ratio;
      where = scenario->name;
    }
  }
  if (dearer > 0)
    section.say(fmt::format(
        "What speed costs: on {} of {} scenarios that ask for throughput our plan is more expensive than "
        "the published "
        "planner's, by {} at most ({}).",
        dearer, all, factor(most), where));
}

}  // namespace

Section summary(const Study& study, double took_s) {
  Section section{"summary", "Summary", {}};
  section.say(fmt::format(
      "Our planner beside the published one, other planners and the figures that the paper prints. Every "
      "plan of "
      "ours was searched for this page, in the published search space, and is judged by the published cost "
      "model, as "
      "the others' are; only the simulator section is about our own model. All of it took {:.0f} s.",
      took_s));
  if (study.left_out() > 0)
    section.say(fmt::format("{} scenarios with more than {} GPUs were left out, as asked.", study.left_out(),
                            study.options().most_gpus));
  std::map<std::string, Tally> tallies;
  std::vector<std::string> order = {kPublishedPlanner, kBestKnown};
  for (const std::string& planner : study.planners()) order.push_back(planner);
  int stopped = 0, infeasible = 0, invalid = 0;
  for (const Scenario* scenario : study.scenarios("")) {
    const auto ours = study.planned().find(scenario->name);
    if (ours == study.planned().end()) continue;
    for (const Baseline& theirs : study.others(*scenario))
      count_one(tallies[theirs.planner], *scenario, ours->second, theirs);
    stopped += ours->second.status == "stopped";
    infeasible += ours->second.status == "none";
    invalid += ours->second.status == "invalid";
  }
  ResultTable table{"standing",
                    "On what each scenario asks for: throughput, or cost.",
                    {"against", "ours is better", "equal", "ours is worse", "they have no plan",
                     "not counted", "better by at most"},
                    {}};
  for (const std::string& planner : order) {
    const Tally& tally = tallies[planner];
    table.add({planner,
               fmt::format("{}", tally.better),
               fmt::format("{}", tally.equal),
               {fmt::format("{}", tally.worse), tally.worse > 0 ? Mark::bad : Mark::plain},
               fmt::format("{}", tally.without_plan),
               fmt::format("{}", tally.noted),
               tally.most > 0 ? factor(tally.most) : "-"});
  }
  section.show(std::move(table));
  section.say(
      fmt::format("{} scenarios planned; {} have no plan that meets their limit, which is proven; {} "
                  "searches were stopped before "
                  "their end; {} plans break a rule. Plans within {} of each other count as equal.",
                  study.planned().size(), infeasible, stopped, invalid, kTolerance));
  say_what_speed_costs(study, section);
  const int missed = study.published_compared() - study.published_reached() - study.published_partly();
  section.say(
      fmt::format("Of {} figures that the paper prints and that can be held against ours, {} are reached, {} "
                  "in part, {} not. "
                  "They were measured against the paper's own runs of the other planners, ours against those "
                  "of the data pack.",
                  study.published_compared(), study.published_reached(), study.published_partly(), missed));
  return section;
}

}  // namespace sailor::bench
