// What a request says of nodes without their names.
#include "spank_plugin/slurm/job_shape.h"

#include <gmock/gmock.h>

#include "spank_plugin/node_request.h"

namespace sailor {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

PartitionNode member(const std::string& name, std::map<std::string, int> gpus,
                     std::vector<std::string> features = {}, const std::string& zone = "z") {
  return {name, zone, std::move(gpus), std::move(features)};
}

Component part(const std::string& partition, std::vector<std::string> nodes, const std::string& gres) {
  Component component;
  component.partition = partition;
  component.nodes = std::move(nodes);
  component.tasks_by_node.assign(component.nodes.size(), 4);
  component.tasks_per_node = 4;
  component.gres = gres;
  return component;
}

LiveCluster cluster_with(std::vector<PartitionNode> members, const std::string& partition = "p") {
  LiveCluster cluster;
  cluster.partitions = {{.name = partition, .max_nodes = {}, .nodes = {}}};
  cluster.partitions[0].all = std::move(members);
  return cluster;
}

const std::map<std::string, int> kBig = {{"gpu:big", 4}}, kSmall = {{"gpu:small", 4}},
                                 kUntyped = {{"gpu", 4}};

TEST(JobShape, APartitionOfOneKindNeedsNoMore) {
  const auto shape = shape_of({part("p", {"a2", "a3"}, "gpu:4")},
                              cluster_with({member("a1", kUntyped), member("a2", kUntyped),
                                            member("a3", kUntyped), member("a4", kUntyped)}),
                              false);
  EXPECT_EQ(shape.why_not, "");
  EXPECT_THAT(shape.constraints, ElementsAre(""));
  ASSERT_EQ(shape.groups.size(), 1u);
  EXPECT_THAT(shape.groups[0].planned, ElementsAre("a2", "a3"));
  EXPECT_THAT(shape.groups[0].equal, ElementsAre("a1", "a2", "a3", "a4"));
}

TEST(JobShape, ATypeOfGpuDistinguishesKindsInOnePartition) {
  const LiveCluster cluster = cluster_with({member("a1", kBig), member("a2", kBig), member("b1", kSmall)});
  const auto shape = shape_of({part("p", {"a1"}, "gpu:big:4")}, cluster, false);
  EXPECT_EQ(shape.why_not, "");
  EXPECT_THAT(shape.groups[0].equal, ElementsAre("a1", "a2"));
  EXPECT_THAT(shape_of({part("p", {"a1"}, "gpu:4")}, cluster, false).why_not,
              HasSubstr("a request for a1 in partition p fits b1 too"));
}

TEST(JobShape, NodesWithMoreGpusOrInOtherZonesAreNotEqual) {
  for (const PartitionNode& other : {member("c1", {{"gpu:big", 8}}), member("c1", kBig, {}, "far")}) {
    const LiveCluster cluster = cluster_with({member("a1", kBig), member("a2", kBig), other});
    EXPECT_THAT(shape_of({part("p", {"a1"}, "gpu:big:4")}, cluster, false).why_not, HasSubstr("fits c1 too"));
  }
  const LiveCluster fewer = cluster_with({member("a1", kBig), member("c1", {{"gpu:big", 2}})});
  EXPECT_EQ(shape_of({part("p", {"a1"}, "gpu:big:4")}, fewer, false).why_not, "");
}

TEST(JobShape, AFeatureDistinguishesKinds) {
  const LiveCluster cluster =
      cluster_with({member("a1", kUntyped, {"ib", "new"}), member("a2", kUntyped, {"ib", "new"}),
                    member("b1", {{"gpu", 8}}, {"ib", "old"})});
  const auto shape = shape_of({part("p", {"a1"}, "gpu:4")}, cluster, false);
  EXPECT_EQ(shape.why_not, "");
  EXPECT_THAT(shape.constraints, ElementsAre("new"));
  EXPECT_THAT(shape_of({part("p", {"a1"}, "gpu:4")}, cluster, true).why_not,
              HasSubstr("--constraint is given"));
}

TEST(JobShape, AnUmbrellaPartitionNeedsAFeatureForEachKind) {
  std::vector<PartitionNode> members = {member("a1", kBig, {"new"}), member("a2", kBig, {"new"}),
                                        member("a3", kBig, {"new"}), member("b1", kSmall, {"old"}),
                                        member("b2", kSmall, {"old"})};
  Component component = part("p", {"a1", "a2", "b1"}, "");
  component.whole_nodes = true;
  const auto shape = shape_of({component}, cluster_with(members), false);
  EXPECT_EQ(shape.why_not, "");
  EXPECT_THAT(shape.constraints, ElementsAre("[new*2&old*1]"));
  ASSERT_EQ(shape.groups.size(), 2u);
  EXPECT_THAT(shape.groups[1].planned, ElementsAre("b1"));
  EXPECT_THAT(shape.groups[1].equal, ElementsAre("b1", "b2"));
  members[3].features.clear();  // of a planned node
  EXPECT_THAT(shape_of({component}, cluster_with(members), false).why_not,
              HasSubstr("no feature distinguishes them"));
}

TEST(JobShape, RequestsByRankNeedNames) {
  Component component = part("p", {"a1", "a2"}, "");
  component.per_rank = true;
  EXPECT_THAT(shape_of({component}, cluster_with({member("a1", kBig), member("a2", kBig)}), false).why_not,
              HasSubstr("different numbers of ranks"));
}

TEST(JobShape, ComponentsThatTakeDifferentPartsOfEqualNodesNeedNames) {
  const LiveCluster cluster = cluster_with({member("a1", kBig), member("a2", kBig)});
  EXPECT_THAT(
      shape_of({part("p", {"a1"}, "gpu:big:4"), part("p", {"a2"}, "gpu:big:1")}, cluster, false).why_not,
      HasSubstr("different parts of equal nodes"));
}

TEST(NodeRequest, NamesAreForJobsThatStartAtOnce) {
  PlannedJob planned;
  planned.components = {part("p", {"a1", "a2"}, "gpu:4")};
  planned.shape = {{{{"a1", "a2"}, {"a1", "a2", "a3"}}}, {"new"}, ""};
  PlannedJob later = planned;
  request_shape(planned, false);
  request_shape(later, true);
  EXPECT_THAT(submit_options(planned.components[0]), Contains("--nodelist=a1,a2"));
  EXPECT_THAT(submit_options(later.components[0]), Not(Contains(StartsWith("--nodelist"))));
  for (const PlannedJob& job : {planned, later}) {
    EXPECT_THAT(submit_options(job.components[0]), Contains("--nodes=2"));
    EXPECT_THAT(submit_options(job.components[0]), Contains("--constraint=new"));
  }
}

TEST(NodeRequest, WhoNamesNodesKeepsThem) {
  PlannedJob planned;
  planned.components = {part("p", {"a1"}, "gpu:4")};
  SubmitOptions options;
  EXPECT_TRUE(may_move(options, false, planned));
  EXPECT_FALSE(may_move(options, true, planned)) << "--nodelist";
  EXPECT_THAT(waiting_nodes_text(options, planned, true), HasSubstr("planned for a1"));
  planned.shape.why_not = "of this";
  EXPECT_FALSE(may_move(options, false, planned));
  EXPECT_THAT(waiting_nodes_text(options, planned, false), HasSubstr("exactly a1: of this"));
  planned.shape.why_not = "";
  options.pin = true;
  EXPECT_FALSE(may_move(options, false, planned));
  EXPECT_THAT(waiting_nodes_text(options, planned, false), IsEmpty());
}

}  // namespace
}  // namespace sailor
