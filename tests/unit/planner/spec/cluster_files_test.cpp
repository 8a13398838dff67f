// Snapshot and site config.
#include <gmock/gmock.h>

#include "planner/spec/error.h"
#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Parse>
std::string error_of(Parse parse, const std::string& text) {
  try {
    parse(text, "/d/f.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const char kSnapshot[] = R"(sailor_snapshot: 1
nodes:
  - {name: a1, partition: fast, zone: z1, region: r1, gpu_type: big, gpus: 4, free_gpus: [0, 1, 3]}
  - {name: "7", zone: z2, gpu_type: small, gpus: 2}
usd_per_hour: {big: {z1: 3.5}}
egress_usd_per_gb: {z1: {z2: 0.01}}
not_free: ["b1: drained: \"disk\""]
)";

TEST(Snapshot, WritingAndReadingGivesTheSame) {
  Snapshot first = parse_snapshot(kSnapshot, "s");
  Snapshot second = parse_snapshot(to_yaml(first), "s");
  EXPECT_EQ(to_yaml(first), to_yaml(second));
  ASSERT_EQ(second.nodes.size(), 2u);
  EXPECT_THAT(second.find("a1")->free_gpus, ElementsAre(0, 1, 3));
  EXPECT_THAT(second.find("7")->free_gpus, ElementsAre(0, 1));
  EXPECT_EQ(second.find("7")->region, "z2");
  EXPECT_EQ(second.find("nobody"), nullptr);
  EXPECT_THAT(second.not_free, ElementsAre("b1: drained: \"disk\""));
  EXPECT_EQ((second.free_by_zone_and_type().at({"z1", "big"})), 3);
}

TEST(Snapshot, SaysWhatAJobPaysForItsNodes) {
  const std::string yaml =
      "sailor_snapshot: 1\n"
      "nodes:\n"
      "  - {name: a1, zone: z, region: z, gpu_type: x, gpus: 2, free_gpus: [0, 1], price: spot, "
      "billing_units: 9.5}\n"
      "  - {name: a2, zone: z, region: z, gpu_type: x, gpus: 2, free_gpus: [0, 1], shared: true}\n"
      "  - {name: a3, zone: z, region: z, gpu_type: x, gpus: 2, free_gpus: [1]}\n"
      "  - {name: a4, zone: z, region: z, gpu_type: x, gpus: 2, free_gpus: [1], shared: false}\n"
      "spot_usd_per_hour:\n  x: {z: 1.5}\n"
      "billing: {usd_per_unit_hour: 0.25}\n";
  const Snapshot snapshot = parse_snapshot(yaml, "s");
  EXPECT_EQ(to_yaml(snapshot), yaml);
  EXPECT_TRUE(snapshot.nodes[0].spot);
  EXPECT_FALSE(snapshot.nodes[0].shared);
  EXPECT_FALSE(snapshot.nodes[1].spot);
  EXPECT_TRUE(snapshot.nodes[2].shared) << "others use the rest of it";
  EXPECT_EQ(snapshot.usd_per_unit_hour, 0.25);
  EXPECT_THAT(error_of(parse_snapshot,
                       "sailor_snapshot: 1\nnodes:\n  - {name: a, zone: z, gpu_type: x, gpus: 1, "
                       "price: cheap}\n"),
              HasSubstr("price"));
}

TEST(Snapshot, LimitsAreKept) {
  const std::string yaml =
      "sailor_snapshot: 1\n"
      "nodes: []\n"
      "limits:\n"
      "  - {gpus: 6, reason: \"QOS q allows 6 GPUs per user, 1 is in use: at most 5\"}\n"
      "  - {gpus: 4, gpu_type: x, reason: some}\n"
      "  - {gpus: 3, gpu_type: x, reason: fewer}\n";
  const Snapshot snapshot = parse_snapshot(yaml, "s");
  EXPECT_EQ(to_yaml(snapshot), yaml);
  EXPECT_EQ(snapshot.limit_on("")->gpus, 6);
  EXPECT_EQ(snapshot.limit_on("x")->reason, "fewer");
  EXPECT_EQ(snapshot.limit_on("y"), nullptr);
  EXPECT_THAT(error_of(parse_snapshot, "sailor_snapshot: 1\nnodes: []\nlimits: [{gpus: -1, reason: no}]\n"),
              HasSubstr("gpus"));
}

TEST(Snapshot, SwitchesAndBusyNodesAreKept) {
  const std::string yaml =
      "sailor_snapshot: 1\n"
      "nodes:\n"
      "  - {name: a1, zone: z, region: z, gpu_type: x, gpus: 2, free_gpus: [0, 1], switch: s1}\n"
      "busy:\n"
      "  - {name: a2, partition: p, zone: z, region: z, gpu_type: x, gpus: 2, switch: s2, state: \"in use\", "
      "free_in_s: 900}\n"
      "  - {name: a3, zone: z, region: z, gpu_type: x, gpus: 2, state: \"powered down\"}\n";
  const Snapshot snapshot = parse_snapshot(yaml, "s");
  EXPECT_EQ(snapshot.nodes[0].leaf_switch, "s1");
  ASSERT_EQ(snapshot.busy.size(), 2u);
  EXPECT_THAT(snapshot.busy[0].node.free_gpus, ElementsAre(0, 1));
  EXPECT_EQ(snapshot.busy[0].free_in_s, 900);
  EXPECT_EQ(snapshot.busy[1].free_in_s, std::nullopt);
  EXPECT_EQ(to_yaml(snapshot), yaml);
  EXPECT_EQ(snapshot.find("a2"), nullptr) << "a busy node is not on offer";
  EXPECT_THAT(
      error_of(parse_snapshot, yaml + "  - {name: a1, zone: z, gpu_type: x, gpus: 1, state: in use}\n"),
      HasSubstr("is listed twice"));
  EXPECT_THAT(error_of(parse_snapshot, yaml + "  - {name: a4, zone: z, gpu_type: x, gpus: 1}\n"),
              HasSubstr("missing key \"state\""));
}

TEST(Snapshot, AnEntryMayStandForManyNodes) {
  const std::string yaml =
      "sailor_snapshot: 1\n"
      "nodes:\n"
      "  - {name: 'a[1-2],b', zone: z, gpu_type: x, gpus: 2, free_gpus: [1], switch: s1}\n"
      "  - {name: c, count: 3, zone: z, gpu_type: x, gpus: 4}\n"
      "busy:\n"
      "  - {name: 'd[01-02]', zone: z, gpu_type: x, gpus: 2, state: in use, free_in_s: 900}\n";
  const Snapshot snapshot = parse_snapshot(yaml, "s");
  std::vector<std::string> names;
  for (const SnapshotNode& node : snapshot.nodes) names.push_back(node.name);
  EXPECT_THAT(names, ElementsAre("a1", "a2", "b", "c1", "c2", "c3"));
  EXPECT_THAT(snapshot.find("b")->free_gpus, ElementsAre(1));
  EXPECT_EQ(snapshot.find("a2")->leaf_switch, "s1");
  EXPECT_EQ((snapshot.free_by_zone_and_type().at({"z", "x"})), 15);
  ASSERT_EQ(snapshot.busy.size(), 2u);
  EXPECT_EQ(snapshot.busy[1].node.name, "d02");
  EXPECT_EQ(snapshot.busy[1].free_in_s, 900);
  EXPECT_EQ(to_yaml(parse_snapshot(to_yaml(snapshot), "s")), to_yaml(snapshot));

  auto error = [](const std::string& name) {
    return error_of(parse_snapshot,
                    "sailor_snapshot: 1\nnodes:\n  - {name: a1, zone: z, gpu_type: x, gpus: 1}\n  - {name: " +
                        name + ", zone: z, gpu_type: x, gpus: 4096}\n");
  };
  EXPECT_THAT(error("'a[0-2]'"), HasSubstr("f.yaml:4: nodes[1]: the node \"a1\" is listed twice"));
  EXPECT_THAT(error("'b[2-1]'"), HasSubstr("f.yaml:4: nodes[1].name: \"b[2-1]\" is not a host list"));
  EXPECT_THAT(error("'b[1-2]', count: 2"), HasSubstr("f.yaml:4: nodes[1].count: numbers the nodes"));
  EXPECT_THAT(error("b, count: 0"), HasSubstr("nodes[1].count: must be an integer from 1 to 65536"));
  EXPECT_THAT(error(std::string(191, 'b') + ", count: 2"), HasSubstr("nodes[1].name: too long"));
  EXPECT_THAT(error("b, count: 65536"), HasSubstr("nodes[1]: more than 1000000 GPUs in all"));
}

TEST(Snapshot, RefusesImpossibleNodes) {
  auto error = [](const std::string& nodes) {
    return error_of(parse_snapshot, "sailor_snapshot: 1\nnodes:\n" + nodes);
  };
  EXPECT_THAT(error("  - {name: a, zone: z, gpu_type: t, gpus: 2, free_gpus: [2]}\n"),
              HasSubstr("nodes[0].free_gpus[0]: the node has 2"));
  EXPECT_THAT(error("  - {name: a, zone: z, gpu_type: t, gpus: 2, free_gpus: [1, 0]}\n"),
              HasSubstr("must ascend"));
  EXPECT_THAT(
      error("  - {name: a, zone: z, gpu_type: t, gpus: 2}\n  - {name: a, zone: z, gpu_type: t, gpus: 2}\n"),
      HasSubstr("f.yaml:4: nodes[1]: the node \"a\" is listed twice"));
  EXPECT_THAT(error("  - {name: a, zone: z, region: r, gpu_type: t, gpus: 2}\n"
                    "  - {name: b, zone: z, region: q, gpu_type: t, gpus: 2}\n"),
              HasSubstr("is in region \"q\" here and in \"r\" above"));
  EXPECT_THAT(error("  - {name: a, zone: z, gpu_type: t, gpus: -2}\n"),
              HasSubstr("must be an integer from 0"));
  EXPECT_THAT(error("  - {name: a, zone: z, gpu_type: t, gpus: 4000000000}\n"),
              HasSubstr("must be an integer from 0 to 4096"));
  // A small file must not expand to more GPUs than fit into memory.
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += "  - {name: n" + std::to_string(i) + ", zone: z, gpu_type: t, gpus: 4096}\n";
  EXPECT_THAT(error(many), HasSubstr("nodes[244]: more than 1000000 GPUs in all"));
}

TEST(SiteConfig, PathsAreRelativeToTheFile) {
  SiteConfig site = parse_site_config(
      "sailor_site: 1\n"
      "catalog: catalog.yaml\n"
      "profiles: [profiles, /abs/p]\n"
      "zones:\n  - {zone: z2, region: r, partitions: [fast]}\n"
      "planner: {time_limit: 500ms, effort: 4}\n"
      "defaults: {objective: cost}\n",
      "/etc/x/sailor.yaml");
  EXPECT_EQ(site.catalog, "/etc/x/catalog.yaml");
  EXPECT_THAT(site.profiles, ElementsAre("/etc/x/profiles", "/abs/p"));
  EXPECT_EQ(site.zones[0].region, "r");
  EXPECT_DOUBLE_EQ(site.planner_time_limit_s, 0.5);
  EXPECT_EQ(site.planner_effort, 4);
  EXPECT_EQ(site.default_objective, "cost");
  EXPECT_EQ(site.default_zone.zone, "default");
  EXPECT_TRUE(site.jobs_may_grow);
  EXPECT_DOUBLE_EQ(site.elastic_time_limit_s, 0.3);
}

TEST(SiteConfig, IsWrittenAsItIsRead) {
  const std::string yaml =
      "sailor_site: 1\ncatalog: /c/cat.yaml\nprofiles: [/p/a, \"/p/b c\"]\nframework: /f/own.yaml\n"
      "profile_max_age_days: 7\ngres: {a100: A-40, \"1g.5gb\": \"yes\"}\n"
      "default_zone: {zone: z1, region: r1}\n"
      "zones: [{zone: z2, region: r2, partitions: [p, q], price: spot}, {zone: z3, features: [f, \"g:h\"]}]\n"
      "umbrella_partition: all\nrequest: {whole_nodes: true, cpus_per_rank: 3, memory_per_rank: 2GiB}\n"
      "usd_per_hour: {A-40: {z1: 3.25}}\nspot_usd_per_hour: {A-40: {z2: 1}}\n"
      "billing: {usd_per_unit_hour: 0.5}\n"
      "egress_usd_per_gb: {z1: {z2: 0.01}, z2: {z1: 0.1}}\nplanner: {time_limit: 250ms, effort: 2}\n"
      "watts: {A-40: {idle: 60, busy: 400}}\n"
      "elastic: {grow: false, time_limit: 1.5s, grow_partition: spare, grow_qos: low}\nencrypt_data: true\n"
      "defaults: {objective: cost}\n";
  const SiteConfig site = parse_site_config(yaml, "/d/f.yaml");
  const std::string written = to_yaml(site);
  const SiteConfig again = parse_site_config(written, "/d/f.yaml");
  EXPECT_EQ(to_yaml(again), written);
  EXPECT_THAT(again.profiles, ElementsAre("/p/a", "/p/b c"));
  EXPECT_EQ(again.framework, "/f/own.yaml");
  EXPECT_EQ(again.profile_max_age_days, 7);
  EXPECT_EQ(again.gres, site.gres);
  ASSERT_EQ(again.zones.size(), 2u);
  EXPECT_THAT(again.zones[1].features, ElementsAre("f", "g:h"));
  EXPECT_EQ(again.zones[1].region, "z3");
  EXPECT_EQ(again.umbrella_partition, "all");
  EXPECT_TRUE(again.whole_nodes);
  EXPECT_EQ(again.cpus_per_rank, 3);
  EXPECT_EQ(again.memory_per_rank_bytes, int64_t{2} << 30);
  EXPECT_EQ(again.usd_per_hour, site.usd_per_hour);
  EXPECT_EQ(again.spot_usd_per_hour.at("A-40").at("z2"), 1);
  EXPECT_EQ(again.usd_per_unit_hour, 0.5);
  EXPECT_TRUE(again.zones[0].spot);
  EXPECT_FALSE(again.default_zone.spot);
  EXPECT_EQ(again.egress_usd_per_gb, site.egress_usd_per_gb);
  EXPECT_EQ(again.power.at("A-40").busy_watts, 400);
  EXPECT_EQ(again.planner_time_limit_s, 0.25);
  EXPECT_EQ(again.planner_effort, 2);
  EXPECT_FALSE(again.jobs_may_grow);
  EXPECT_EQ(again.grow_partition, "spare");
  EXPECT_EQ(again.grow_qos, "low");
  EXPECT_EQ(again.elastic_time_limit_s, 1.5);
  EXPECT_TRUE(again.encrypt_data);
  EXPECT_EQ(again.default_objective, "cost");
}

TEST(Snapshot, KeepsTheNodesThatOthersWaitFor) {
  const std::string yaml = "sailor_snapshot: 1\nnodes: []\nwanted:\n  - {node: v1, job: 123}\n";
  const Snapshot snapshot = parse_snapshot(to_yaml(parse_snapshot(yaml, "s")), "s");
  ASSERT_EQ(snapshot.wanted.size(), 1u);
  EXPECT_EQ(snapshot.wanted[0], (WantedNode{"v1", "123"}));
}

TEST(SiteConfig, SaysHowLongTrainingStandsStillForPlanning) {
  EXPECT_DOUBLE_EQ(
      parse_site_config("sailor_site: 1\ncatalog: c\nelastic: {time_limit: 2s}\n", "s").elastic_time_limit_s,
      2);
  EXPECT_THAT(error_of(parse_site_config, "sailor_site: 1\ncatalog: c\nelastic: {time_limit: 0s}\n"),
              HasSubstr("elastic.time_limit: must be above 0"));
}

TEST(SiteConfig, KeepsJobsAtTheirNodesWhereTheAdminSaysSo) {
  EXPECT_FALSE(parse_site_config("sailor_site: 1\ncatalog: c\nelastic: {grow: false}\n", "s").jobs_may_grow);
}

TEST(SiteConfig, MakesAllElasticJobsYield) {
  EXPECT_FALSE(parse_site_config("sailor_site: 1\ncatalog: c\nelastic: {grow: true}\n", "s").jobs_yield);
  const SiteConfig yields = parse_site_config("sailor_site: 1\ncatalog: c\nelastic: {yield: true}\n", "s");
  EXPECT_TRUE(yields.jobs_yield);
  EXPECT_TRUE(parse_site_config(to_yaml(yields), "s").jobs_yield);
  EXPECT_THAT(error_of(parse_site_config, "sailor_site: 1\ncatalog: c\nelastic: {grow: seldom}\n"),
              HasSubstr("elastic.grow"));
}

TEST(SiteConfig, ARuleThatMatchesEverythingIsRefused) {
  EXPECT_THAT(error_of(parse_site_config, "sailor_site: 1\ncatalog: c\nzones: [{zone: z}]\n"),
              HasSubstr("zones[0]: this rule would match every node"));
}

}  // namespace
}  // namespace sailor
