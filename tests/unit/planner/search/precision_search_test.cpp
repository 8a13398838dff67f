// Jobs that leave the precision to their plans: which plans are in which precision, and how both kinds
// compete.
#include "planner/search/precision_search.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/validate.h"
#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kModel =
    "model: {family: llama, layers: 16, hidden: 2048, heads: 16, feed_forward: 8192, sequence: 2048, "
    "vocabulary: 32000}\n";

struct Nodes {
  std::string type;
  int count = 1;
};

PlanningInputs inputs_with(const std::string& precision, const std::vector<Nodes>& nodes,
                           const std::string& more = "") {
  std::string yaml = "sailor_snapshot: 1\nnodes:\n";
  for (const auto& [type, count] : nodes)
    yaml += fmt::format("  - {{name: n-{}, count: {}, zone: z, gpu_type: {}, gpus: 4}}\n", type, count, type);
  const std::string job =
      fmt::format("{}training: {{global_batch: 64, steps: 10, precision: {}}}\n{}", kModel, precision, more);
  return load_inputs(parse_job_spec(job, "job.yaml"),
                     parse_site_config("sailor_site: 1\n", "/etc/sailor/sailor.yaml"), {},
                     [&](const SiteConfig&) { return parse_snapshot(yaml, "cluster.yaml"); });
}

SearchResult searched(const PlanningInputs& inputs, SearchRequest request = {}) {
  return search(inputs.context(), plan_options(request, inputs.site));
}

double best_value(const PlanningInputs& inputs) {
  const SearchResult result = searched(inputs);
  if (result.status != SearchStatus::found) return kNever;
  return inputs.job.objective.value(result.candidates.front().prediction.figures());
}

Precision precision_on(const std::vector<Nodes>& nodes) {
  const SearchResult result = searched(inputs_with(k16Bit, nodes));
  EXPECT_EQ(result.status, SearchStatus::found);
  return result.candidates.at(0).plan.precision.value();
}

TEST(PrecisionSearch, IsBf16WhereEveryPlannedTypeHasItAndFp16Otherwise) {
  EXPECT_EQ(precision_on({{"A100-80", 1}, {"V100-32", 4}}), Precision::fp16);
  EXPECT_EQ(precision_on({{"A100-80", 1}, {"H100-80", 1}}), Precision::bf16);
  EXPECT_EQ(precision_on({{"V100-32", 4}}), Precision::fp16);
  EXPECT_EQ(precision_on({{"A100-80", 1}}), Precision::bf16);
}

TEST(PrecisionSearch, EveryCandidateIsInThePrecisionOfItsTypesAndAllowed) {
  const PlanningInputs inputs = inputs_with(k16Bit, {{"A100-80", 1}, {"T4-16", 1}});
  SearchRequest request;
  request.candidates = 40;
  const SearchResult result = searched(inputs, request);
  ASSERT_EQ(result.status, SearchStatus::found);
  bool either[2] = {};
  for (const Candidate& candidate : result.candidates) {
    const Plan& plan = candidate.plan;
    const bool all_have_bf16 = gpu_types_of(plan) == std::set<std::string>{"A100-80"};
    EXPECT_EQ(plan.precision, all_have_bf16 ? Precision::bf16 : Precision::fp16) << summary(plan);
    either[all_have_bf16] = true;
    EXPECT_TRUE(check_plan(plan, inputs.job).empty());
    EXPECT_EQ(simulate(inputs.context(), plan).iteration_s, candidate.prediction.iteration_s);
    EXPECT_EQ(parse_plan(to_json(plan), "plan.json").precision, plan.precision);
  }
  EXPECT_TRUE(either[false] && either[true]) << "both kinds compete";
}

TEST(PrecisionSearch, IsNoWorseThanEitherPrecisionUnderAnyObjective) {
  for (const char* objective : {"throughput", "cost"}) {
    const std::string more = fmt::format("objective: {}\n", objective);
    for (const std::vector<Nodes>& nodes : {std::vector<Nodes>{{"A100-80", 2}, {"V100-32", 2}},
                                            {{"H100-80", 1}, {"T4-16", 2}},
                                            {{"A10-24", 2}, {"T4-16", 1}, {"V100-16", 1}}}) {
      const double ours = best_value(inputs_with(k16Bit, nodes, more));
      EXPECT_LE(ours, best_value(inputs_with("bf16", nodes, more)));
      EXPECT_LE(ours, best_value(inputs_with("fp16", nodes, more)));
    }
  }
}

