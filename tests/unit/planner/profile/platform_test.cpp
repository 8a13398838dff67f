#include "planner/profile/platform.h"

#include <gmock/gmock.h>

#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const char* const kPlatform =
    "sailor_platform: 1\n"
    "name: some\n"
    "gpus_per_node: 8\n"
    "links:\n"
    "  - {name: inside, scope: intra_node, latency_s: 1e-6, bytes_per_s: 200e9}\n"
    "  - {name: network, scope: inter_node, latency_s: 1e-5, bytes_per_s: 10e9, node_bytes_per_s: 40e9}\n"
    "  - {name: old, from: old, to: old, scope: inter_node, bytes_per_s: 1e9}\n"
    "base_memory_bytes: 3e9\n"
    "iteration_overhead_s: 0.05\n"
    "message_slowdown: 1.2\n"
    "host_block_s: 1e-3\n";

Platform platform() {
  return parse_platform(kPlatform, "/d/p.yaml");
}

std::string platform_error(const std::string& find, const std::string& replace) {
  std::string text = kPlatform;
  text.replace(text.find(find), find.size(), replace);
  return test::error_of([&] { parse_platform(text, "/d/p.yaml"); });
}

TEST(Platform, ReadsItsNumbersAndDefaults) {
  const Platform p = platform();
  EXPECT_EQ(p.name, "some");
  EXPECT_EQ(p.gpus_per_node, 8);
  EXPECT_EQ(p.base_memory_bytes, 3e9);
  EXPECT_EQ(p.overheads.iteration_overhead_s, 0.05);
  EXPECT_EQ(p.overheads.message_slowdown, 1.2);
  EXPECT_EQ(p.overheads.sync_slowdown, 1);
  EXPECT_EQ(p.overheads.jitter, 0);
  EXPECT_EQ(p.host.block_s, 1e-3);
  EXPECT_EQ(p.collective_start_s, 0);
  ASSERT_EQ(p.links.size(), 3u);
}

TEST(Platform, ItsNetworkAnswersByPlaceAndType) {
  const NetworkProfile network = platform().network();
  const LinkEnd any{"new", "z", 1}, old{"old", "z", 1};
  EXPECT_DOUBLE_EQ(network.find(any, any, true)->time_s(200e3), 1e-6 + 1e-6);
  EXPECT_DOUBLE_EQ(network.find(any, any, false)->time_s(1e6), 1e-5 + 1e-4);
  EXPECT_DOUBLE_EQ(network.find(any, any, false)->time_s(1e6, 8), 1e-5 + 2e-4);
  EXPECT_DOUBLE_EQ(network.find(old, old, false)->time_s(1e6), 1e-3);
  EXPECT_DOUBLE_EQ(network.find(any, old, false)->time_s(1e6), 1e-5 + 1e-4);
}

TEST(Platform, NumbersAreFoundByTheirKeys) {
  Platform p = platform();
  ASSERT_NE(p.find("host_block_s"), nullptr);
  *p.find("host_block_s") = 7;
  EXPECT_EQ(p.host.block_s, 7);
  *p.find("links.network.node_bytes_per_s") = 20e9;
  *p.find("links.network.latency_s") = 0;
  EXPECT_DOUBLE_EQ(p.network().find({"x", "z", 1}, {"x", "z", 1}, false)->time_s(1e6, 8), 4e-4);
  EXPECT_EQ(p.find("links.nothing.latency_s"), nullptr);
  EXPECT_EQ(p.find("links.network.colour"), nullptr);
  EXPECT_EQ(p.find("gpus_per_node"), nullptr);
  for (const char* key : {"base_memory_bytes", "iteration_overhead_s", "message_slowdown", "sync_slowdown",
                          "jitter", "node_sync_s", "message_start_s", "host_tp_block_s", "host_tp_rank_s",
                          "host_pipelined_rank_s", "collective_start_s"})
    EXPECT_NE(p.find(key), nullptr) << key;
}

TEST(Platform, BrokenFilesAreErrorsWithFileAndLine) {
  EXPECT_THAT(platform_error("host_block_s", "host_blok_s"),
              StartsWith("/d/p.yaml:11: unknown key \"host_blok_s\", did you mean \"host_block_s\"?"));
  EXPECT_THAT(platform_error("gpus_per_node: 8", "gpus_per_node: 0"),
              StartsWith("/d/p.yaml:3: gpus_per_node: "));
  EXPECT_THAT(platform_error("scope: intra_node", "scope: inside"),
              StartsWith("/d/p.yaml:5: links[0].scope: must be "));
  EXPECT_THAT(platform_error("bytes_per_s: 200e9", "bytes_per_s: 0"),
              StartsWith("/d/p.yaml:5: links[0].bytes_per_s: must be a number above 0"));
  EXPECT_THAT(platform_error("message_slowdown: 1.2", "message_slowdown: -1"),
              StartsWith("/d/p.yaml:10: message_slowdown: "));
  EXPECT_THAT(platform_error("sailor_platform: 1", "sailor_platform: 9"),
              StartsWith("/d/p.yaml:1: sailor_platform: version 9"));
  EXPECT_THAT(platform_error("name: some\n", ""), HasSubstr("missing key \"name\""));
}

}  // namespace
}  // namespace sailor
