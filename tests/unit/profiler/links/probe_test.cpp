// What a probe measures, and what it leaves behind, with ranks as threads over the real socket plane.
#include "profiler/links/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "planner/spec/text_file.h"
#include "profiler/link_bench.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using Scope = NetworkProfile::Scope;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> described(const std::vector<ProbeRank>& ranks) {
  std::vector<std::string> texts;
  for (const ProbeSeries& s : probe_series(ranks)) texts.push_back(describe(s));
  return texts;
}

TEST(ProbeSeries, OneNodeSpeaksForItsKindAndSinglePairsComeFirst) {
  std::vector<ProbeRank> ranks;
  for (const char* node : {"a1", "a2", "b1", "b2"})
    for (int i = 0; i < 2; ++i)
      ranks.push_back({node, std::string(1, node[0]) + "-type", node[0] == 'a' ? "z" : ""});
  const std::vector<ProbeSeries> all = probe_series(ranks);
  std::vector<std::string> texts;
  for (const ProbeSeries& s : all) texts.push_back(describe(s));
  ASSERT_GE(texts.size(), 10u);
  texts.resize(10);
  EXPECT_THAT(texts, ElementsAre("a-type in z to a-type in z, within a node, one pair, over sockets",
                                 "b-type to b-type, within a node, one pair, over sockets",
                                 "a-type in z to a-type in z, between nodes, one pair, over sockets",
                                 "a-type in z to b-type, between nodes, one pair, over sockets",
                                 "b-type to a-type in z, between nodes, one pair, over sockets",
                                 "b-type to b-type, between nodes, one pair, over sockets",
                                 "a-type in z to a-type in z, between nodes, 2 pairs at once, over sockets",
                                 "a-type in z to b-type, between nodes, 2 pairs at once, over sockets",
                                 "b-type to a-type in z, between nodes, 2 pairs at once, over sockets",
                                 "b-type to b-type, between nodes, 2 pairs at once, over sockets"));
  EXPECT_THAT(all[2].members, ElementsAre(0, 2));
  EXPECT_THAT(all[7].members, ElementsAre(0, 1, 4, 5)) << "senders, then receivers";
  EXPECT_THAT(all[8].members, ElementsAre(4, 5, 0, 1));
  EXPECT_EQ(describe(all.back()), "broadcast of 4 x a-type in z + 4 x b-type on 4 nodes, over sockets");
}

TEST(ProbeSeries, OneRankHasNothingToMeasureAndTwoHaveOneLink) {
  EXPECT_TRUE(probe_series({{"a", "X", ""}}).empty());
  EXPECT_EQ(described({{"a", "X", ""}, {"a", "X", ""}}).size(), 1u + 4u);
  EXPECT_EQ(described({{"a", "X", ""}, {"b", "X", ""}}).size(), 1u + 4u);
  // Four pairs of a node share what it has.
  const auto eight = probe_series(std::vector<ProbeRank>(8, {"a", "X", ""}));
  EXPECT_EQ(eight[1].pairs(), 4);
  EXPECT_EQ(eight[1].scope, Scope::intra_node);
}

TEST(ProbeSeries, RanksWithGpusMeasureOverNcclAndThenMessagesOverSockets) {
  std::vector<ProbeRank> ranks;
  for (const char* node : {"a1", "a2"})
    for (int i = 0; i < 4; ++i) ranks.push_back({node, "X", "", true});
  ranks.push_back({"c", "cpu", "", false});
  std::vector<std::string> over_nccl, over_sockets;
  for (const ProbeSeries& s : probe_series(ranks)) {
    (s.transport == Transport::nccl ? over_nccl : over_sockets).push_back(describe(s));
    if (s.transport == Transport::nccl) {
      EXPECT_TRUE(over_sockets.empty()) << "what matters most comes first";
      EXPECT_EQ(std::count(s.members.begin(), s.members.end(), 8), 0) << "has no GPU";
    } else {
      EXPECT_FALSE(s.is_collective());
    }
  }
  ASSERT_GE(over_nccl.size(), 4u);
  EXPECT_EQ(over_nccl[0], "X to X, within a node, one pair, over NCCL");
  EXPECT_EQ(over_nccl[2], "X to X, within a node, 2 pairs at once, over NCCL");
  EXPECT_EQ(over_nccl[3], "X to X, between nodes, 4 pairs at once, over NCCL")
      << "the cards of a node are shared";
  EXPECT_EQ(over_nccl.back(), "broadcast of 8 x X on 2 nodes, over NCCL");
  EXPECT_EQ(over_nccl.size(), 4u + 3 * 4);
  EXPECT_THAT(over_sockets, testing::Contains("X to cpu, between nodes, one pair, over sockets"));
  EXPECT_EQ(probe_series(ranks, true, Transport::nccl).size(), over_nccl.size());
  EXPECT_EQ(probe_series(ranks, true, Transport::sockets).size(), over_sockets.size());
}

class Probe : public testing::Test {
 protected:
  Probe() {
    fs::remove_all(directory_);
    request_.file = directory_ + "/network.json";
    request_.max_bytes = 16 << 10;
    request_.seconds = 2;
    request_.measured = "in a test";
  }
  ~Probe() override { fs::remove_all(directory_); }

