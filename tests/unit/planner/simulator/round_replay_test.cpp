#include "planner/simulator/round_replay.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sailor::native {
namespace {

using Passes = RoundReplay::Passes;

RoundStage round_stage(int first_layer, int layers, const LayerRound& round, const LayerWork& work) {
  RoundStage stage;
  stage.first_layer = first_layer;
  stage.rounds.assign(static_cast<size_t>(layers), round);
  stage.layers.assign(static_cast<size_t>(layers), work);
  stage.forward_s = layers * work.forward_s;
  stage.backward_s = layers * work.backward_s;
  return stage;
}

RoundPipeline pipeline_of(int microbatches, std::vector<RoundStage> stages) {
  return {0, microbatches, std::move(stages)};
}

RoundReplay replay(const std::vector<RoundPipeline>& pipelines, int chunks = 1, bool with_events = false) {
  return replay_rounds(pipelines, {}, chunks, with_events);
}

Passes waits_of(const RoundStage& stage, int microbatches = 10) {
  return replay({pipeline_of(microbatches, {stage})}).pipelines[0].waits[0];
}

TEST(RoundReplay, ReductionsLastUntilTheNextBackwardEnds) {
  const auto backward_wait_s = [](double reduce_s) {
    return waits_of(round_stage(0, 4, {0, reduce_s}, {1, 2})).backward_s;
  };
  EXPECT_EQ(backward_wait_s(0), 0);
  EXPECT_EQ(backward_wait_s(2), 0);
  // Three of four wait for the one before. That of the first layer runs through the next forward.
  EXPECT_NEAR(backward_wait_s(3), 3, 1e-9);
  EXPECT_NEAR(backward_wait_s(6), 12, 1e-9);
  // Now it does not, except after the last microbatch.
  EXPECT_NEAR(backward_wait_s(7), 15 + 0.9, 1e-9);
  // That one is over when the rounds are.
  const RoundReplay::Pipeline last =
      replay({pipeline_of(1, {round_stage(0, 4, {0, 7}, {1, 2})})}).pipelines[0];
  EXPECT_EQ(last.rounds_end_s[0], 4 * 1 + 2 + 4 * 7);
  EXPECT_EQ(last.timeline.makespan_s, 4 * 1 + 2 + 3 * 7);
}

TEST(RoundReplay, TwoLayersAreGatheredOnceInAnIteration) {
  for (const int layers : {1, 2, 3, 6}) {
    const Passes waits = waits_of(round_stage(0, layers, {5, 0}, {1, 2}));
    // At first all layers; later all but the two that the pass before ended with.
    const double first_s = 5 + (layers - 1) * (5 - 1.0), later_s = std::max(0, layers - 2) * (5 - 1.0);
    EXPECT_NEAR(10 * waits.forward_s, first_s + 9 * later_s, 1e-9) << layers;
    EXPECT_NEAR(waits.backward_s, std::max(0, layers - 2) * (5 - 2.0), 1e-9) << layers;
  }
}

// Chunks of a group take turns, in areas that they share: each finds the layers of the other one there.
TEST(RoundReplay, InterleavedChunksGatherAllTheirLayersAgain) {
  std::vector<RoundStage> stages;
  for (int i = 0; i < 4; ++i) stages.push_back(round_stage(4 * i, 4, {0.001, 0}, {1, 2}));
  const auto gathered_s = [&](double gather_s) {
    std::vector<RoundStage> of = stages;
    for (LayerRound& round : of[0].rounds) round.gather_s = gather_s;
    for (LayerRound& round : of[2].rounds) round.gather_s = gather_s;
    return replay({pipeline_of(40, of)}, 2).pipelines[0].timeline.makespan_s;
  };
  // Where nothing hides it, a microbatch takes as much longer as the first group's gathers do: of eight
  // layers in both directions nearly all, as passes seldom follow another one through the same chunk.
  const double each_s = (gathered_s(200) - gathered_s(100)) / 100 / 40;
  EXPECT_GT(each_s, 12);
  EXPECT_LE(each_s, 16);
}

TEST(RoundReplay, ASlowerReplicaDelaysTheOthers) {
  const std::vector<RoundPipeline> both = {pipeline_of(10, {round_stage(0, 4, {0, 0.1}, {1, 2})}),
                                           pipeline_of(10, {round_stage(0, 4, {0, 0.1}, {0.5, 1})})};
  const RoundReplay of = replay(both);
  EXPECT_EQ(of.pipelines[0].waits[0].backward_s, 0);
  EXPECT_EQ(of.pipelines[0].timeline.makespan_s, 10 * 12);
  EXPECT_NEAR(of.pipelines[1].timeline.makespan_s, 10 * 12, 4);  // less than a microbatch
}

// Each pipeline has one slow stage, but not the same one: together both have two.
TEST(RoundReplay, StagesWaitForSlowerReplicasOfTheirOwn) {
  const RoundStage slow[] = {round_stage(0, 2, {0, 0.01}, {2, 4}), round_stage(2, 2, {0, 0.01}, {2, 4})};
  const RoundStage fast[] = {round_stage(0, 2, {0, 0.01}, {1, 2}), round_stage(2, 2, {0, 0.01}, {1, 2})};
  const auto makespan_s = [](const std::vector<RoundPipeline>& pipelines) {
    return replay(pipelines).pipelines[0].timeline.makespan_s;
  };
  const int microbatches = 20;
  const double alone_s = makespan_s({pipeline_of(microbatches, {slow[0], fast[1]})});
  const double both_slow_s = makespan_s({pipeline_of(microbatches, {slow[0], slow[1]})});
  const double together_s = makespan_s(
      {pipeline_of(microbatches, {slow[0], fast[1]}), pipeline_of(microbatches, {fast[0], slow[1]})});
  EXPECT_GT(both_slow_s, alone_s + 5);
  EXPECT_GT(together_s, alone_s + 2);
  EXPECT_LE(together_s, both_slow_s + 1e-9);
}

TEST(RoundReplay, AReplicaWithFewerMicrobatchesHasThemInEvenlySpreadRounds) {
  // Twice as slow with half of the microbatches: it is as fast alone. In every second round the fast one
  // waits for it, and in the others it does nothing.
  for (const double gather_s : {0.0, 0.05}) {
    const RoundReplay of = replay({pipeline_of(10, {round_stage(0, 4, {gather_s, 0.1}, {1, 2})}),
                                   pipeline_of(20, {round_stage(0, 4, {gather_s, 0.1}, {0.5, 1})})});
    const double slow_s = of.pipelines[0].timeline.makespan_s, fast_s = of.pipelines[1].timeline.makespan_s;
    EXPECT_NEAR(fast_s / slow_s, 1, 0.05);
    EXPECT_GT(slow_s, 10 * 12.0);
    EXPECT_LE(slow_s, 10 * 18.5);
  }
}

TEST(RoundReplay, SumsOverTokensAreInTheBackward) {
  EXPECT_NEAR(waits_of(round_stage(0, 4, {0, 1e-12}, {1, 2, 0.25})).backward_s, 1, 1e-9);
}

// Two groups of two pipelines each, whose exchanges pass one card: it serves one after the other.
TEST(RoundReplay, GroupsShareTheCardsOfTheirNodes) {
  std::vector<RoundPipeline> pipelines;
  for (int p = 0; p < 4; ++p) {
    pipelines.push_back(pipeline_of(50, {round_stage(0, 4, {0, 1}, {0.1, 0.2})}));
    pipelines.back().group = p / 2;
  }
  const auto makespan_s = [&](const RoundCards& cards) {
    return replay_rounds(pipelines, cards, 1, false).pipelines[3].timeline.makespan_s;
  };
  RoundCards cards;
  const double alone_s = makespan_s(cards);
  EXPECT_NEAR(alone_s, 50 * 4 * 1, 4);
  cards.uses.assign(8, {{5, 0.4}});
  EXPECT_NEAR(makespan_s(cards), alone_s, 1);
  cards.uses.assign(8, {{5, 0.4}, {2, 0.8}});
  EXPECT_NEAR(makespan_s(cards), 50 * 4 * 2 * 0.8, 4);
}

struct DrawnRounds {
  explicit DrawnRounds(unsigned seed) : random(seed) {}
  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  double duration() { return std::uniform_real_distribution<double>(0, 2)(random); }
  RoundStage stage(int first_layer, int layers) {
    RoundStage of = round_stage(first_layer, layers, {}, {});
    for (size_t l = 0; l < of.layers.size(); ++l) {
      of.layers[l] = {duration(), duration(), 0};
      of.forward_s += of.layers[l].forward_s;
      of.backward_s += of.layers[l].backward_s;
    }
    of.forward_s += below(2) * duration() / 4;
    of.send_forward_s = duration() / 4;
    of.send_backward_s = duration() / 4;
    return of;
  }
  std::mt19937 random;
};

// Without exchanges it is the pipeline's timeline.
TEST(RoundReplay, WithoutExchangesEqualsTheTimeline) {
  DrawnRounds draw(3);
  for (int round = 0; round < 300; ++round) {
    const int chunks = 1 + draw.below(3), groups = (chunks > 1 ? 2 : 1) + draw.below(4);
    const int microbatches = (chunks > 1 ? groups : 1) * (1 + draw.below(9));
    RoundPipeline pipeline{0, microbatches, {}};
    std::vector<StageTimes> times;
    for (int i = 0, layer = 0; i < chunks * groups; ++i) {
      const int layers = 1 + draw.below(3);
      RoundStage stage = draw.stage(layer, layers);
      layer += layers;
      if (i < groups && draw.below(2) == 0) stage.ready_s = 4 * draw.duration();
      times.push_back({stage.forward_s, stage.backward_s, stage.send_forward_s, stage.send_backward_s});
      times.back().ready_s = stage.ready_s;
      pipeline.stages.push_back(std::move(stage));
    }
    const bool with_events = draw.below(2) == 0;
    const Timeline expected = pipeline_timeline({.chunks = chunks}, times, microbatches, {}, with_events);
    const RoundReplay of = replay({pipeline}, chunks, with_events);
    const Timeline& got = of.pipelines[0].timeline;
    const double tolerance = 1e-9 * expected.makespan_s;
    ASSERT_NEAR(got.makespan_s, expected.makespan_s, tolerance) << round;
    for (size_t i = 0; i < times.size(); ++i)
      ASSERT_NEAR(got.chunk_end_s[i], expected.chunk_end_s[i], tolerance) << round << ", " << i;
    for (size_t g = 0; g < expected.stage_end_s.size(); ++g) {
      ASSERT_NEAR(got.stage_end_s[g], expected.stage_end_s[g], tolerance) << round << ", " << g;
      ASSERT_NEAR(got.stage_busy_s[g], expected.stage_busy_s[g], tolerance) << round << ", " << g;
      ASSERT_NEAR(got.last_backward_s[g], expected.last_backward_s[g], tolerance) << round << ", " << g;
    }
    ASSERT_EQ(got.events.size(), expected.events.size());
    for (size_t e = 0; e < got.events.size(); ++e) {
      ASSERT_NEAR(got.events[e].end_s, expected.events[e].end_s, tolerance) << round << ", " << e;
      ASSERT_EQ(got.events[e].chunk, expected.events[e].chunk);
      ASSERT_EQ(got.events[e].microbatch, expected.events[e].microbatch);
    }
    ASSERT_EQ(got.transfers.size(), expected.transfers.size());
    for (size_t e = 0; e < got.transfers.size(); ++e)
      ASSERT_NEAR(got.transfers[e].end_s, expected.transfers[e].end_s, tolerance) << round << ", " << e;
  }
}

// Pipelines of any cuts and numbers of microbatches (with ZeRO-3 of the same cut): none waits for ever, none
// is faster than alone, and their exchanges take their time. Of many microbatches the mean is that of some.
TEST(RoundReplay, PipelinesOfAnyShapeProceedTogether) {
  DrawnRounds draw(8);
  for (int round = 0; round < 200; ++round) {
    const bool gathers = draw.below(2) == 0;
    const int chunks = draw.below(3) == 0 ? 2 : 1, groups = chunks + draw.below(3), layers = 12;
    const double exchanges = 0.1 + draw.below(3) * 0.4;
    std::vector<RoundPipeline> pipelines(static_cast<size_t>(1 + draw.below(4)));
    std::vector<LayerRound> rounds;
    for (int l = 0; l < layers; ++l)
      rounds.push_back({gathers ? exchanges * draw.duration() : 0, exchanges * draw.duration()});
    std::vector<int> cut;
    const auto draw_cut = [&](int stages) {
      cut.assign(static_cast<size_t>(stages), 1);
      for (int left = layers - stages; left > 0; --left) ++cut[static_cast<size_t>(draw.below(stages))];
    };
    draw_cut(chunks * groups);
    for (RoundPipeline& pipeline : pipelines) {
      if (!gathers && chunks == 1) draw_cut(1 + draw.below(4));
      pipeline.microbatches = (chunks > 1 ? groups : 1) * (1 + draw.below(8));
      for (size_t i = 0, layer = 0; i < cut.size(); layer += static_cast<size_t>(cut[i++])) {
        pipeline.stages.push_back(draw.stage(static_cast<int>(layer), cut[i]));
        std::copy_n(rounds.begin() + static_cast<std::ptrdiff_t>(layer), cut[i],
                    pipeline.stages.back().rounds.begin());
      }
    }
    const RoundReplay of = replay(pipelines, chunks);
    int most = 0;
    for (const RoundPipeline& pipeline : pipelines) most = std::max(most, pipeline.microbatches);
    double end_s = 0;
    for (size_t p = 0; p < pipelines.size(); ++p) {
      const double alone_s = replay({pipelines[p]}, chunks).pipelines[0].timeline.makespan_s;
      std::vector<StageTimes> times;
      for (const RoundStage& stage : pipelines[p].stages)
        times.push_back({stage.forward_s, stage.backward_s, stage.send_forward_s, stage.send_backward_s});
      const double computed_s =
          pipeline_timeline({.chunks = chunks}, times, pipelines[p].microbatches).makespan_s;
      const double makespan_s = of.pipelines[p].timeline.makespan_s;
      ASSERT_GE(alone_s, computed_s * (1 - 1e-9)) << round;
      ASSERT_GE(makespan_s, alone_s * (1 - 1e-9)) << round;
      for (const double rounds_end_s : of.pipelines[p].rounds_end_s) end_s = std::max(end_s, rounds_end_s);
      ASSERT_GE(end_s, most * least_exchange_s(pipelines[p], chunks) * (1 - 1e-9)) << round;
      ASSERT_GE(end_s, makespan_s) << round;
    }
    if (round % 8 > 0) continue;
    for (RoundPipeline& pipeline : pipelines) pipeline.microbatches *= 30;
    const RoundReplay some = replay(pipelines, chunks), all = replay(pipelines, chunks, true);
    for (size_t p = 0; p < pipelines.size(); ++p) {
      const double all_s = all.pipelines[p].timeline.makespan_s;
      EXPECT_NEAR(some.pipelines[p].timeline.makespan_s, all_s, (chunks > 1 ? 0.06 : 0.02) * all_s)
          << "round " << round << ", " << chunks << " chunks, pipeline " << p << " of " << pipelines.size()
          << ", " << pipelines[p].microbatches << " microbatches";
    }
    ASSERT_LE(some.steps, all.steps);
  }
}

}  // namespace
}  // namespace sailor::native
