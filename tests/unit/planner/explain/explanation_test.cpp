#include "planner/explain/explanation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "planner/explain/binding.h"
#include "planner/report/explanation_text.h"
#include "tests/unit/drawn.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

PlanOptions patient() {
  PlanOptions options;
  options.time_limit_s = 30;
  return options;
}

test::Instance explained_instance(int64_t batch = 16) {
  test::Instance in = test::empty_instance(4, batch);
  in.add_type("fast", 0.01, 4'000'000'000, 4);
  in.add_type("slow", 0.03, 4'000'000'000, 1);
  in.add_node("f0", "fast", 2);
  in.add_node("s0", "slow", 2, "z2");
  return in;
}

Explanation explained(const test::Instance& in) {
  const SearchResult result = search(in.context(), patient());
  EXPECT_EQ(result.status, SearchStatus::found) << result.reason;
  return explain(in.context(), patient(), result.candidates.at(0), false, 60);
}

const WhatIf* find(const Explanation& explanation, const std::string& change) {
  for (const WhatIf& what : explanation.what_ifs)
    if (what.change == change) return &what;
  return nullptr;
}

TEST(Explanation, WhatLoosensNeverMakesItWorseAndWhatTakesAwayNeverBetter) {
  for (uint64_t seed = 1; seed <= test::drawn(3u); ++seed)
    for (const Objective objective : {Objective::throughput, Objective(Expense::cost)}) {
      test::Instance in = test::random_instance(seed, 400'000'000);
      in.job.objective = objective;
      const SearchResult free = search(in.context(), patient());
      if (free.status != SearchStatus::found) continue;
      const Prediction& p = free.candidates[0].prediction;
      if (objective == Objective::throughput)
        in.job.constraints.most[Expense::cost] = 0.9 * p.usd_per_iteration();
      else
        in.job.constraints.min_iterations_per_s = 1.1 * p.iterations_per_s();
      const SearchResult result = search(in.context(), patient());
      if (result.status != SearchStatus::found) continue;
      for (const WhatIf& what : explain(in.context(), patient(), result.candidates[0], false, 60).what_ifs) {
        ASSERT_TRUE(what.best || !what.why_not.empty()) << "seed " << seed << ": " << what.change;
        if (what.loosens()) {
          EXPECT_GE(what.gain, 0) << "seed " << seed << ": " << what.change;
        } else if (what.best && result.stats.complete) {
          EXPECT_LE(what.gain, 1e-9) << "seed " << seed << ": " << what.change;
        }
      }
    }
}

TEST(Explanation, AnInterleavedPlanSharesItsBatchInWholeRounds) {
  test::Instance in = explained_instance(14);
  // Two pipelines of two groups with two chunks each; 8 and 6 microbatches, in rounds of two.
  Plan plan = test::make_plan(in, 1,
                              {{{0, 1, "fast", 1}, {1, 3, "fast", 1}, {3, 5, "fast", 1}, {5, 6, "fast", 1}},
                               {{0, 1, "slow", 1}, {1, 3, "slow", 1}, {3, 5, "slow", 1}, {5, 6, "slow", 1}}});
  plan.interleave = 2;
  plan.pipelines[0].microbatches = 8;
  plan.pipelines[1].microbatches = 6;
  const Candidate chosen{plan, simulate(in.context(), plan)};
  const std::vector<Binding> binding = binding_constraints(in.context(), CostModel::native, chosen, {});
  for (const Binding& of : binding) EXPECT_EQ(of.what.find("with 14"), std::string::npos) << of.what;
}

TEST(Explanation, AsksWhatApplies) {
  const Explanation plain = explained(explained_instance());
  EXPECT_NE(find(plain, "one more node of fast (2 GPUs)"), nullptr);
  EXPECT_NE(find(plain, "one more node of slow (2 GPUs)"), nullptr);
  EXPECT_NE(find(plain, "only fast"), nullptr);
  EXPECT_NE(find(plain, "half of the GPUs of each type"), nullptr);
  EXPECT_EQ(find(plain, "no budget"), nullptr);
  EXPECT_EQ(find(plain, "no limit on throughput"), nullptr);
  int zones = 0;
  for (const WhatIf& what : plain.what_ifs) zones += what.kind == WhatIf::Kind::zone ? 1 : 0;
  EXPECT_EQ(zones, 1) << "only the best one";

  test::Instance one = test::empty_instance(4, 16);
  one.add_type("fast", 0.01, 4'000'000'000, 4);
  one.add_node("f0", "fast", 1);
  for (const WhatIf& what : explained(one).what_ifs) EXPECT_EQ(what.kind, WhatIf::Kind::node) << what.change;
}

TEST(Explanation, ABudgetThatCutsThePlanBinds) {
  test::Instance in = explained_instance();
  const Prediction free = search(in.context(), patient()).candidates.at(0).prediction;
  in.job.constraints.most[Expense::cost] = 0.8 * free.usd_per_iteration();
  const Explanation explanation = explained(in);
  ASSERT_NE(find(explanation, "no budget"), nullptr);
  EXPECT_NEAR(find(explanation, "no budget")->gain,
              explanation.chosen.prediction.iteration_s / free.iteration_s - 1, 1e-6);
  bool named = false;
  for (const Binding& binding : explanation.binding)
    named = named || binding.what.starts_with("the budget: ");
  EXPECT_TRUE(named);
}

TEST(Explanation, MemoryBindsWhereMoreOfItHelps) {
  test::Instance in = test::empty_instance(6, 16);
  in.add_type("fast", 0.01, 60'000'000, 4, {1, 2, 4}, {1});
  in.add_node("f0", "fast", 2);
  in.add_node("f1", "fast", 2);
  const SearchResult roomy = search(in.context(), patient());
  for (int64_t memory = 400'000'000; memory > 50'000'000; memory = memory * 3 / 4) {
    in.catalog.gpu_types["fast"].memory_bytes = memory;
    const SearchResult result = search(in.context(), patient());
    if (result.status != SearchStatus::found) break;
    const Explanation explanation = explain(in.context(), patient(), result.candidates[0], false, 60);
    for (const Binding& binding : explanation.binding)
      if (binding.what.starts_with("memory of pipeline")) {
        EXPECT_GT(binding.gain, 0.005);
        return;
      }
  }
  FAIL() << "no amount of memory was said to bind";
}

TEST(Explanation, AnUnevenBatchBinds) {
  test::Instance in = test::empty_instance(4, 9);
  in.add_type("fast", 0.01, 4'000'000'000, 4, {1}, {1});
  in.add_node("f0", "fast", 2);
  const Plan plan = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}});
  const Candidate chosen{plan, simulate(in.context(), plan)};
  const std::vector<Binding> binding = binding_constraints(in.context(), CostModel::native, chosen, {});
  ASSERT_EQ(binding.size(), 1u);
  EXPECT_NE(binding[0].what.find("with 8 sequences in place of 9"), std::string::npos) << binding[0].what;
  EXPECT_NEAR(binding[0].gain, 8.0 / 9 * 5 / 4 - 1, 0.02);
}

TEST(Explanation, OfAGivenPlanSaysWhatThePlannerWouldChoose) {
  const test::Instance in = explained_instance();
  const Plan plan = test::make_plan(in, 1, {{{0, 6, "slow", 1}}});
  const Explanation explanation =
      explain(in.context(), patient(), {plan, simulate(in.context(), plan)}, true, 60);
  ASSERT_FALSE(explanation.what_ifs.empty());
  EXPECT_EQ(explanation.what_ifs[0].kind, WhatIf::Kind::planner);
  EXPECT_GT(explanation.what_ifs[0].gain, 1);
  EXPECT_TRUE(explanation.binding.at(0).what.starts_with("the plan itself")) << explanation.binding[0].what;
}

TEST(Explanation, AGivenPlanBeyondTheBudgetIsNoAnswer) {
  test::Instance in = explained_instance();
  const Plan fast = test::make_plan(in, 1, {{{0, 6, "fast", 1}}, {{0, 6, "fast", 1}}, {{0, 6, "slow", 1}}});
  const Candidate chosen{fast, simulate(in.context(), fast)};
  in.job.constraints.most[Expense::cost] = 0.5 * chosen.prediction.usd_per_iteration();
  for (const WhatIf& what : explain(in.context(), patient(), chosen, true, 60).what_ifs)
    if (what.best && what.change != "no budget") {
      EXPECT_LE(what.best->prediction.usd_per_iteration(),
                1.25 * *in.job.constraints.most[Expense::cost] * (1 + 1e-9))
          << what.change;
    }
}

TEST(Explanation, SaysWhatItHadNoTimeFor) {
  const test::Instance in = explained_instance();
  const SearchResult result = search(in.context(), patient());
  const Explanation explanation = explain(in.context(), patient(), result.candidates.at(0), false, 0);
  const std::string text = explanation_text(in.context(), explanation);
  EXPECT_NE(text.find("skipped, no time left: one more node of fast (2 GPUs); "), std::string::npos) << text;
  const auto json = nlohmann::json::parse(explanation_json(in.context(), result, &explanation));
  EXPECT_EQ(json.at("what_if")[0].at("asked"), false);
  EXPECT_TRUE(json.at("what_if")[0].at("gain").is_null());
}

TEST(ExplanationText, FitsAndHasEveryPart) {
  const test::Instance in = explained_instance();
  const Explanation explanation = explained(in);
  const std::string text = explanation_text(in.context(), explanation);
  for (const char* part : {"WHERE THE TIME GOES", "BOTTLENECKS", "WHAT IF", "stage 0"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
}  // namespace sailor