  // With ranks as threads: two "nodes" with two ranks each.
  ProbeOutcome run() {
    const std::vector<ProbeRank> ranks = {{"a", "X", "z"}, {"a", "X", "z"}, {"b", "Y", ""}, {"b", "Y", ""}};
    ProbeOutcome outcome;
    run_ranks(4, [&](Communicator& all, CommFactory& factory) {
      const ProbeOutcome mine = probe(factory, ranks, request_, nullptr);
      if (all.rank() == 0) outcome = mine;
    });
    return outcome;
  }

  // Sizes that were measured, and those of two that a busy machine had no time for: each has its note.
  static int handled(const ProbeOutcome& outcome) {
    return outcome.measurements + static_cast<int>(outcome.notes.size());
  }

  std::string directory_ = testing::TempDir() + "probe_test." + std::to_string(getpid());
  ProbeRequest request_;
};

TEST_F(Probe, MeasuresLinksAndCollectivesIntoAFileThatThePlannerReads) {
  const ProbeOutcome outcome = run();
  const NetworkFile network = load_network_file(request_.file);
  EXPECT_EQ(network.links.size(), 4u);  // within X, within Y, there and back
  EXPECT_EQ(network.collectives.size(), 16u);
  int measurements = 0;
  for (const auto& link : network.links) {
    EXPECT_TRUE(link.has_curve());
    EXPECT_EQ(link.measured, "in a test");
    EXPECT_EQ(link.transport, Transport::sockets);
    for (const NetworkMeasurement& m : link.messages) {
      ++measurements;
      EXPECT_GE(m.samples, 5);
      EXPECT_GT(m.seconds, 0);
      EXPECT_LT(m.seconds, 1);
      EXPECT_EQ(m.precise, m.error <= 0.02);
    }
  }
  for (const auto& collective : network.collectives)
    measurements += static_cast<int>(collective.measurements.size());
  EXPECT_EQ(measurements, outcome.measurements);
  EXPECT_EQ(handled(outcome), 2 * (4 + 2 + 16)) << "4 and 16 KiB of everything; two links with two pairs";
  const NetworkProfile profile = load_network_profile(request_.file);
  const LinkEnd x{"X", "z", 1}, y{"Y", "w", 1};
  ASSERT_NE(profile.find(x, y, false), nullptr);
  EXPECT_GT(profile.find(x, y, false)->time_s(1 << 14), 0);
  EXPECT_TRUE(profile.find(x, y, false)->knows_cards());
  EXPECT_NE(profile.find(y, y, true), nullptr);
  EXPECT_EQ(profile.find(y, y, false), nullptr) << "there is one node of that kind only";
}

TEST_F(Probe, AnotherRunMeasuresWhatIsMissingAndKeepsTheRest) {
  const int left_out = static_cast<int>(run().notes.size());
  NetworkFile network = load_network_file(request_.file);
  for (auto& link : network.links)
    for (NetworkMeasurement& m : link.messages) m.precise = true, m.error = 0.01, m.samples = 12345;
  for (auto& collective : network.collectives)
    for (NetworkMeasurement& m : collective.measurements) m.precise = true, m.error = 0.01, m.samples = 12345;
  network.links[1].messages.pop_back();
  network.links[2].messages[0].precise = false;
  network.links[2].messages[0].error = 1e6;
  network.link({"Z", "", 0}, {"Z", "", 0}, Scope::any).points = {{1, 1}};  // an unrelated link
  save_network_file(network, request_.file);
  EXPECT_EQ(handled(run()), 2 + left_out);
  const NetworkFile after = load_network_file(request_.file);
  ASSERT_EQ(after.links.size(), 5u);
  EXPECT_NE(after.links[1].messages.back().samples, 12345);
  EXPECT_NE(after.links[2].messages[0].samples, 12345);
  EXPECT_EQ(after.links[0].messages[0].samples, 12345);
  EXPECT_EQ(after.links[4].points.size(), 1u);
  request_.again = true;
  EXPECT_EQ(handled(run()), 2 * (4 + 2 + 16));
}

TEST_F(Probe, ABrokenFileIsRefusedAndLeftAsItIs) {
  fs::create_directories(directory_);
  write_file_atomically(request_.file, "{\"sailor_network_profile\": 1,\n \"links\": [}");
  try {
    run();
    FAIL() << "no error";
  } catch (const std::exception& e) {
    EXPECT_THAT(e.what(), HasSubstr("network.json:2: not valid JSON"));
  }
  EXPECT_EQ(read_text_file(request_.file), "{\"sailor_network_profile\": 1,\n \"links\": [}");
}

TEST(ProbeSizes, GoFromFourKibUpToTheLargest) {
  EXPECT_THAT(probe_sizes(1 << 16), ElementsAre(4096, 16384, 65536));
  EXPECT_EQ(probe_sizes(int64_t{1} << 30).size(), 10u);
  EXPECT_THAT(probe_sizes(5000), ElementsAre(4096));
}

}  // namespace
}  // namespace sailor
