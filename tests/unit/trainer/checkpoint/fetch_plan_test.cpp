// Who gives what when state moves between ranks, and where copies of it are kept.
#include "trainer/checkpoint/fetch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/trainer/small_training.h"
#include "trainer/checkpoint/memory_copies.h"

namespace sailor {
namespace {

// Ranks on nodes, one stage each.
Plan plan_on(const std::vector<std::string>& nodes) {
  const JobSpec job = small_job("gpt2", 1, 64);
  const std::size_t ranks = nodes.size();
  Plan plan = make_plan(job, 1, std::vector<std::vector<int>>(ranks, {1}), std::vector<int>(ranks, 1));
  for (std::size_t rank = 0; rank < ranks; ++rank) plan.pipelines[rank].stages[0].node = nodes[rank];
  return plan;
}

TEST(FetchPlan, TakesItsOwnThenItsNodesThenAllAlike) {
  const RankLayout layout(plan_on({"a", "a", "b", "b", "c", "d"}));
  constexpr int64_t kElements = 1 << 20;
  const auto range = [](int rank) { return KnownRange{0, kElements, rank, 0, 0}; };
  const NeededRange needed{.parameter = 3, .first = 0, .count = kElements, .tensor = 1};
  const auto fetched_from = [&](int rank, const std::vector<KnownRange>& ranges) {
    std::map<int, int64_t> counts;
    int64_t next = 0;
    for (const Fetch& fetch : plan_fetches(layout, rank, 4, {needed}, {{3, ranges}})) {
      counts[fetch.rank] += fetch.count;
      EXPECT_EQ(fetch.offset, next) << "in order";
      EXPECT_EQ(fetch.memory, needed.memory + 4 * next);
      EXPECT_EQ(fetch.tensor, 1u);
      next += fetch.count;
    }
    EXPECT_EQ(next, kElements);
    return counts;
  };
  using ::testing::ElementsAre;
  using ::testing::Pair;
  EXPECT_THAT(fetched_from(0, {range(1), range(0), range(2)}), ElementsAre(Pair(0, kElements)));
  EXPECT_THAT(fetched_from(0, {range(1), range(2), range(4)}), ElementsAre(Pair(1, kElements)));
  EXPECT_THAT(fetched_from(5, {range(0), range(1), range(2), range(4)}),
              ElementsAre(Pair(0, kElements / 4), Pair(1, kElements / 4), Pair(2, kElements / 4),
                          Pair(4, kElements / 4)));
}

TEST(FetchPlan, EveryElementComesOnceFromWhoHasItWhateverTheCuts) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const int ranks = 1 + static_cast<int>(random() % 6);
    const RankLayout layout(plan_on(std::vector<std::string>(static_cast<std::size_t>(ranks))));
    const int64_t elements = 1 + random() % 100000;
    RangesByParameter known;
    for (int i = 0; i < 12; ++i) {
      const int64_t first = random() % elements;
      known[0].push_back({first, first + 1 + static_cast<int64_t>(random() % (elements - first)),
                          static_cast<int>(random() % ranks), 0, static_cast<std::size_t>(i)});
    }
    if (round % 2 == 0) known[0].push_back({0, elements, 0, 0, 12});
    std::vector<char> memory(static_cast<std::size_t>(elements));
    const NeededRange needed{0, 0, elements, 0, memory.data()};
    int64_t nowhere = 0;
    for (int64_t i = 0; i < elements; ++i) {
      bool held = false;
      for (const KnownRange& range : known[0]) held = held || (range.first <= i && i < range.end);
      nowhere += held ? 0 : 1;
    }
    ASSERT_EQ(missing({needed}, known), nowhere);
    if (nowhere > 0) continue;
    for (const Fetch& fetch : plan_fetches(layout, 0, 1, {needed}, known)) {
      const KnownRange& range = known[0][fetch.range];
      EXPECT_EQ(range.rank, fetch.rank);
      const int64_t first = fetch.memory - memory.data();
      EXPECT_EQ(range.first + fetch.offset, first);
      EXPECT_LE(first + fetch.count, range.end);
      for (int64_t i = first; i < first + fetch.count; ++i) ++memory[static_cast<std::size_t>(i)];
    }
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 1), elements);
  }
}

