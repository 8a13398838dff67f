#include <gtest/gtest.h>

#include "planner/plan/validate.h"
#include "planner/search/search.h"
#include "tests/unit/drawn.h"
#include "tests/unit/planner/instance.h"
#include "tests/unit/planner/search/never_worse.h"

namespace sailor {
namespace {

using test::Instance;

PlanOptions with_context(bool splits) {
  PlanOptions options;
  options.time_limit_s = 60;
  options.explain = false;
  if (!splits) options.allow.erase(PlanFeature::context_parallel);
  return options;
}

// Of which a GPU keeps something in every layer.
Instance long_sequences(int64_t activation_bytes) {
  Instance in = test::empty_instance(4, 8);
  in.job.model.sequence = 16384;
  for (auto& [shape, layers] : in.profiles.sizes.by_shape)
    for (LayerSizes& layer : layers) layer.activation_bytes = activation_bytes / shape.tp;
  return in;
}

// Without profiles of TP groups. Of six layers each keeps 80 MB of a microbatch, and 16 MB of states. In two
// stages the first one holds two microbatches: at best, of two layers, while the other stage holds one of
// four layers, 384 MB. Two GPUs with half of the tokens each hold 336 MB and what they exchange.
TEST(ContextParallelSearch, SplitsTokensWhereNothingElseFits) {
  Instance in = long_sequences(80'000'000);
  in.job.training.global_batch = 2;
  in.add_type("a", 0.01, 370'000'000, 1, {1}, {1});
  in.add_node("n", "a", 2);
  EXPECT_EQ(search(in.context(), with_context(false)).status, SearchStatus::infeasible);
  const SearchResult result = search(in.context(), with_context(true));
  ASSERT_EQ(result.status, SearchStatus::found);
  const Candidate& best = result.candidates[0];
  EXPECT_TRUE(has_context_parallelism(best.plan));
  EXPECT_TRUE(best.plan.sequence_parallel);
  EXPECT_TRUE(check_plan(best.plan, in.job).empty());
  EXPECT_EQ(best.prediction.iteration_s, simulate(in.context(), best.plan).iteration_s);
}

TEST(ContextParallelSearch, DoesNotSplitShortSequences) {
  Instance in = long_sequences(80'000'000);
  in.job.model.sequence = 4096;
  in.add_type("a", 0.01, 500'000'000, 1, {1});
  in.add_node("n", "a", 4);
  for (const Candidate& candidate : search(in.context(), with_context(true)).candidates)
    EXPECT_FALSE(has_context_parallelism(candidate.plan));
}

TEST(ContextParallelSearch, IsNeverWorseThanWithoutAndKeepsItsBound) {
  test::expect_never_worse(1900, test::drawn(6u), PlanFeature::context_parallel, has_context_parallelism,
                           [](Instance& in) {
                             in.job.model.sequence = 16384;
                             in.job.training.global_batch = 3;
                             for (auto& [shape, layers] : in.profiles.sizes.by_shape)
                               for (LayerSizes& layer : layers)
                                 layer.activation_bytes = 20'000'000 / shape.tp;
                           });
}

// A framework says whether it has such plans.
TEST(ContextParallelSearch, OffersOtherFrameworksNothing) {
  Instance in = long_sequences(80'000'000);
  in.job.training.global_batch = 2;
  in.add_type("a", 0.01, 370'000'000, 1, {1}, {1});
  in.add_node("n", "a", 2);
  FrameworkStyle style = own_framework();
  style.context_parallel = false;
  const PlanningContext context{in.job, in.snapshot, in.catalog, in.profiles, style};
  EXPECT_EQ(search(context, with_context(true)).status, SearchStatus::infeasible);
}

}  // namespace
}  // namespace sailor
