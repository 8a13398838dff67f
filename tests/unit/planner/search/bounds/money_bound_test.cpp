// What a pipeline template costs at least: traffic between zones, and GPU types that do not suffice for all
// stages. Checked against every arrangement of small problems.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <random>

#include "planner/search/assignment/type_assignment.h"
#include "planner/search/bounds/egress_bound.h"
#include "planner/search/costs/layout.h"
#include "planner/search/costs/resource_limits.h"
#include "planner/search/problem/goal.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

constexpr double kBoundRounding = 1e-9;
constexpr int kReplicas = 3, kRounds = 7;

struct MoneyProblem {
  test::Instance instance;
  std::map<std::string, int64_t> rejected;
  PlanOptions options;
  std::unique_ptr<PlanningContext> context;
  Resources resources;
  std::unique_ptr<StageCosts> costs;
  std::unique_ptr<ClassCosts> classes;

  explicit MoneyProblem(test::Instance of) : instance(std::move(of)) {
    options.space = SearchSpace::paper;
    options.cost_model = CostModel::published;
    context = std::make_unique<PlanningContext>(instance.context());
    resources = usable_resources(*context, options, rejected);
    costs = std::make_unique<StageCosts>(*context, resources, 1);
  }
  void use(std::vector<PlacementClass> of) {
    classes = std::make_unique<ClassCosts>(*costs, resources, std::move(of));
  }
  int layers() const { return instance.job.model.num_all_layers(); }
  int option(const std::string& type, int tp, const std::string& zone = "z1") const {
    for (size_t o = 0; o < resources.options.size(); ++o)
      if (resources.options[o].gpu_type == type && resources.options[o].shape.tp == tp &&
          resources.options[o].zone == zone)
        return static_cast<int>(o);
    return -1;
  }
};

// Calls `visit` with every arrangement of two stages that the GPUs suffice for.
void for_each_layout(const MoneyProblem& problem, const std::function<void(const Layout&)>& visit) {
  Layout layout{{{0, 3, {}}, {3, problem.layers(), {}}}};
  const std::function<void(int)> next = [&](int n) {
    if (n == 2 * kReplicas) {
      if (within_resources(problem.resources, layout)) visit(layout);
      return;
    }
    for (size_t o = 0; o < problem.resources.options.size(); ++o) {
      layout.stages[n % 2].runs.push_back({static_cast<int>(o), 1});
      next(n + 1);
      layout.stages[n % 2].runs.pop_back();
    }
  };
  next(0);
}

TEST(EgressFloorTest, NoArrangementPaysLessForTraffic) {
  std::mt19937_64 random(5);
  const char* const kZones[] = {"z1", "z2", "z3"};
  int binding = 0;
  for (int number = 0; number < 30; ++number) {
    test::Instance in = test::empty_instance(4, kReplicas * kRounds);
    in.add_type("fast", 0.01, 1'000'000'000'000, 1, {1}, {1});
    for (const char* zone : kZones) in.add_node(zone, "fast", 2 + static_cast<int>(random() % 4), zone);
    for (const char* from : kZones)
      for (const char* to : kZones)
        if (from != to)
          in.snapshot.egress_usd_per_gb[from][to] = 0.01 * static_cast<double>(1 + random() % 20);
    MoneyProblem problem(std::move(in));
    problem.use(spread_classes(*problem.costs, problem.resources));
    const std::vector<ResourceLimit> limits =
        resource_limits(*problem.costs, problem.resources, problem.classes->classes(), false, 16);
    const EgressBound floor(*problem.classes, limits);
    ASSERT_TRUE(floor.matters());
    // One GPU for every replica of either stage.
    std::vector<double> used;
    for (const ResourceLimit& limit : limits) used.push_back(2 * problem.classes->least_weight(0, 1, limit));
    const std::vector<double> nothing(limits.size(), 0);
    const double usd =
        floor.charge(floor.prices(kReplicas, kRounds), used.data(), nothing.data(), limits.size());
    double least = kNever;
    for_each_layout(problem, [&](const Layout& layout) {
      const LayoutValue value = evaluate(*problem.costs, problem.resources, layout, kReplicas, kRounds);
      const double gpus_usd =
          value.iteration_s * 2 * kReplicas * problem.resources.options[0].rate.idle_per_s;
      least = std::min(least, value.charge - gpus_usd);
    });
    ASSERT_LT(least, kNever);
    EXPECT_LE(usd, least * (1 + kBoundRounding) + kBoundRounding) << "problem " << number;
    // Some zone holds all six?
    bool one_suffices = false;
    for (const Pool& pool : problem.resources.pools) one_suffices |= pool.gpus() >= 2 * kReplicas;
    EXPECT_EQ(usd > 0, !one_suffices);
    binding += usd > 0;
  }
  EXPECT_GT(binding, 10);
}

