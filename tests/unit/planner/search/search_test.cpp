#include "planner/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <random>

#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/search/problem/goal.h"
#include "planner/spec/error.h"
#include "tests/unit/drawn.h"
#include "tests/unit/planner/instance.h"
#include "tests/unit/planner/search/brute_force.h"

namespace sailor {
namespace {

using test::Instance;

PlanOptions exact(CostModel model, SearchSpace space) {
  PlanOptions options;
  options.space = space;
  options.cost_model = model;
  options.top_k = 1;
  options.time_limit_s = 60;
  options.explain = false;
  return options;
}

// What the oracle minimises: the objective under the limits of the job.
std::function<double(const Plan&)> value_of(const Instance& in, CostModel model) {
  return [&in, model](const Plan& plan) {
    const Prediction p = simulate(in.context(), plan, model);
    const auto& limits = in.job.constraints;
    if (!p.fits || (limits.most[Expense::cost] && p.usd_per_iteration() > *limits.most[Expense::cost]) ||
        (limits.min_iterations_per_s && p.iterations_per_s() < *limits.min_iterations_per_s))
      return kNever;
    return in.job.objective == Objective::throughput ? p.iteration_s : p.usd_per_iteration();
  };
}

double value_found(const Instance& in, const SearchResult& result) {
  if (result.candidates.empty()) return kNever;
  const Prediction& p = result.candidates[0].prediction;
  return in.job.objective == Objective::throughput ? p.iteration_s : p.usd_per_iteration();
}

TEST(Search, EqualsExhaustiveEnumerationUnderThePublishedModel) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Instance in = test::random_instance(seed, 2'900'000'000);
    in.job.objective = seed % 3 == 0 ? Expense::cost : Objective::throughput;
    const test::Optimum optimum = test::brute_force(in, value_of(in, CostModel::published));
    const SearchResult result = search(in.context(), exact(CostModel::published, SearchSpace::paper));
    const double found = value_found(in, result);
    if (optimum.value == kNever) {
      EXPECT_EQ(result.status, SearchStatus::infeasible) << "seed " << seed;
      continue;
    }
    EXPECT_NEAR(found / optimum.value, 1, 1e-9) << "seed " << seed << ": optimum " << summary(optimum.plan);
    const auto bound =
        in.job.objective == Objective::throughput ? result.bound_iteration_s : result.bound[Expense::cost];
    ASSERT_TRUE(bound.has_value()) << "seed " << seed;
    EXPECT_LE(*bound, optimum.value * (1 + 1e-12)) << "seed " << seed;
  }
}

TEST(Search, EqualsExhaustiveEnumerationBetweenTheCheapestAndTheFastestPlan) {
  for (uint64_t seed = 100; seed < 120; ++seed) {
    Instance in = test::random_instance(seed, 2'900'000'000);
    in.job.objective = Expense::cost;
    const test::Optimum cheapest = test::brute_force(in, value_of(in, CostModel::published));
    in.job.objective = Objective::throughput;
    const test::Optimum fastest = test::brute_force(in, value_of(in, CostModel::published));
    if (cheapest.value == kNever) continue;
    const double dear = simulate(in.context(), fastest.plan, CostModel::published).usd_per_iteration();
    for (double share : {-0.1, 0.1, 0.5}) {
      // Below the cheapest there is nothing; at both ends rounding must not decide.
      in.job.constraints.most[Expense::cost] =
          share < 0 ? 0.999 * cheapest.value : cheapest.value + share * (dear - cheapest.value) + 1e-12;
      const test::Optimum optimum = test::brute_force(in, value_of(in, CostModel::published));
      const SearchResult result = search(in.context(), exact(CostModel::published, SearchSpace::paper));
      if (optimum.value == kNever)
        EXPECT_EQ(result.status, SearchStatus::infeasible) << "seed " << seed;
      else
        EXPECT_NEAR(value_found(in, result) / optimum.value, 1, 1e-9)
            << "seed " << seed << ", share " << share;
    }
  }
}

// What the search finds against the best plan with one cut; nothing when no plan fits.
std::optional<double> ratio_to_best_plan_with_one_cut(uint64_t seed, int64_t more_memory_bytes) {
  const Instance in = test::random_instance(seed, more_memory_bytes);
  const test::Optimum optimum = test::brute_force(in, value_of(in, CostModel::native));
  const SearchResult result = search(in.context(), exact(CostModel::native, SearchSpace::full));
  if (optimum.value == kNever) return std::nullopt;
  EXPECT_EQ(result.status, SearchStatus::found) << "seed " << seed;
  if (result.status != SearchStatus::found) return std::nullopt;
  EXPECT_LE(*result.bound_iteration_s, value_found(in, result) * (1 + 1e-12)) << "seed " << seed;
  EXPECT_LE(*result.bound_iteration_s, optimum.value * (1 + 1e-12)) << "seed " << seed;
  const double ratio = value_found(in, result) / optimum.value;
  if (ratio > 1.05)
    std::cerr << "seed " << seed << ": " << ratio << ", found " << summary(result.candidates[0].plan)
              << ", optimum " << summary(optimum.plan) << "\n";
  return ratio;
}

TEST(Search, FullSpaceUnderTheNativeModelIsWithinFivePercentOfTheBestPlanWithOneCut) {
  for (uint64_t seed = 200; seed < 200 + test::drawn(12u); ++seed)
    EXPECT_LE(ratio_to_best_plan_with_one_cut(seed, 1'000'000'000).value_or(1), 1.05) << "seed " << seed;
}

// Where most plans do not fit, the best is often one of unlike pipelines that the search does not try.
TEST(Search, WhereMemoryIsTightOneInTenIsBeyondFivePercentAndNoneBeyondTwenty) {
  int instances = 0, beyond = 0;
  for (uint64_t seed = 200; seed < 200 + test::drawn(24u); ++seed) {
    const auto ratio = ratio_to_best_plan_with_one_cut(seed, 0);
    if (!ratio) continue;
    ++instances;
    if (*ratio > 1.05) ++beyond;
    EXPECT_LE(*ratio, 1.2) << "seed " << seed;
  }
  EXPECT_GE(instances, test::drawn(18));
  EXPECT_LE(beyond * 10, instances);
}

// One GPU that holds the model only when blocks keep nothing but their inputs.
TEST(Search, RecomputesWhereNothingElseFits) {
  Instance in = test::empty_instance(4, 8);
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      layers[layer].activation_bytes = 100'000'000;
      if (layer > 0 && layer + 1 < layers.size()) layers[layer].checkpoint_bytes = 1'000'000;
    }
  in.add_type("a", 0.01, 500'000'000, 1, {1}, {1});
  in.add_node("n", "a", 1);
  PlanOptions options = exact(CostModel::native, SearchSpace::full);
  options.allow = {};
  EXPECT_EQ(search(in.context(), options).status, SearchStatus::infeasible);
  options.allow = {PlanFeature::recompute};
  const SearchResult result = search(in.context(), options);
  ASSERT_EQ(result.status, SearchStatus::found);
  const Candidate& best = result.candidates[0];
  // 600 MB of activations in a GPU of 500 MB: two blocks keep their inputs only, and one of them needs as
  // much while it computes them again.
  EXPECT_EQ(best.plan.pipelines[0].stages[0].recompute, StageRecompute(Recompute::full, 2, Recompute::none));
  EXPECT_TRUE(check_plan(best.plan, in.job, options.allow).empty());
  // These pay their forward again: 8 microbatches, 2 blocks, a third of 10 ms each.
  Plan kept = best.plan;
  kept.pipelines[0].stages[0].recompute = Recompute::none;
  EXPECT_NEAR(best.prediction.iteration_s - simulate(in.context(), kept).iteration_s, 8 * 2 * 0.01 / 3, 1e-9);
  // Gone on from where memory does not bind: nothing has to recompute there.
  in.catalog.gpu_types["a"].memory_bytes = int64_t{1} << 40;
  options.previous = {best.plan};
  const SearchResult roomy = search(in.context(), options);
  ASSERT_EQ(roomy.status, SearchStatus::found);
  EXPECT_EQ(roomy.candidates[0].plan.pipelines[0].stages[0].recompute, Recompute::none);
}

// A first layer that only fits when two replicas share its optimizer states.
TEST(Search, SharesOptimizerStatesWhereNothingElseFits) {
  Instance in = test::empty_instance(4, 8);
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      layers[layer].parameters = layer == 0 ? 10'000'000 : 100'000;
      layers[layer].activation_bytes = 100'000;
      layers[layer].output_elements = 1'000;
    }
  in.add_type("a", 0.01, 150'000'000, 1, {1}, {1});
  in.add_node("n", "a", 2);
  PlanOptions options = exact(CostModel::native, SearchSpace::full);
  options.allow = {PlanFeature::recompute};
  EXPECT_EQ(search(in.context(), options).status, SearchStatus::infeasible);
  options.allow = {PlanFeature::zero1};
  const SearchResult result = search(in.context(), options);
  ASSERT_EQ(result.status, SearchStatus::found);
  EXPECT_EQ(result.candidates[0].plan.zero, Zero::optimizer);
  EXPECT_EQ(result.candidates[0].plan.pipelines.size(), 2u);
  EXPECT_TRUE(check_plan(result.candidates[0].plan, in.job, options.allow).empty());
}

TEST(Search, AnElasticJobSharesOptimizerStatesOnlyWhereItHasTo) {
  int shared = 0;
  for (uint64_t seed = 400; seed < 400 + test::drawn(10u); ++seed) {
    Instance in = test::random_instance(seed, 0);
    in.set_network(1e-6, 1e12);
    PlanOptions options = exact(CostModel::native, SearchSpace::full);
    options.allow.insert(PlanFeature::zero1);
    const SearchResult any = search(in.context(), options);
    options.allow.erase(PlanFeature::zero1);
    const bool has_to = search(in.context(), options).status != SearchStatus::found;
    options.allow.insert(PlanFeature::zero1);
    in.job.elastic.enabled = true;
    const SearchResult elastic = search(in.context(), options);
    ASSERT_EQ(elastic.status, any.status);
    if (any.status != SearchStatus::found) continue;
    shared += shards_optimizer(any.candidates[0].plan.zero);
    EXPECT_EQ(shards_optimizer(elastic.candidates[0].plan.zero), has_to) << seed;
  }
  EXPECT_GT(shared, 0) << "nothing was at stake";
}

TEST(Search, OffersOnlyWhatIsAllowed) {
  for (uint64_t seed = 400; seed < 420; ++seed) {
    const Instance in = test::random_instance(seed, 0);
    PlanOptions options = exact(CostModel::native, SearchSpace::full);
    options.allow = {};
    options.top_k = 5;
    for (const Candidate& candidate : search(in.context(), options).candidates) {
      const Plan& plan = candidate.plan;
      EXPECT_TRUE(check_plan(plan, in.job, {}).empty());
      int least = plan.pipelines[0].microbatches, most = least;
      for (const PlanPipeline& pipeline : plan.pipelines) {
        least = std::min(least, pipeline.microbatches);
        most = std::max(most, pipeline.microbatches);
        ASSERT_EQ(pipeline.stages.size(), plan.pipelines[0].stages.size());
        for (size_t i = 0; i < pipeline.stages.size(); ++i)
          EXPECT_EQ(pipeline.stages[i].end_layer, plan.pipelines[0].stages[i].end_layer);
      }
      EXPECT_LE(most - least, 1);
    }
  }
}

TEST(Search, AnyPlanIsFoundWhereThereIsOne) {
  for (uint64_t seed = 300; seed < 310; ++seed) {
    const Instance in = test::random_instance(seed, 0);
    PlanOptions options = exact(CostModel::native, SearchSpace::full);
    const SearchResult best = search(in.context(), options);
    options.any_plan = true;
    const SearchResult any = search(in.context(), options);
    EXPECT_EQ(any.status, best.status) << "seed " << seed;
    if (any.status != SearchStatus::found) continue;
    EXPECT_TRUE(check_plan(any.candidates[0].plan, in.job).empty());
    EXPECT_TRUE(any.candidates[0].prediction.fits);
  }
}

TEST(Search, PlansAreValidForJobAndCluster) {
  for (uint64_t seed = 300; seed < 330; ++seed) {
    const Instance in = test::random_instance(seed, 0);
    PlanOptions options = exact(CostModel::native, SearchSpace::full);
    options.top_k = 5;
    const SearchResult result = search(in.context(), options);
    for (const Candidate& candidate : result.candidates) {
      EXPECT_EQ(check_plan(candidate.plan, in.job), std::vector<std::string>{}) << "seed " << seed;
      EXPECT_EQ(check_plan(candidate.plan, in.snapshot), std::vector<std::string>{}) << "seed " << seed;
      EXPECT_TRUE(candidate.prediction.fits);
      ASSERT_TRUE(candidate.plan.prediction.has_value());
      EXPECT_DOUBLE_EQ(candidate.plan.prediction->iteration_s, candidate.prediction.iteration_s);
    }
  }
}

TEST(Search, ShuffledNodesAndRepeatedCallsGiveTheSamePlans) {
  for (uint64_t seed = 400; seed < 400 + test::drawn(5u); ++seed) {
    Instance in = test::random_instance(seed, 0);
    PlanOptions options = exact(CostModel::native, SearchSpace::full);
    options.top_k = 5;
    const auto plans = [&] {
      std::string text;
      for (const Candidate& candidate : search(in.context(), options).candidates)
        text += to_json(candidate.plan) + "\n";
      return text;
    };
    const std::string first = plans();
    EXPECT_EQ(plans(), first) << "seed " << seed;
    std::mt19937 random(static_cast<unsigned>(seed));
    std::shuffle(in.snapshot.nodes.begin(), in.snapshot.nodes.end(), random);
    EXPECT_EQ(plans(), first) << "seed " << seed;
  }
}

TEST(Search, SwitchingAPruningOffChangesNothing) {
  for (uint64_t seed = 500; seed < 510; ++seed) {
    const Instance in = test::random_instance(seed, 2'900'000'000);
    const double with =
        value_found(in, search(in.context(), exact(CostModel::published, SearchSpace::paper)));
    for (const std::string& feature : feature_names()) {
      PlanOptions options = exact(CostModel::published, SearchSpace::paper);
      options.without = {feature};
      const double without = value_found(in, search(in.context(), options));
      if (with == kNever)
        EXPECT_EQ(without, kNever);
      else
        EXPECT_NEAR(without / with, 1, 1e-9) << "seed " << seed << " without " << feature;
    }
  }
  PlanOptions options;
  options.without = {"no-such-thing"};
  const Instance in = test::random_instance(1, 0);
  EXPECT_THROW(search(in.context(), options), InputError);
}

Instance mixed_cluster() {
  Instance in = test::empty_instance(8, 32);
  in.add_type("fast", 0.01, 400'000'000, 4);
  in.add_type("slow", 0.03, 400'000'000, 1);
  for (int n = 0; n < 2; ++n) {
    in.add_node("f" + std::to_string(n), "fast", 2);
    in.add_node("s" + std::to_string(n), "slow", 3);
  }
  return in;
}

int gpus_of(const Plan& plan, const std::string& type) {
  int gpus = 0;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) gpus += stage.gpu_type == type ? stage.shape.tp : 0;
  return gpus / plan.interleave;
}

TEST(Search, MaxGpusZonesAndPartitionsAreObeyed) {
  Instance in = mixed_cluster();
  in.job.resources.max_gpus = {{"fast", 1}};
  SearchResult result = search(in.context(), exact(CostModel::native, SearchSpace::full));
  ASSERT_EQ(result.status, SearchStatus::found);
  EXPECT_LE(gpus_of(result.candidates[0].plan, "fast"), 1);
  in.job.resources.max_gpus = {};
  in.job.resources.partitions = {"p-slow"};
  result = search(in.context(), exact(CostModel::native, SearchSpace::full));
  ASSERT_EQ(result.status, SearchStatus::found);
  EXPECT_EQ(gpus_of(result.candidates[0].plan, "fast"), 0);
  in.job.resources.partitions = {"p-busy"};  // its nodes are not in a snapshot of what is free
  PlanOptions options = exact(CostModel::native, SearchSpace::full);
  options.explain = true;
  result = search(in.context(), options);
  EXPECT_EQ(result.status, SearchStatus::infeasible);
  EXPECT_THAT(result.reason, ::testing::HasSubstr("no GPU is free in partition p-busy"));
}

int gpus_in(const Plan& plan, const std::string& zone) {
  int gpus = 0;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) gpus += stage.zone == zone ? stage.shape.tp : 0;
  return gpus / plan.interleave;
}

TEST(Search, AQuotaInAZoneIsAsIfTheZoneHadNoMore) {
  Instance in = test::empty_instance(6, 16);
  in.add_type("fast", 0.01, 400'000'000, 4, {1, 2}, {1});
  in.set_network(1e-5, 10e9);
  for (int n = 0; n < 3; ++n) {
    in.add_node("a" + std::to_string(n), "fast", 1, "z1");
    in.add_node("b" + std::to_string(n), "fast", 1, "z2");
  }
  Instance fewer = in;
  std::erase_if(fewer.snapshot.nodes,
                [](const SnapshotNode& node) { return node.name == "a1" || node.name == "a2"; });
  in.job.resources.max_gpus_in_zone = {{"fast", {{"z1", 1}}}};
  for (const SearchSpace space : {SearchSpace::paper, SearchSpace::full}) {
    const SearchResult limited = search(in.context(), exact(CostModel::native, space));
    ASSERT_EQ(limited.status, SearchStatus::found);
    EXPECT_EQ(gpus_in(limited.candidates[0].plan, "z1"), 1);
    EXPECT_EQ(gpus_in(limited.candidates[0].plan, "z2"), 3);
    EXPECT_DOUBLE_EQ(value_found(in, limited),
                     value_found(fewer, search(fewer.context(), exact(CostModel::native, space))));
  }
  // With one of the type as well both hold.
  in.job.resources.max_gpus = {{"fast", 2}};
  const SearchResult both = search(in.context(), exact(CostModel::native, SearchSpace::full));
  ASSERT_EQ(both.status, SearchStatus::found);
  EXPECT_LE(gpus_in(both.candidates[0].plan, "z1"), 1);
  EXPECT_EQ(gpus_of(both.candidates[0].plan, "fast"), 2);
  // A previous plan that is over it is not gone on with.
  in.job.resources.max_gpus = {};
  PlanOptions again = exact(CostModel::native, SearchSpace::full);
  again.previous = {search(fewer.context(), again).candidates[0].plan};
  in.job.resources.max_gpus_in_zone = {{"fast", {{"z2", 2}}}};
  const SearchResult replanned = search(in.context(), again);
  ASSERT_EQ(replanned.status, SearchStatus::found);
  EXPECT_LE(gpus_in(replanned.candidates[0].plan, "z2"), 2);
  // The quota of all types, of which only two can be fast.
  in.job.resources = {};
  ASSERT_GT(num_ranks(search(in.context(), again).candidates[0].plan), 3);
  in.job.resources.max_gpus = {{kTotalGpus, 3}};
  const SearchResult few = search(in.context(), again);
  ASSERT_EQ(few.status, SearchStatus::found);
  EXPECT_LE(num_ranks(few.candidates[0].plan), 3);
  in.job.resources = {};
  in.snapshot.limits = {{2, "", "of all types"}, {1, "fast", "of one"}};
  const SearchResult limited = search(in.context(), again);
  ASSERT_EQ(limited.status, SearchStatus::found);
  EXPECT_LE(num_ranks(limited.candidates[0].plan), 2);
  EXPECT_LE(gpus_of(limited.candidates[0].plan, "fast"), 1);
}

TEST(Search, AnElasticJobsPlanIsNotInterleaved) {
  // The model needs two GPUs, and with four microbatches much of the time is bubble.
  Instance in = test::empty_instance(8, 4);
  in.add_type("t", 0.02, 150'000'000, 1, {1}, {1});
  in.add_node("n", "t", 2);
  in.set_network(1e-6, 1e11);
  PlanOptions options = exact(CostModel::native, SearchSpace::full);
  options.allow.erase(PlanFeature::zero3);  // with which it needs no stages
  const auto found = [&] { return search(in.context(), options); };
  const SearchResult any = found();
  ASSERT_EQ(any.status, SearchStatus::found);
  EXPECT_GT(any.candidates[0].plan.interleave, 1);
  in.job.elastic.enabled = true;
  const SearchResult elastic = found();
  ASSERT_EQ(elastic.status, SearchStatus::found);
  for (const Candidate& candidate : elastic.candidates) EXPECT_EQ(candidate.plan.interleave, 1);
}

TEST(Search, AGroupOfFourNeedsANodeOfFour) {
  Instance in = test::empty_instance(4, 8);
  in.add_type("only", 0.02, 400'000'000, 1, {1}, {4});
  in.add_node("a", "only", 2);
  in.add_node("b", "only", 3);
  EXPECT_EQ(search(in.context(), exact(CostModel::native, SearchSpace::full)).status,
            SearchStatus::infeasible);
  in.add_node("c", "only", 4);
  const SearchResult result = search(in.context(), exact(CostModel::native, SearchSpace::full));
  ASSERT_EQ(result.status, SearchStatus::found);
  EXPECT_EQ(result.candidates[0].plan.pipelines.at(0).stages.at(0).node, "c");
}

TEST(Search, UnlikeGpusShareMicrobatchesBySpeed) {
  const Instance in = mixed_cluster();
  const double paper = value_found(in, search(in.context(), exact(CostModel::native, SearchSpace::paper)));
  const double full = value_found(in, search(in.context(), exact(CostModel::native, SearchSpace::full)));
  EXPECT_LE(full, paper);
  EXPECT_LT(full, paper * 0.98) << "pipelines of unlike speed should earn unlike shares here";
}

TEST(Search, MoreGpusNeverMakeThePlanSlower) {
  for (uint64_t seed = 600; seed < 615; ++seed) {
    Instance in = test::random_instance(seed, 2'900'000'000);
    const double before =
        value_found(in, search(in.context(), exact(CostModel::published, SearchSpace::paper)));
    in.add_node("extra", "fast", 1);
    EXPECT_LE(value_found(in, search(in.context(), exact(CostModel::published, SearchSpace::paper))),
              before * (1 + 1e-12))
        << "seed " << seed;
  }
}

TEST(Search, BudgetAndThroughputFloorBind) {
  Instance in = mixed_cluster();
  const SearchResult fastest = search(in.context(), exact(CostModel::native, SearchSpace::full));
  in.job.objective = Expense::cost;
  const SearchResult cheapest = search(in.context(), exact(CostModel::native, SearchSpace::full));
  const double low = cheapest.candidates.at(0).prediction.usd_per_iteration();
  const double high = fastest.candidates.at(0).prediction.usd_per_iteration();
  ASSERT_LT(low, high);
  in.job.objective = Objective::throughput;
  in.job.constraints.most[Expense::cost] = (low + high) / 2;
  const SearchResult within = search(in.context(), exact(CostModel::native, SearchSpace::full));
  ASSERT_EQ(within.status, SearchStatus::found);
  EXPECT_LE(within.candidates[0].prediction.usd_per_iteration(), (low + high) / 2);
  in.job.objective = Expense::cost;
  in.job.constraints = {};
  in.job.constraints.min_iterations_per_s = 0.9 * fastest.candidates[0].prediction.iterations_per_s();
  const SearchResult fast_enough = search(in.context(), exact(CostModel::native, SearchSpace::full));
  ASSERT_EQ(fast_enough.status, SearchStatus::found);
  EXPECT_GE(fast_enough.candidates[0].prediction.iterations_per_s(),
            *in.job.constraints.min_iterations_per_s);
}

TEST(Search, BusyNodesThatWouldDoAreNamedBeforeAnythingElse) {
  PlanOptions options = exact(CostModel::native, SearchSpace::full);
  options.explain = true;
  options.time_limit_s = 60;
  Instance in = mixed_cluster();
  for (const SnapshotNode& node : in.snapshot.nodes)
    in.snapshot.busy.push_back(
        {node, "in use", node.gpu_type == "fast" ? std::optional(600.0) : std::nullopt});
  in.snapshot.nodes.clear();
  in.add_node("t1", "unmeasured", 4);  // free, but without a profile
  in.catalog.gpu_types["unmeasured"] = in.catalog.gpu_types["fast"];
  const SearchResult result = search(in.context(), options);
  EXPECT_EQ(result.status, SearchStatus::infeasible);
  EXPECT_THAT(result.reason, ::testing::HasSubstr("every feasible plan needs busy nodes: "));
  EXPECT_THAT(result.reason, ::testing::HasSubstr("of type fast (in use)"));
  EXPECT_THAT(result.reason,
              ::testing::HasSubstr("the first comes free within 10 min: wait for them with --sailor-wait"));
  // Busy nodes that the job may not use do not help.
  in.job.resources.max_gpus = {{"fast", 0}, {"slow", 0}};
  EXPECT_THAT(search(in.context(), options).reason, ::testing::HasSubstr("has a layer profile"));
}

TEST(Search, InfeasibleSaysWhatBindsAndWhatWouldHelp) {
  PlanOptions options = exact(CostModel::native, SearchSpace::full);
  options.explain = true;
  options.time_limit_s = 60;
  Instance in = mixed_cluster();
  in.job.constraints.most[Expense::cost] = 1e-9;
  SearchResult result = search(in.context(), options);
  EXPECT_EQ(result.status, SearchStatus::infeasible);
  EXPECT_NE(result.reason.find("raise max_usd_per_iteration"), std::string::npos) << result.reason;
  in.job.constraints = {};
  in.job.constraints.min_iterations_per_s = 1e6;
  result = search(in.context(), options);
  EXPECT_NE(result.reason.find("lower min_iterations_per_s"), std::string::npos) << result.reason;
  in.job.constraints = {};
  for (auto& [name, type] : in.catalog.gpu_types) type.memory_bytes = 15'000'000;
  result = search(in.context(), options);
  EXPECT_EQ(result.status, SearchStatus::infeasible);
  EXPECT_GT(result.rejected["memory"], 0);
  EXPECT_NE(result.reason.find("memory: a stage needs"), std::string::npos) << result.reason;
  for (auto& node : in.snapshot.nodes) node.free_gpus.clear();
  result = search(in.context(), options);
  EXPECT_NE(result.reason.find("no GPU of the cluster is free"), std::string::npos) << result.reason;
}

TEST(Search, InfeasibleCountsWhatWasRejectedAndNamesQuotas) {
  PlanOptions options = exact(CostModel::native, SearchSpace::full);
  options.explain = true;
  options.time_limit_s = 60;
  options.allow.erase(PlanFeature::zero3);
  Instance in = test::empty_instance(8, 16);
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (LayerSizes& layer : layers) {
      layer.parameters = 1'000'000;
      layer.activation_bytes = 1'000;
    }
  in.add_type("fast", 0.01, 60'000'000, 4, {1, 2}, {1});
  in.set_network(1e-5, 10e9);
  for (int n = 0; n < 16; ++n) in.add_node("f" + std::to_string(n), "fast", 1);
  const SearchResult all = search(in.context(), options);
  ASSERT_EQ(all.status, SearchStatus::found);
  const int needed = static_cast<int>(all.candidates[0].plan.pipelines[0].stages.size());
  ASSERT_GT(needed, 1);
  in.job.resources.max_gpus_in_zone = {{"fast", {{"z1", 1}}}};
  const SearchResult none = search(in.context(), options);
  ASSERT_EQ(none.status, SearchStatus::infeasible);
  EXPECT_THAT(none.reason,
              ::testing::HasSubstr("the quotas (resources.max_gpus, --max-gpus) are too small: without "
                                   "them there is a plan on "));
  EXPECT_THAT(none.reason, ::testing::HasSubstr(" fast in zone z1 (rejected: "));
  in.job.resources.max_gpus_in_zone.clear();
  in.snapshot.limits = {{1, "", "the cluster allows 1 GPU"}, {16, "fast", "which does not matter"}};
  const SearchResult of_cluster = search(in.context(), options);
  ASSERT_EQ(of_cluster.status, SearchStatus::infeasible);
  EXPECT_THAT(of_cluster.reason, ::testing::StartsWith("the cluster allows 1 GPU (rejected: "));
  ASSERT_GT(none.rejected.at("memory"), 0);
  EXPECT_THAT(none.reason, ::testing::HasSubstr(std::to_string(none.rejected.at("memory")) + " x memory"));
}

TEST(Search, NodesThatWereLeftOutAreNotNoNodes) {
  PlanOptions options = exact(CostModel::native, SearchSpace::full);
  options.explain = true;
  Instance in = mixed_cluster();
  in.snapshot.nodes.clear();
  EXPECT_THAT(search(in.context(), options).reason, ::testing::HasSubstr("the cluster has no nodes"));
  in.snapshot.not_free = {"n1: GPU type x is not in c.yaml", "n2: drained",
                          "n3: GPU type x is not in c.yaml"};
  EXPECT_THAT(
      search(in.context(), options).reason,
      ::testing::StartsWith(
          "no node of the cluster can be used: GPU type x is not in c.yaml (2 nodes), drained (1 node)"));
  in.catalog.gpu_types["unmeasured"] = in.catalog.gpu_types["fast"];
  in.add_node("u1", "unmeasured", 4);
  in.add_node("u2", "unmeasured", 4);
  EXPECT_THAT(search(in.context(), options).reason,
              ::testing::HasSubstr("there is none for type unmeasured (2 nodes): measure it"));
}

TEST(Search, CandidatesDifferInMoreThanALayerBoundary) {
  const Instance in = mixed_cluster();
  PlanOptions options = exact(CostModel::native, SearchSpace::full);
  options.top_k = 4;
  const SearchResult result = search(in.context(), options);
  ASSERT_GE(result.candidates.size(), 2u);
  std::set<std::string> seen;
  for (const Candidate& candidate : result.candidates) {
    std::string kind = summary(candidate.plan) + std::to_string(num_ranks(candidate.plan));
    EXPECT_TRUE(seen.insert(kind).second) << kind;
  }
  for (size_t c = 1; c < result.candidates.size(); ++c)
    EXPECT_LE(result.candidates[c - 1].prediction.iteration_s, result.candidates[c].prediction.iteration_s);
}

}  // namespace
}  // namespace sailor
