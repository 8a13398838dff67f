// The zones of full clusters, compared with every arrangement of small problems that use all GPUs, with
// random links between zones; and the linear program that fits pipelines into them.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "planner/search/improvement/layout_improvement.h"
#include "planner/search/improvement/zone_program.h"
#include "planner/search/problem/goal.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

Goal budget_of(double usd) {
  Goal goal;
  goal.most[Expense::cost] = usd;
  return goal;
}

constexpr double kRounding = 1e-9;
const char* const kZones[] = {"z1", "z2", "z3"};

TEST(ZoneProgramTest, FitsAsManyAsTheScarcestCountersAllow) {
  const RepeatedPattern left{1, {2, 1}}, right{1, {1, 2}}, both{1, {3, 3}}, twice{2, {3, 3}};
  const ZoneProgram mix = most_pipelines({left, right, both}, {12, 9}, kNever);
  EXPECT_NEAR(mix.pipelines, 7, kRounding);  // five and two
  EXPECT_NEAR(mix.times[0], 5, kRounding);
  EXPECT_NEAR(mix.times[1], 2, kRounding);
  EXPECT_NEAR(mix.times[2], 0, kRounding);
  EXPECT_NEAR(most_pipelines({left}, {12, 0}, kNever).pipelines, 0, kRounding);
  EXPECT_GE(most_pipelines({left, right}, {1000, 1000}, 10).pipelines, 10);
  EXPECT_NEAR(most_pipelines({twice}, {12, 9}, kNever).pipelines, 6, kRounding);
}

// Two stages of two blocks each in three zones, every GPU in use.
struct FullCluster {
  test::Instance instance = test::empty_instance(4, 40);
  int replicas, tp_behind;

  FullCluster(std::mt19937_64& random, int tp) : replicas(tp == 1 ? 5 : 4), tp_behind(tp) {
    const auto uniform = [&](double low, double high) {
      return low + (high - low) * static_cast<double>(random() >> 11) / 9007199254740992.0;
    };
    instance.add_type("fast", 0.01, 1'000'000'000'000, 1, {1}, {1, 2});
    const std::vector<int> gpus = tp == 1 ? std::vector<int>{4, 3, 3} : std::vector<int>{4, 4, 4};
    for (int z = 0; z < 3; ++z) instance.add_node(kZones[z], "fast", gpus[z], kZones[z]);
    for (const char* from : kZones)
      for (const char* to : kZones) {
        const double latency_s = uniform(1e-3, 4e-3), bytes_per_s = uniform(2e8, 4e8);
        instance.profiles.network.add({{"", from, 0},
                                       {"", to, 0},
                                       NetworkProfile::Scope::any,
                                       LinkCurve::from_points({{1000, latency_s + 1000 / bytes_per_s},
                                                               {1e9, latency_s + 1e9 / bytes_per_s}})});
      }
  }
};

using Zones = std::vector<int>;  // of a stage, by replica

// Calls `visit` with the zones of both stages for every arrangement that uses every GPU.
void for_each_arrangement(std::vector<int> left, int replicas, int tp_behind,
                          const std::function<void(const Zones&, const Zones&)>& visit) {
  Zones first, second;
  const std::function<void()> next = [&] {
    if (static_cast<int>(second.size()) == replicas) return visit(first, second);
    const bool in_first = static_cast<int>(first.size()) < replicas;
    Zones& zones = in_first ? first : second;
    const int tp = in_first ? 1 : tp_behind;
    for (int z = 0; z < 3; ++z) {
      if (left[z] < tp) continue;
      left[z] -= tp;
      zones.push_back(z);
      next();
      zones.pop_back();
      left[z] += tp;
    }
  };
  next();
}

// Are equal pipelines adjacent?
bool in_blocks(const Zones& first, const Zones& second) {
  std::set<std::pair<int, int>> seen;
  for (size_t j = 0; j < first.size(); ++j) {
    const bool same = j > 0 && first[j] == first[j - 1] && second[j] == second[j - 1];
    if (!same && !seen.insert({first[j], second[j]}).second) return false;
  }
  return true;
}