TEST(PrecisionSearch, ItsBoundHoldsForPlansOfBothPrecisions) {
  const std::vector<Nodes> nodes = {{"A100-80", 1}, {"V100-32", 1}};
  const SearchResult ours = searched(inputs_with(k16Bit, nodes));
  for (const char* precision : {"bf16", "fp16"}) {
    const SearchResult one = searched(inputs_with(precision, nodes));
    EXPECT_LE(ours.bound_iteration_s.value(), one.bound_iteration_s.value());
  }
}

TEST(PrecisionSearch, ARunKeepsItsPrecisionUnlessTheRemainingTypesLackIt) {
  SearchRequest request;
  const auto kept = [&](Precision precision, const std::vector<Nodes>& nodes) {
    request.keep_precision = precision;
    return searched(inputs_with(k16Bit, nodes), request).candidates.at(0).plan;
  };
  EXPECT_EQ(kept(Precision::bf16, {{"A100-80", 1}}).precision, Precision::bf16);
  const Plan without_v100 = kept(Precision::bf16, {{"A100-80", 1}, {"V100-32", 4}});
  EXPECT_EQ(without_v100.precision, Precision::bf16);
  EXPECT_EQ(gpu_types_of(without_v100), std::set<std::string>{"A100-80"});
  EXPECT_EQ(kept(Precision::fp16, {{"A100-80", 1}}).precision, Precision::fp16);
  EXPECT_EQ(kept(Precision::bf16, {{"V100-32", 4}}).precision, Precision::fp16) << "no choice";
}

TEST(PrecisionSearch, PlansOfAPreviousSearchAreStartingPointsInEitherPrecision) {
  const PlanningInputs inputs = inputs_with(k16Bit, {{"A100-80", 1}, {"V100-32", 4}});
  const SearchResult first = searched(inputs);
  SearchRequest request;
  for (const Candidate& candidate : first.candidates) request.previous.push_back(candidate.plan);
  const SearchResult again = searched(inputs, request);
  ASSERT_EQ(again.status, SearchStatus::found);
  EXPECT_LE(again.candidates[0].prediction.iteration_s, first.candidates[0].prediction.iteration_s);
  EXPECT_EQ(again.candidates[0].plan.precision, Precision::fp16);
}

TEST(PrecisionSearch, WithoutAPlanTheReasonIsThatOfAllGpus) {
  const SearchResult none = searched(
      inputs_with(k16Bit, {{"T4-16", 1}, {"L4-24", 1}}, "constraints: {min_iterations_per_s: 1000}\n"));
  EXPECT_EQ(none.status, SearchStatus::infeasible);
  EXPECT_THAT(none.reason, HasSubstr("the fastest plan found reaches"));
}

TEST(PrecisionSearch, ANoteSaysWhichTypesMakeAPlanFp16) {
  EXPECT_THAT(
      inputs_with(k16Bit, {{"A100-80", 1}, {"V100-32", 1}}).notes,
      Contains("precision 16-bit: the matrix units of V100-32 have no bf16: plans with them are fp16, "
               "others bf16"));
  EXPECT_THAT(inputs_with(k16Bit, {{"A100-80", 1}}).notes, Not(Contains(HasSubstr("precision 16-bit"))));
}

TEST(PrecisionSearch, PlansMustSayAPrecisionThatTheJobAllows) {
  const PlanningInputs inputs = inputs_with(k16Bit, {{"A100-80", 1}});
  Plan plan = searched(inputs).candidates.at(0).plan;
  plan.precision.reset();
  EXPECT_THAT(check_plan(plan, inputs.job),
              Contains(HasSubstr("the plan does not say its precision, and the job leaves it to the plan")));
  plan.precision = Precision::fp32;
  EXPECT_THAT(check_plan(plan, inputs.job), Contains("precision fp32 is not the job's 16-bit"));
  plan.precision = Precision::fp16;
  EXPECT_TRUE(check_plan(plan, inputs.job).empty());
  EXPECT_THAT(check_plan(plan, inputs_with("bf16", {{"A100-80", 1}}).job),
              Contains("precision fp16 is not the job's bf16"));
}

}  // namespace
}  // namespace sailor
