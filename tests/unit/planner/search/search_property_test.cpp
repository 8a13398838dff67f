// Properties of every search: more resources never give a worse plan, equal inputs give equal results. On
// random problems of the oracle's generator, in both search spaces and under both cost models.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/search/problem/goal.h"
#include "planner/search/search.h"
#include "tests/oracle/generate.h"
#include "tests/oracle/product.h"
#include "tests/oracle/random.h"
#include "tests/unit/drawn.h"

namespace sailor {
namespace {

using oracle::PlannerInputs;
using oracle::Problem;
using oracle::Random;

constexpr double kSlack = 1 + 1e-9;
// The native search improves plans locally: a larger problem may cost it this much, on average.
constexpr double kLocalLoss = 0.003;

struct Judge {
  const char* name;
  CostModel model;
  SearchSpace space;
  int problems;  // of each test
};
void PrintTo(const Judge& judge, std::ostream* out) {
  *out << judge.name;
}

class SearchProperty : public ::testing::TestWithParam<Judge> {
 protected:
  PlanOptions options() const {
    PlanOptions out;
    out.space = GetParam().space;
    out.cost_model = GetParam().model;
    out.top_k = 1;
    out.time_limit_s = 60;  // never reached: a result must not depend on the machine's speed
    out.explain = false;
    return out;
  }

  SearchResult found(const PlannerInputs& inputs) const { return search(inputs.context(), options()); }

  static double value(const PlannerInputs& inputs, const SearchResult& result) {
    if (result.candidates.empty()) return kNever;
    const Prediction& p = result.candidates[0].prediction;
    return inputs.job.objective == Objective::throughput ? p.iteration_s : p.usd_per_iteration();
  }
  double best(const PlannerInputs& inputs) const { return value(inputs, found(inputs)); }

  // `more` is the value where there is more to choose from. Both may be infinite.
  void expect_no_worse(double more, double less) {
    if (GetParam().model == CostModel::published || !std::isfinite(less)) {
      EXPECT_LE(more, less * kSlack);
      return;
    }
    ++compared_;
    lost_ += std::max(0.0, more / less - 1);
  }
  void TearDown() override {
    if (compared_ > 0) {
      EXPECT_LE(lost_ / compared_, kLocalLoss);
    }
  }

  // Every plan as text, best first.
  static std::string text(const SearchResult& result) {
    std::string out;
    for (const Candidate& candidate : result.candidates) out += to_json(candidate.plan);
    return out;
  }

  // Problem `number`, alternately for throughput and for cost, every third under a limit that binds.
  PlannerInputs inputs_of(const Problem& problem, int number) const {
    PlannerInputs inputs = planner_inputs(problem);
    inputs.job.objective = number % 2 == 0 ? Objective::throughput : Expense::cost;
    if (number % 3 != 0) return inputs;
    PlannerInputs other = inputs;
    other.job.objective = number % 2 == 0 ? Expense::cost : Objective::throughput;
    const SearchResult own = found(inputs), against = found(other);
    if (own.candidates.empty()) return inputs;
    const Prediction &a = own.candidates[0].prediction, &b = against.candidates.at(0).prediction;
    if (number % 2 == 0)
      inputs.job.constraints.most[Expense::cost] = (a.usd_per_iteration() + b.usd_per_iteration()) / 2;
    else
      inputs.job.constraints.min_iterations_per_s = (a.iterations_per_s() + b.iterations_per_s()) / 2;
    return inputs;
  }

  static Problem problem_of(int number) {
    return oracle::generate(oracle::instance_seed(77, number), {3, 2, 10, 7});
  }

  // Calls check(problem, inputs, random) for every problem of this test.
  template <typename Check>
  void for_each_problem(Check check) const {
    for_each_problem(test::drawn(GetParam().problems), check);
  }
  template <typename Check>
  void for_each_problem(int problems, Check check) const {
    for (int number = 0; number < problems; ++number) {
      SCOPED_TRACE("problem " + std::to_string(number));
      const Problem problem = problem_of(number);
      Random random(static_cast<uint64_t>(number));
      check(problem, inputs_of(problem, number), random);
    }
  }