TEST(FullZonesTest, NoBlocksOfEqualPipelinesAreBetterWhereAllZonesAreFull) {
  std::mt19937_64 random(11);
  int better = 0, best_of_all = 0;
  constexpr int kProblems = 40;
  for (int number = 0; number < kProblems; ++number) {
    const FullCluster cluster(random, 1 + number % 2);
    const PlanningContext context = cluster.instance.context();
    std::map<std::string, int64_t> rejected;
    PlanOptions options;
    options.space = SearchSpace::paper;
    options.cost_model = CostModel::published;
    const Resources resources = usable_resources(context, options, rejected);
    const StageCosts costs(context, resources, 1);
    ClassCosts classes(costs, resources, spread_classes(costs, resources));
    const int replicas = cluster.replicas;
    const AssignmentProblem form{classes, replicas, 40.0 / replicas, {}};
    const auto layout_of_zones = [&](const Zones& first, const Zones& second) {
      Layout layout{{{0, 3, {}}, {3, context.job.model.num_all_layers(), {}}}};
      for (int i = 0; i < 2; ++i)
        for (int z : i == 0 ? first : second)
          for (size_t o = 0; o < resources.options.size(); ++o)
            if (resources.options[o].zone == kZones[z] &&
                resources.options[o].shape.tp == (i == 0 ? 1 : cluster.tp_behind))
              layout.stages[i].runs.push_back({static_cast<int>(o), 1});
      return layout;
    };
    std::vector<int> gpus;
    for (const Pool& pool : resources.pools) gpus.push_back(pool.gpus());
    std::optional<Assignment> start;
    double best_s = kNever, best_in_blocks_s = kNever;
    for_each_arrangement(gpus, replicas, cluster.tp_behind, [&](const Zones& first, const Zones& second) {
      const Layout layout = layout_of_zones(first, second);
      const LayoutValue value = evaluate(costs, resources, layout, replicas, form.microbatches);
      if (!start) start = Assignment{layout, value};
      best_s = std::min(best_s, value.iteration_s);
      if (in_blocks(first, second)) best_in_blocks_s = std::min(best_in_blocks_s, value.iteration_s);
    });
    ASSERT_TRUE(start.has_value());
    const Assignment found = improve_layout(form, *start, {}, [] { return false; });
    ASSERT_TRUE(within_resources(resources, found.layout));
    EXPECT_EQ(evaluate(costs, resources, found.layout, replicas, form.microbatches).iteration_s,
              found.value.iteration_s);
    EXPECT_GE(found.value.iteration_s, best_s * (1 - kRounding));
    EXPECT_LE(found.value.iteration_s, best_in_blocks_s * (1 + kRounding)) << "problem " << number;
    better += found.value.iteration_s < start->value.iteration_s * (1 - kRounding);
    best_of_all += found.value.iteration_s <= best_s * (1 + kRounding);
  }
  EXPECT_GT(better, kProblems * 3 / 4);
  EXPECT_GT(best_of_all, kProblems * 3 / 4);
}

TEST(FullZonesTest, KeepsWhatLimitsAllow) {
  std::mt19937_64 random(3);
  const FullCluster cluster(random, 1);
  const PlanningContext context = cluster.instance.context();
  std::map<std::string, int64_t> rejected;
  PlanOptions options;
  options.space = SearchSpace::paper;
  options.cost_model = CostModel::published;
  const Resources resources = usable_resources(context, options, rejected);
  const StageCosts costs(context, resources, 1);
  ClassCosts classes(costs, resources, spread_classes(costs, resources));
  Layout layout{{{0, context.job.model.num_all_layers(), {}}}};
  for (size_t o = 0; o < resources.options.size(); ++o)
    if (resources.options[o].shape.tp == 1) layout.stages[0].runs.push_back({static_cast<int>(o), 2});
  const LayoutValue value = evaluate(costs, resources, layout, 6, 7);
  const AssignmentProblem form{classes, 6, 7, budget_of(value.charge)};
  const Assignment found = improve_layout(form, {layout, value}, {}, [] { return false; });
  EXPECT_LE(found.value.charge, value.charge);
  EXPECT_LE(found.value.iteration_s, value.iteration_s);
  // Nothing left of the time: the start.
  EXPECT_EQ(improve_layout(form, {layout, value}, {}, [] { return true; }).value.iteration_s,
            value.iteration_s);
}

}  // namespace
}  // namespace sailor
