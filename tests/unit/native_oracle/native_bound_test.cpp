// The native search's bound is proven, so no plan may be faster: not the search's, not any other. Plans come
// from random walks and hill climbs that share no code with planner/search, on tiny problems, where plans
// come close to the bound, and on some larger ones.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "planner/search/native/bound.h"
#include "planner/search/problem/candidates.h"
#include "planner/search/search.h"
#include "tests/bench/native/plan_moves.h"
#include "tests/bench/native/random_plan.h"
#include "tests/bench/native/random_problem.h"
#include "tests/bench/native/uniform_rivals.h"
#include "tests/oracle/native/instance.h"

namespace sailor::native {
namespace {

// Bounds and times are sums of the same numbers in another order.
constexpr double kSlack = 1 + 1e-9;

// The fastest plans that fit, by what the bound tells apart.
class FastestPlans {
 public:
  explicit FastestPlans(const PlanningContext& context) : judge_(context) {}

  // Small random changes; what becomes slower by some per cent or needs a little more memory stays.
  void walk(oracle::Random& random, int starts, int moves) {
    for (int start = 0; start < starts; ++start) {
      std::optional<Plan> plan;
      std::optional<bench::Verdict> at;
      for (int draw = 0; draw < 20 && !at; ++draw)
        if ((plan = bench::random_plan(judge_.context(), judge_.allowed(), random))) at = look(*plan);
      if (!at) continue;
      for (int move = 0; move < moves; ++move) {
        std::optional<Plan> moved = bench::random_move(judge_.context(), judge_.allowed(), *plan, random);
        const std::optional<bench::Verdict> next = moved ? look(*moved) : std::nullopt;
        if (!next || next->missing_bytes > at->missing_bytes) continue;
        const bool fewer = next->missing_bytes < at->missing_bytes;
        if (!fewer && next->iteration_s > at->iteration_s * (1 + 0.05 * random.uniform(0, 1))) continue;
        plan = std::move(moved);
        at = next;
      }
    }
  }
  void uniform(size_t most) {
    for (const bench::Rival& rival :
         bench::uniform_plans_by_estimate(judge_.context(), judge_.allowed(), most))
      look(rival.plan);
  }

  // Compares them with the bounds of their kinds, without any known plan; returns the number of kinds.
  int compare(const std::string& problem) {
    std::map<std::string, int64_t> rejected;
    const PlanningContext& context = judge_.context();
    // The search offers context parallelism for long sequences only.
    const bool any_context = std::any_of(fastest_.begin(), fastest_.end(), [](const auto& entry) {
      return has_context_parallelism(entry.second.plan);
    });
    const Resources resources = usable_resources(context, {}, rejected),
                    split_resources = usable_resources(context, {}, rejected, any_context);
    const Space space(context, resources), split(context, split_resources, TokenSplit::all);
    Deadline deadline(kNever);
    const int any_size = any_microbatch(space.microbatches.empty() ? 1 : space.microbatches.back());
    double best_s = kNever;
    for (const auto& [key, plan] : fastest_) {
      const auto& [microbatch, pipelines, zero, interleave] = key;
      const double bound_s =
          least_possible(plan.plan.sequence_parallel ? split : space, judge_.allowed(),
                         PlanKind{microbatch > 0 ? microbatch : any_size, pipelines, zero, interleave});
      EXPECT_LE(bound_s, plan.iteration_s * kSlack) << problem << ": " << summary(plan.plan);
      best_s = std::min(best_s, plan.iteration_s);
    }
    const auto least_s = [&](double known_s) {
      return std::min(least_possible(space, judge_.allowed(), known_s, deadline).iteration_s,
                      least_possible(split, judge_.allowed(), known_s, deadline).iteration_s);
    };
    EXPECT_LE(least_s(kNever), best_s * kSlack) << problem;
    if (best_s < kNever) {
      EXPECT_LE(least_s(best_s), best_s * kSlack) << problem;
    }
    return static_cast<int>(fastest_.size());
  }
  // The plan that the search finds is one of them, too.
  void search() {
    PlanOptions options;
    options.explain = false;
    options.effort = 0.3;
    options.time_limit_s = 60;
    for (const Candidate& candidate : sailor::search(judge_.context(), options).candidates)
      look(candidate.plan);
  }

  // How many of them have hybrid ZeRO.
  int grouped() const { return grouped_; }

 private:
  std::optional<bench::Verdict> look(const Plan& plan) {
    const std::optional<bench::Verdict> verdict = judge_.verdict(plan);
    if (!verdict || !verdict->fits()) return verdict;
    const int pipelines = static_cast<int>(plan.pipelines.size());
    grouped_ += plan.zero_group > 0 ? 1 : 0;
    // One replica shards nothing.
    const int microbatch = has_unlike_microbatches(plan) ? 0 : microbatch_of(plan, plan.pipelines[0]);
    bench::Rival& best =
        fastest_[{microbatch, pipelines, has_replicas(plan) ? plan.zero : Zero::none, plan.interleave > 1}];
    if (best.iteration_s == 0 || verdict->iteration_s < best.iteration_s)
      best = {"", plan, verdict->iteration_s};
    return verdict;
  }