TEST(FetchPlan, WhatARankTellsIsHeardInFull) {
  const LossScaleState scale{
      .scale = 0x1p17, .clean_steps = 3, .tolerated = 1, .skipped_steps = 40, .skipped_at_minimum = 2};
  const HeldState state{.version = {7, 11},
                        .optimizer_steps = 5,
                        .loss_scale = scale,
                        .spikes = {.skipped_steps = 9, .skipped_in_row = 1, .norms = {0.25, 3}},
                        .copy = true,
                        .ranges = {{.parameter = 2, .first = 10, .count = 4}, {.parameter = 3, .count = 1}}};
  const std::vector<KnownState> known = heard({told({}), told({HeldState{}, state})});
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].loss_scale, LossScaleState());
  EXPECT_EQ(known[1].version, state.version);
  EXPECT_EQ(known[1].optimizer_steps, 5);
  EXPECT_EQ(known[1].loss_scale, scale);
  EXPECT_EQ(known[0].spikes, SpikeState());
  EXPECT_EQ(known[1].spikes, state.spikes);
  EXPECT_TRUE(known[1].copy);
  ASSERT_EQ(known[1].ranges.size(), 2u);
  EXPECT_EQ(known[1].ranges[0].second.end, 14);
  EXPECT_EQ(known[1].ranges[0].second.rank, 1);
}

TEST(FetchPlan, TheNewestWholeStateComesFirstAndCopiesOfItLast) {
  const auto state = [](int64_t steps, int64_t lineage, bool copy) {
    return KnownState{.version = {steps, lineage}, .optimizer_steps = steps, .copy = copy, .ranges = {}};
  };
  const std::vector<StateChoice> choices =
      choices_of({state(5, 1, true), state(7, 1, false), state(5, 1, false)});
  ASSERT_EQ(choices.size(), 4u);
  EXPECT_EQ(choices[0].version.steps_done, 7);
  EXPECT_FALSE(choices[0].with_copies);
  EXPECT_EQ(choices[2].version.steps_done, 5);
  EXPECT_FALSE(choices[2].admits(state(5, 1, true)));
  EXPECT_TRUE(choices[3].admits(state(5, 1, true)));
  EXPECT_FALSE(choices[3].admits(state(5, 2, true))) << "of another lineage";
}

TEST(MemoryCopyKeepers, AreOnOtherNodesWhereverThatIsPossible) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> nodes;
    std::map<std::string, std::size_t> ranks_on;
    for (int rank = 1 + static_cast<int>(random() % 12); rank > 0; --rank) {
      nodes.push_back("n" + std::to_string(random() % 5));
      ++ranks_on[nodes.back()];
    }
    const std::vector<int> keepers = copy_keepers(RankLayout(plan_on(nodes)));
    std::vector<int> sorted = keepers;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      ASSERT_EQ(sorted[i], static_cast<int>(i)) << "one copy each";
    bool possible = true;
    for (const auto& [node, ranks] : ranks_on) possible = possible && 2 * ranks <= nodes.size();
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      const auto keeper = static_cast<std::size_t>(keepers[rank]);
      EXPECT_TRUE(nodes.size() == 1 || keeper != rank);
      EXPECT_TRUE(!possible || nodes[keeper] != nodes[rank]);
    }
  }
}

TEST(MemoryCopyKeepers, AreOtherRanksWhereNoNodeIsNamed) {
  const std::vector<int> keepers = copy_keepers(RankLayout(plan_on({"", "", ""})));
  EXPECT_EQ(keepers, (std::vector<int>{1, 2, 0}));
}

}  // namespace
}  // namespace sailor