 private:
  int compared_ = 0;
  double lost_ = 0;
};

TEST_P(SearchProperty, MoreGpusNeverWorsenTheObjective) {
  for_each_problem([&](const Problem& problem, PlannerInputs inputs, Random& random) {
    const double before = best(inputs);
    SnapshotNode node = inputs.snapshot.nodes.front();
    node.name = "a-new-one";
    node.gpu_type = random.pick(problem.types).name;
    node.gpus = 1 << random.integer(0, 1);
    node.free_gpus.clear();
    for (int gpu = 0; gpu < node.gpus; ++gpu) node.free_gpus.push_back(gpu);
    inputs.snapshot.nodes.push_back(node);
    expect_no_worse(best(inputs), before);
  });
}

TEST_P(SearchProperty, ALooserLimitNeverWorsensTheObjective) {
  for_each_problem([&](const Problem&, PlannerInputs inputs, Random& random) {
    const double before = best(inputs);
    ConstraintSpec& limits = inputs.job.constraints;
    if (limits.most[Expense::cost]) *limits.most[Expense::cost] *= random.uniform(1, 1.5);
    if (limits.min_iterations_per_s) *limits.min_iterations_per_s *= random.uniform(0.6, 1);
    for (auto& [type, gpus] : inputs.job.resources.max_gpus) ++gpus;
    inputs.job.resources.zones.clear();
    const double looser = best(inputs);
    expect_no_worse(looser, before);
    limits = {};
    inputs.job.resources.max_gpus.clear();
    expect_no_worse(best(inputs), looser);
  });
}

// A limit on the GPUs of all types together is as good as the best way to divide it among the types.
TEST_P(SearchProperty, ALimitOnAllGpusLeavesTheBestDivision) {
  for_each_problem([&](const Problem& problem, PlannerInputs inputs, Random& random) {
    inputs.job.resources.max_gpus.clear();
    int free = 0;
    for (const SnapshotNode& node : inputs.snapshot.nodes) free += static_cast<int>(node.free_gpus.size());
    const int most = random.integer(1, std::max(1, free - 1));
    PlannerInputs limited = inputs;
    limited.snapshot.limits = {{most, "", "for a test"}};
    const SearchResult result = found(limited);
    for (const Candidate& candidate : result.candidates) EXPECT_LE(num_ranks(candidate.plan), most);
    for (int draw = 0; draw < 3; ++draw) {
      int left = most;
      for (const auto& type : problem.types) {
        const int gpus = &type == &problem.types.back() ? left : random.integer(0, left);
        inputs.job.resources.max_gpus[type.name] = gpus;
        left -= gpus;
      }
      expect_no_worse(value(inputs, result), best(inputs));
    }
  });
}

TEST_P(SearchProperty, AProfiledCellMoreNeverWorsensTheObjective) {
  for_each_problem([&](const Problem& problem, PlannerInputs inputs, Random& random) {
    const double with = best(inputs);
    auto& cells = inputs.profiles.layers.at(random.pick(problem.types).name).cells;
    cells.erase(std::next(cells.begin(), random.integer(0, static_cast<int>(cells.size()) - 1)));
    expect_no_worse(with, best(inputs));
  });
}

TEST_P(SearchProperty, TheFullSpaceIsNeverWorseThanThePapers) {
  if (GetParam().space == SearchSpace::paper) GTEST_SKIP() << "compared in the full space";
  for_each_problem([&](const Problem&, const PlannerInputs& inputs, Random&) {
    PlanOptions paper = options();
    paper.space = SearchSpace::paper;
    expect_no_worse(best(inputs), value(inputs, search(inputs.context(), paper)));
  });
}

TEST_P(SearchProperty, AFeatureOfPlansMoreNeverWorsensTheObjective) {
  if (GetParam().space == SearchSpace::paper) GTEST_SKIP() << "only the full space has them";
  for_each_problem([&](const Problem&, PlannerInputs inputs, Random&) {
    for (auto& [shape, layers] : inputs.profiles.sizes.by_shape)
      for (LayerSizes& layer : layers) layer.checkpoint_bytes = layer.activation_bytes / 8;
    PlanOptions all = options();
    all.allow = all_plan_features();
    const double most = value(inputs, search(inputs.context(), all));
    for (PlanFeature feature : all_plan_features()) {
      PlanOptions without = all;
      without.allow.erase(feature);
      expect_no_worse(most, value(inputs, search(inputs.context(), without)));
    }
  });
}

TEST_P(SearchProperty, TheSameProblemGivesTheSameBytesWhateverWasSearchedBefore) {
  std::vector<PlannerInputs> all;
  std::vector<std::string> plans;
  for_each_problem([&](const Problem&, const PlannerInputs& inputs, Random&) {
    plans.push_back(text(found(inputs)));
    EXPECT_EQ(text(found(inputs)), plans.back());
    all.push_back(inputs);
  });
  for (size_t n = all.size(); n-- > 0;) EXPECT_EQ(text(found(all[n])), plans[n]) << "problem " << n;
}

TEST_P(SearchProperty, TheOrderOfTheInputsChangesNothing) {
  for_each_problem([&](const Problem& problem, PlannerInputs inputs, Random& random) {
    const SearchResult before = found(inputs);
    random.shuffle(inputs.snapshot.nodes);
    std::reverse(inputs.job.resources.zones.begin(), inputs.job.resources.zones.end());
    std::vector<std::pair<std::pair<oracle::End, oracle::End>, oracle::Curve>> links(problem.links.begin(),
                                                                                     problem.links.end());
    random.shuffle(links);
    inputs.profiles.network = {};
    const auto end_of = [&](const oracle::End& end) {
      return LinkEnd{problem.types[end.type].name, problem.zones[end.zone].name, end.gpus};
    };
    for (const auto& [ends, curve] : links)
      inputs.profiles.network.add({end_of(ends.first), end_of(ends.second), NetworkProfile::Scope::any,
                                   oracle::link_curve(ends, curve)});
    const SearchResult after = found(inputs);
    EXPECT_EQ(text(after), text(before));
    EXPECT_EQ(after.rejected, before.rejected);
    EXPECT_EQ(after.bound_iteration_s, before.bound_iteration_s);
    EXPECT_EQ(after.bound[Expense::cost], before.bound[Expense::cost]);
  });
}

TEST_P(SearchProperty, PlansAreValidFitAndMeetTheLimits) {
  int plans = 0;
  for_each_problem([&](const Problem&, const PlannerInputs& inputs, Random&) {
    PlanOptions several = options();
    several.top_k = 4;
    const SearchResult result = search(inputs.context(), several);
    EXPECT_EQ(result.status == SearchStatus::found, !result.candidates.empty());
    double last = 0;
    for (const Candidate& candidate : result.candidates) {
      ++plans;
      EXPECT_EQ(check_plan(candidate.plan, inputs.job), std::vector<std::string>{});
      EXPECT_EQ(check_plan(candidate.plan, inputs.snapshot), std::vector<std::string>{});
      for (const PlanPipeline& pipeline : candidate.plan.pipelines)
        for (const PlanStage& stage : pipeline.stages) EXPECT_FALSE(stage.node.empty());
      const Prediction p = simulate(inputs.context(), candidate.plan, options().cost_model);
      EXPECT_TRUE(p.fits);
      EXPECT_NEAR(candidate.prediction.iteration_s / p.iteration_s, 1, 1e-9);
      EXPECT_NEAR(candidate.prediction.usd_per_iteration() / p.usd_per_iteration(), 1, 1e-9);
      const ConstraintSpec& limits = inputs.job.constraints;
      EXPECT_LE(p.usd_per_iteration(), limits.most[Expense::cost].value_or(kNever) * kSlack);
      EXPECT_GE(p.iterations_per_s() * kSlack, limits.min_iterations_per_s.value_or(0));
      const bool throughput = inputs.job.objective == Objective::throughput;
      const double value = throughput ? p.iteration_s : p.usd_per_iteration();
      EXPECT_GE(value * kSlack, last) << "best first";
      last = value;
      const auto bound = throughput ? result.bound_iteration_s : result.bound[Expense::cost];
      ASSERT_TRUE(bound.has_value());
      EXPECT_LE(*bound, value * kSlack);
    }
  });
  EXPECT_GT(plans, GetParam().problems);
}

TEST_P(SearchProperty, TheNumberOfCandidatesDoesNotChangeTheFirst) {
  for_each_problem([&](const Problem&, const PlannerInputs& inputs, Random&) {
    std::vector<std::string> all;
    for (const int top_k : {20, 4, 1}) {
      PlanOptions several = options();
      several.top_k = top_k;
      std::vector<std::string> plans;
      for (const Candidate& candidate : search(inputs.context(), several).candidates)
        plans.push_back(to_json(candidate.plan));
      if (all.empty()) all = plans;
      all.resize(std::min(all.size(), static_cast<size_t>(top_k)));
      EXPECT_EQ(plans, all) << top_k << " candidates";
    }
  });
}

// Under the published model times are sums that the search knows how to bound; there it has no excuse.
TEST_P(SearchProperty, SmallProblemsAreSearchedToTheEnd) {
  if (GetParam().model == CostModel::native) GTEST_SKIP() << "promised under the published model";
  for_each_problem([&](const Problem&, const PlannerInputs& inputs, Random&) {
    EXPECT_TRUE(found(inputs).stats.complete);
  });
}

TEST_P(SearchProperty, EachFeatureSwitchedOffGivesTheSameObjective) {
  // Without its bounds the search is slow.
  for_each_problem(std::min(GetParam().problems, 20),
                   [&](const Problem&, const PlannerInputs& inputs, Random&) {
                     const double with = best(inputs);
                     for (const std::string& feature : feature_names()) {
                       PlanOptions without = options();
                       without.without = {feature};
                       const double value_without = value(inputs, search(inputs.context(), without));
                       if (with == kNever)
                         EXPECT_EQ(value_without, kNever) << "without " << feature;
                       else
                         EXPECT_NEAR(value_without / with, 1, 1e-9) << "without " << feature;
                     }
                   });
}

TEST_P(SearchProperty, StartingFromThePreviousPlanNeverWorsensTheObjective) {
  for_each_problem([&](const Problem&, PlannerInputs inputs, Random& random) {
    const SearchResult before = search(inputs.context(), options());
    if (before.candidates.empty()) return;
    auto& nodes = inputs.snapshot.nodes;
    nodes.erase(nodes.begin() + random.integer(0, static_cast<int>(nodes.size()) - 1));
    PlanOptions again = options();
    again.previous = {before.candidates[0].plan};
    const double anew = best(inputs), replanned = value(inputs, search(inputs.context(), again));
    if (anew == kNever)
      EXPECT_EQ(replanned, kNever);
    else
      EXPECT_LE(replanned, anew * kSlack);
  });
}

INSTANTIATE_TEST_SUITE_P(, SearchProperty,
                         ::testing::Values(Judge{"PublishedPaper", CostModel::published, SearchSpace::paper,
                                                 60},
                                           Judge{"NativePaper", CostModel::native, SearchSpace::paper, 6},
                                           Judge{"NativeFull", CostModel::native, SearchSpace::full, 6}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sailor