  bench::Judge judge_;
  int grouped_ = 0;
  std::map<std::tuple<int, int, Zero, bool>, bench::Rival> fastest_;
};

TEST(NativeBound, NoPlanOfATinyProblemIsFaster) {
  const Catalog catalog = load_catalog(SAILOR_SOURCE_DIR "/etc/catalog.yaml");
  oracle::Random random(103);
  int kinds = 0, grouped = 0;
  for (int number = 0; number < 160; ++number) {
    const oracle::PlannerInputs inputs = oracle::native_instance(catalog, 103, number, {12, 3, 2, 10});
    FastestPlans plans(inputs.context());
    plans.walk(random, 6, 100);
    plans.uniform(100);
    if (number % 5 == 0) plans.search();
    kinds += plans.compare("instance " + std::to_string(number));
    grouped += plans.grouped();
  }
  EXPECT_GT(kinds, 1000);
  EXPECT_GT(grouped, 40);
}

// Compares on problems of realistic size, after `walks` walks of `moves` moves on each; returns the number of
// kinds of plans.
int compare_random_problems(uint64_t seed, int count, const bench::ProblemLimits& limits, int walks,
                            int moves) {
  const Catalog catalog = load_catalog(SAILOR_SOURCE_DIR "/etc/catalog.yaml");
  oracle::Random random(seed);
  int kinds = 0;
  for (int number = 0; number < count; ++number) {
    const bench::RandomProblem problem = bench::random_problem(catalog, seed, number, limits);
    FastestPlans plans(problem.inputs.context());
    plans.walk(random, walks, moves);
    plans.uniform(60);
    if (number % 5 == 0) plans.search();
    kinds += plans.compare("problem " + std::to_string(number));
  }
  return kinds;
}

// Of several nodes and zones, whose cards and links are slow as often as not.
TEST(NativeBound, NoPlanOfAFewNodesIsFaster) {
  EXPECT_GT(compare_random_problems(107, 8, {24, 2, 2}, 3, 60), 50);
}

TEST(NativeBound, NoPlanOfALargerProblemIsFaster) {
  EXPECT_GT(compare_random_problems(105, 12, {96, 3, 2}, 4, 80), 100);
}

// Sixteen replicas on two nodes with slow cards: each sums all gradients along a ring.
TEST(NativeBound, SumsAlongRingsCount) {
  constexpr double kCardBytesPerS = 1e9;
  constexpr int kReplicas = 16;
  bench::Inputs inputs;
  inputs.catalog = load_catalog(SAILOR_SOURCE_DIR "/etc/catalog.yaml");
  for (const char* name : {"a", "b"}) {
    SnapshotNode node;
    node.name = name;
    node.zone = node.region = "here";
    node.gpu_type = "A100-80";
    node.gpus = 8;
    node.free_gpus = {0, 1, 2, 3, 4, 5, 6, 7};
    inputs.snapshot.nodes.push_back(node);
  }
  inputs.job = parse_job_spec(
      "model: {family: llama, layers: 12, hidden: 1024, heads: 16, feed_forward: 2816, sequence: 1024, "
      "vocabulary: 32000}\n"
      "training: {global_batch: 64, precision: fp16, steps: 10}\n",
      "job.yaml");
  inputs.framework = own_framework(Ranks::gpus);
  inputs.profiles = load_profiles({}, inputs.job, inputs.catalog, inputs.framework);
  NetworkFile network;
  NetworkFile::Link& link = network.link({"", "", 0}, {"", "", 0}, NetworkProfile::Scope::inter_node);
  link.latency_s = 1e-5;
  link.bytes_per_s = link.node_bytes_per_s = kCardBytesPerS;
  inputs.profiles.network.add(to_profile(network));

  std::map<std::string, int64_t> rejected;
  const PlanningContext context = inputs.context();
  const Resources resources = usable_resources(context, {}, rejected);
  const Space space(context, resources);
  const double parameters = space.kinds.parameters(
      space.options[static_cast<size_t>(space.option_of(0, {}))].kind, 0, space.layers());
  const double sums_s = 2.0 * (kReplicas - 1) / kReplicas * parameters *
                        inputs.framework.sync_bytes_at(Precision::fp16) / kCardBytesPerS;
  EXPECT_GT(least_possible(space, {}, PlanKind{1, kReplicas, Zero::none, false}), sums_s);
}

}  // namespace
}  // namespace sailor::native
