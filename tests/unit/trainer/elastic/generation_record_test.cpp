#include "trainer/elastic/generation_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sailor {
namespace {

// Processes 0 and 1 of node n1.
Roster two_processes() {
  Roster roster;
  for (int i = 0; i < 2; ++i) {
    const std::string peer = "peer " + std::to_string(i);
    EXPECT_EQ(roster.joined(
                  peer, {.rank = i, .node = "n1", .pid = 100 + i, .start_ticks = 7, .place = "n1", .gpu = i}),
              i);
  }
  return roster;
}

Started start(int rank, int64_t steps_done, int contexts) {
  return {.rank = rank,
          .steps_done = steps_done,
          .state_from = "peers",
          .bytes_received = 10,
          .groups_s = 0.1 * (rank + 1),
          .state_s = 0.3 - 0.1 * rank,
          .start_ticks = 7,
          .device_contexts = contexts};
}

TEST(GenerationRecord, TheFirstGenerationHasNoPhasesOfAChange) {
  const Roster roster = two_processes();
  GenerationRecord record;
  record.started(1, start(1, 5, 1));
  record.started(0, start(0, 5, 1));
  EXPECT_EQ(record.first().rank, 0);
  const auto event = record.running(1, {}, roster, {0, 1}, 0);
  EXPECT_EQ(event.at("ranks"), 2);
  EXPECT_EQ(event.at("steps_done"), 5);
  EXPECT_EQ(event.at("joined").size(), 2u);
  EXPECT_TRUE(event.at("kept").empty());
  EXPECT_FALSE(event.contains("resume_s"));
}

TEST(GenerationRecord, ALaterOneSaysWhoLivesOnAndWhatTheChangeCost) {
  const Roster roster = two_processes();
  GenerationRecord record;
  record.started(0, start(0, 0, 1));
  record.running(1, {}, roster, {0}, 0);
  record.begin();
  record.started(0, start(0, 9, 1));
  record.started(1, start(1, 9, 1));
  const GenerationChange change{.reasons = {"more"},
                                .lost = {},
                                .detected_s = 1,
                                .idle_s = 1.5,
                                .plan_s = 0.25,
                                .sent_s = 2,
                                .running_s = 3,
                                .attempts = 1};
  const auto event = record.running(2, change, roster, {0, 1}, 2);
  EXPECT_EQ(event.at("kept").size(), 1u);
  EXPECT_EQ(event.at("kept")[0].at("pid"), 100);
  EXPECT_EQ(event.at("joined")[0].at("pid"), 101);
  EXPECT_TRUE(event.at("pids_kept").get<bool>());
  EXPECT_EQ(event.at("steps_lost"), 2);
  EXPECT_EQ(event.at("cleanup_s"), 0.5);
  EXPECT_EQ(event.at("groups_s"), 0.2);
  EXPECT_EQ(event.at("state_s"), 0.3);
  EXPECT_EQ(event.at("broadcast_s"), 0.6);  // one second, of which a rank had something to do for at most 0.4
  EXPECT_EQ(event.at("bytes_received"), 20);
  EXPECT_EQ(event.at("resume_s"), 2.0);
}

TEST(GenerationRecord, WhoOnlyGaveItsStateIsNotCounted) {
  const Roster roster = two_processes();
  GenerationRecord record;
  record.started(0, start(0, 9, 1));
  record.started(1, start(-1, 0, 1));
  const auto event = record.running(1, {}, roster, {0}, 0);
  EXPECT_EQ(event.at("joined").size(), 1u);
}

TEST(GenerationRecord, ASurvivorWithAnotherDeviceContextIsNotTheSame) {
  const Roster roster = two_processes();
  GenerationRecord record;
  record.started(0, start(0, 0, 1));
  record.running(1, {}, roster, {0}, 0);
  record.begin();
  record.started(0, start(0, 9, 2));
  EXPECT_FALSE(record.running(2, {}, roster, {0}, 0).at("pids_kept").get<bool>());
}

}  // namespace
}  // namespace sailor
