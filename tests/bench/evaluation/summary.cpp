// The summary: see sections.h.
#include <fmt/format.h>

#include <algorithm>

#include "tests/bench/evaluation/sections.h"

namespace sailor::bench {
namespace {

// Comparison with one planner, or with several.
struct Tally {
  int better = 0, equal = 0, worse = 0, noted = 0, without_plan = 0;
  double most = 0;  // maximum ratio by which ours is better
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

// The objective throughput ignores the price within the budget: how much more expensive our plans are than
// the published planner's.
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
    section.say(
        fmt::format("The price of speed: on {} of {} throughput scenarios our plan is more expensive than "
                    "the published planner's, by at most {} ({}).",
                    dearer, all, factor(most), where));
}

}  // namespace

Section summary(const Study& study, double took_s) {
  Section section{"summary", "Summary", {}};
  section.say(
      fmt::format("Our planner compared with the published one, other planners and the values in the paper. "
                  "All our plans were searched for this page, in the published search space, and are scored "
                  "by the published cost model, like those of the others; only the simulator section is "
                  "about our own model. Total time: {:.0f} s.",
                  took_s));
  if (study.left_out() > 0)
    section.say(fmt::format("{} scenarios with more than {} GPUs were skipped, as requested.",
                            study.left_out(), study.options().most_gpus));
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
                    "For the objective of each scenario: throughput or cost.",
                    {"compared with", "ours is better", "equal", "ours is worse", "they have no plan",
                     "not counted", "maximum gain"},
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
      fmt::format("{} scenarios planned; {} provably have no plan within their limit; {} searches were "
                  "stopped early; {} plans break a rule. Plans within {} of each other count as equal.",
                  study.planned().size(), infeasible, stopped, invalid, kTolerance));
  say_what_speed_costs(study, section);
  const int missed = study.published_compared() - study.published_reached() - study.published_partly();
  section.say(fmt::format(
      "Of {} values in the paper that can be compared with ours, {} are reached, {} in part, {} not. The "
      "paper compares with its own runs of the other planners, this page with those of the data pack.",
      study.published_compared(), study.published_reached(), study.published_partly(), missed));
  return section;
}

}  // namespace sailor::bench
