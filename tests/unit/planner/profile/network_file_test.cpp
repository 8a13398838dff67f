#include "planner/profile/network_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/spec/error.h"

namespace sailor {
namespace {

using Scope = NetworkProfile::Scope;
using testing::HasSubstr;

NetworkFile example_network() {
  NetworkFile network;
  network.measured = "a \"quoted\" place";
  NetworkFile::Link& link = network.link({"X", "z", 0}, {"Y", "", 0}, Scope::inter_node);
  link.points = {{4096, 1e-4}, {65536, 3e-4}};
  link.latency_s = 9e-5;
  link.bytes_per_s = 2.5e8;
  link.node_bytes_per_s = 5e8;
  link.measured = "today";
  link.messages = {
      {.bytes = 4096, .seconds = 1e-4, .samples = 40, .error = 0.01, .outliers = 2},
      {.bytes = 4096, .seconds = 2e-4, .samples = 7, .error = 0.1, .pairs = 4, .precise = false}};
  const NetworkMeasurement first = link.messages.front();
  network.link({"Y", "", 0}, {"X", "z", 0}, Scope::any).messages = {first};
  network.collective("all_reduce", {"2 x X in z"}, 4, 2).measurements = {first};
  return network;
}

TEST(NetworkFile, IsReadAsItWasWritten) {
  const NetworkFile network = example_network();
  const NetworkFile read = parse_network_file(to_json(network), "n.json");
  EXPECT_EQ(to_json(read), to_json(network));
  ASSERT_EQ(read.links.size(), 2u);
  EXPECT_EQ(read.links[0].points, network.links[0].points);
  EXPECT_EQ(read.links[0].messages[1].pairs, 4);
  EXPECT_FALSE(read.links[0].messages[1].precise);
  EXPECT_EQ(read.collectives[0].measurements[0].samples, 40);
}

TEST(NetworkFile, ALinkThatIsBeingMeasuredIsNotPlannedWith) {
  const NetworkProfile profile = to_profile(example_network());
  const LinkEnd x{"X", "z", 1}, y{"Y", "w", 1};
  ASSERT_NE(profile.find(x, y, false), nullptr);
  EXPECT_DOUBLE_EQ(profile.find(x, y, false)->time_s(65536), 3e-4);
  EXPECT_EQ(profile.find(x, y, true), nullptr) << "the link of any scope has no curve yet";
}

TEST(NetworkFile, EntriesAreFoundByWhatTheyAreOf) {
  NetworkFile network = example_network();
  EXPECT_EQ(&network.link({"X", "z", 0}, {"Y", "", 0}, Scope::inter_node), &network.links[0]);
  network.link({"X", "z", 0}, {"Y", "", 0}, Scope::intra_node);
  EXPECT_EQ(network.links.size(), 3u);
  network.collective("all_reduce", {"2 x X in z"}, 4, 2);
  EXPECT_EQ(network.collectives.size(), 1u);
  network.collective("all_reduce", {"2 x X in z"}, 2, 1);
  EXPECT_EQ(network.collectives.size(), 2u);
}

TEST(NetworkFile, LinksOfDifferentTransportsAreDifferentLinksAndEachRankUsesItsOwn) {
  const LinkEnd any{"", "", 0}, x{"X", "", 0};
  NetworkFile network;
  network.link(any, any, Scope::any).bytes_per_s = 1e9;  // of a file that says nothing
  network.link(any, any, Scope::any, Transport::sockets).bytes_per_s = 2e9;
  network.link(x, x, Scope::intra_node, Transport::nccl).bytes_per_s = 200e9;
  ASSERT_EQ(network.links.size(), 3u);
  network.links[2].step_latency_s = 2e-6;
  network.links[2].step_bytes_per_s = 300e9;
  network.collective("all_reduce", {"8 x X"}, 8, 1, Transport::nccl).measurements = {
      {.bytes = 1, .seconds = 1, .samples = 1}};
  const NetworkFile read = parse_network_file(to_json(network), "n.json");
  EXPECT_EQ(to_json(read), to_json(network));
  EXPECT_EQ(read.links[0].transport, std::nullopt);
  EXPECT_EQ(read.links[1].transport, Transport::sockets);
  EXPECT_EQ(read.collectives[0].transport, Transport::nccl);
  EXPECT_EQ(read.links[2].curve().step_latency_s(), 2e-6);

  const auto rate = [&](Transport transport, bool same_node) {
    return 1e9 / to_profile(read, transport).find({"X", "z", 1}, {"X", "z", 1}, same_node)->time_s(1e9);
  };
  EXPECT_DOUBLE_EQ(rate(Transport::nccl, true), 200e9);
  EXPECT_DOUBLE_EQ(rate(Transport::nccl, false), 1e9) << "nothing better is known";
  EXPECT_DOUBLE_EQ(rate(Transport::sockets, true), 2e9) << "what was measured over it comes first";
  EXPECT_DOUBLE_EQ(rate(Transport::sockets, false), 2e9);
}

TEST(NetworkFile, BrokenOnesAreRefusedWithFileAndLine) {
  const std::string text = to_json(example_network());
  const auto error_with = [&](const std::string& from, const std::string& to) -> std::string {
    std::string broken = text;
    broken.replace(broken.find(from), from.size(), to);
    try {
      parse_network_file(broken, "n.json");
    } catch (const InputError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_with("\"samples\":40", "\"samples\":0"),
              HasSubstr("n.json:6: links[0].messages[0].samples"));
  EXPECT_THAT(error_with("\"error\":0.1", "\"error\":-1"), HasSubstr("n.json:7: links[0].messages[1].error"));
  EXPECT_THAT(error_with("\"time_up\"", "\"tired\""), HasSubstr("must be precise or time_up"));
  EXPECT_THAT(error_with("\"pairs\":4", "\"pairs\":1"), HasSubstr("is listed twice"));
  EXPECT_THAT(error_with("\"scope\"", "\"transport\":\"ncl\", \"scope\""),
              HasSubstr("n.json:5: links[0].transport: must be nccl or sockets"));
  EXPECT_THAT(error_with("\"latency_s\"", "\"step_latency_s\""),
              HasSubstr("n.json:5: links[0]: \"step_latency_s\" needs \"step_bytes_per_s\""));
  EXPECT_THAT(error_with("all_reduce", "all_sing"), HasSubstr("collectives[0].operation"));
  for (size_t cut = 1; cut + 3 < text.size(); cut += 7)
    EXPECT_THROW(parse_network_file(text.substr(0, cut), "n.json"), InputError) << cut;
}

}  // namespace
}  // namespace sailor