TEST(PricedMoneyTest, KnowsThatTheCheapTypeDoesNotSuffice) {
  test::Instance in = test::empty_instance(4, kReplicas * kRounds);
  in.add_type("cheap", 0.01, 1'000'000'000'000, 1, {1}, {1});
  in.add_type("dear", 0.01, 1'000'000'000'000, 3, {1}, {1});
  in.add_node("c", "cheap", 4);
  in.add_node("d", "dear", 6);
  MoneyProblem problem(std::move(in));
  problem.use(mixed_classes(*problem.costs, problem.resources));
  const std::vector<ResourceLimit> money = money_prices(problem.resources, problem.classes->classes(), 4);
  ASSERT_FALSE(money.empty());
  // Two stages of any mix: four replicas may be cheap, two are dear.
  double bound = 0;
  for (const ResourceLimit& limit : money) {
    ASSERT_TRUE(limit.credit_per_s.has_value());
    EXPECT_EQ(limit.capacity, kNever);
    bound = std::max(bound, 2 * kReplicas * problem.classes->least_weight(0, 3, limit) - *limit.credit_per_s);
  }
  EXPECT_NEAR(bound * 3600, 4 * 1 + 2 * 3, 1e-6);
  EXPECT_NEAR(2 * kReplicas * problem.classes->least_charge_per_s(0, 3) * 3600, 6, 1e-6);
}

TEST(ShareOutTest, LeavesScarceGpusToStagesThatHaveNoChoice) {
  // Both types are equally fast at TP degree 1. Two of them suffice only where the stages that may run on
  // either leave the plenty to whom nothing else serves.
  test::Instance in = test::empty_instance(4, kReplicas * kRounds);
  in.add_type("a", 0.01, 1'000'000'000'000, 1, {1}, {1});
  in.add_type("b", 0.01, 1'000'000'000'000, 3, {1}, {1});
  in.add_node("a", "a", kReplicas);
  in.add_node("b", "b", kReplicas);
  MoneyProblem problem(std::move(in));
  std::vector<PlacementClass> classes = spread_classes(*problem.costs, problem.resources);
  for (PlacementClass& placement : mixed_classes(*problem.costs, problem.resources))
    classes.push_back(std::move(placement));
  problem.use(classes);
  const AssignmentProblem form{*problem.classes, kReplicas, kRounds, {}};
  const int a = problem.option("a", 1);
  for (int first = 0; first < problem.classes->size(); ++first)
    for (int second = 0; second < problem.classes->size(); ++second) {
      PipelineTemplate pipeline;
      pipeline.stages = {{0, 3, first}, {3, problem.layers(), second}};
      const auto only = [&](int placement, int option) {
        return classes[placement].groups.size() == 1 && classes[placement].slowest() == option;
      };
      const bool impossible = (only(first, a) && only(second, a)) ||
                              (only(first, problem.option("b", 1)) && only(second, problem.option("b", 1)));
      const std::optional<TypeAssignment> stages = assign_types(form, pipeline);
      EXPECT_EQ(!stages, impossible) << first << " " << second;
      if (stages) {
        std::map<int, int> gpus;
        for (const std::vector<GroupShare>& shares : *stages) {
          int replicas = 0;
          for (const GroupShare& share : shares) {
            replicas += share.replicas;
            gpus[share.options[0]] += share.replicas;
          }
          EXPECT_EQ(replicas, kReplicas);
        }
        for (const auto& [option, used] : gpus) EXPECT_LE(used, kReplicas);
      }
    }
}

}  // namespace
}  // namespace sailor
