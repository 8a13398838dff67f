// The installed catalog, and what a site's catalog adds to it.
#include "planner/spec/catalog.h"

#include <gmock/gmock.h>

#include <fstream>

#include "planner/process/scratch_directory.h"
#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

struct SiteCatalog {
  ScratchDirectory scratch;

  Catalog load(const std::string& text) {
    const std::string path = scratch.path() + "/catalog.yaml";
    std::ofstream(path) << "sailor_catalog: 1\n" << text;
    return load_catalog(path);
  }
};

TEST(InstalledCatalog, NodesHaveCardsAndGpusSayTheirPrecisions) {
  SiteCatalog site;
  const Catalog catalog = site.load("gpu_types: {mine: {memory: 8GiB}}\n");
  EXPECT_EQ(catalog.at("mine").memory_bytes, int64_t{8} << 30);
  EXPECT_FALSE(catalog.at("mine").flops(Precision::bf16));
  for (const auto& [name, type] : catalog.gpu_types) {
    if (name == "mine") continue;
    if (type.on_processors) {
      EXPECT_EQ(name, "cpu");
      continue;
    }
    SCOPED_TRACE(name);
    EXPECT_TRUE(type.flops(Precision::fp16));
    EXPECT_TRUE(type.flops(Precision::fp32));
    EXPECT_GT(*type.flops(Precision::fp16), *type.flops(Precision::fp32));
    EXPECT_TRUE(type.power);
    EXPECT_GT(type.usd_per_hour, 0);
    EXPECT_GE(type.memory_bytes, int64_t{11} << 30);
  }
  EXPECT_FALSE(catalog.at("V100-32").flops(Precision::bf16));
  EXPECT_EQ(*catalog.at("A100-80").flops(Precision::fp16), *catalog.at("A100-80").flops(Precision::bf16));
  EXPECT_EQ(catalog.at("H100-80").node.cards, 8);
}

TEST(InstalledCatalog, ATypeOfTheSiteReplacesTheInstalledOne) {
  SiteCatalog site;
  const Catalog catalog =
      site.load("gpu_types: {A100-40: {memory: 4GiB, emulate: {profile: cpu, slowdown: 25}}}\n");
  const GpuType& type = catalog.at("A100-40");
  EXPECT_EQ(type.memory_bytes, int64_t{4} << 30);
  EXPECT_TRUE(type.peak_flops.empty());
  EXPECT_TRUE(type.on_processors);
  EXPECT_EQ(type.node.cards, 0);
  EXPECT_EQ(catalog.at("A100-80").node.cards, 8);
  EXPECT_THAT(catalog.file, HasSubstr("catalog.yaml"));
}

TEST(InstalledCatalog, AScopeThatTheSiteDescribesIsDescribedByItAlone) {
  SiteCatalog site;
  const Catalog catalog = site.load(
      "gpu_types: {mine: {memory: 8GiB, node: {cards: 2, card: 25GB/s}}}\n"
      "links: [{scope: inter_node, latency: 5us, rate: 3GB/s}]\n");
  int described = 0;
  for (const AssumedLink& link : catalog.links) {
    if (link.scope != AssumedLink::Scope::inter_node) continue;
    ++described;
    EXPECT_EQ(link.bytes_per_s, 3e9);
  }
  EXPECT_EQ(described, 1);
  EXPECT_EQ(catalog.at("H100-80").node.cards, 0);
  EXPECT_GT(catalog.at("H100-80").node.link_bytes_per_s, 0);
  EXPECT_EQ(catalog.at("mine").node.cards, 2);
}

TEST(InstalledCatalog, WritingAndReadingGivesTheSame) {
  SiteCatalog site;
  const Catalog catalog =
      site.load("gpu_types: {\"7\": {memory: 8GiB, emulate: {profile: cpu, slowdown: 2.5}}}\n");
  const std::string text = to_yaml(catalog);
  EXPECT_EQ(to_yaml(parse_catalog(text, "again")), text);
  // Read as a site's catalog, it replaces all that is installed.
  EXPECT_EQ(to_yaml(site.load(text.substr(text.find('\n') + 1))), text);
}

TEST(InstalledCatalog, RefusesWhatMakesNoSense) {
  const auto error = [](const std::string& type) {
    return test::error_of(
        [&] { parse_catalog("sailor_catalog: 1\ngpu_types:\n  a: " + type + "\n", "f.yaml"); });
  };
  EXPECT_THAT(error("{memory: 80}"),
              HasSubstr("f.yaml:3: gpu_types.a.memory: is 80 bytes; with a unit: 80GiB"));
  EXPECT_THAT(error("{memory: 1GiB, node: {cards: 8}}"), HasSubstr("missing key \"card\""));
  EXPECT_THAT(error("{memory: 1GiB, node: {card: 50GB/s}}"), HasSubstr("say with `cards` how many"));
  EXPECT_THAT(error("{memory: 1GiB, node: {cards: 0, card: 1GB/s}}"), HasSubstr("node.cards"));
  EXPECT_THAT(error("{memory: 1GiB, node: {link: 0}}"), HasSubstr("must be above 0"));
  EXPECT_THAT(error("{memory: 1GiB, device: tpu}"), HasSubstr("gpu or cpu"));
  EXPECT_THAT(error("{memory: 1GiB, device: gpu, emulate: {profile: cpu}}"),
              HasSubstr("device: must be cpu"));
}

}  // namespace
}  // namespace sailor
