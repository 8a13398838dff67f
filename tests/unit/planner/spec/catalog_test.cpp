// Catalog files, the installed one, and what a site's adds to it.
#include "planner/spec/catalog.h"

#include <gmock/gmock.h>

#include <fstream>

#include "planner/process/scratch_directory.h"
#include "tests/unit/planner/error_of.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

std::string catalog_error(const std::string& text) {
  return test::error_of([&] { parse_catalog(text, "/d/f.yaml"); });
}

struct SiteCatalog {
  ScratchDirectory scratch;

  Catalog load(const std::string& text) {
    const std::string path = scratch.path() + "/catalog.yaml";
    std::ofstream(path) << "sailor_catalog: 1\n" << text;
    return load_catalog(path);
  }
};

TEST(Catalog, ReadsUnitsAndEmulation) {
  Catalog catalog = parse_catalog(
      "sailor_catalog: 1\n"
      "gpu_types:\n"
      "  real: {memory: 40GiB, peak_flops: {fp32: 19.5e12}, memory_bandwidth: 1555GB/s, usd_per_hour: 3.67 "
      "USD}\n"
      "  slow: {memory: 1GiB, emulate: {profile: cpu, slowdown: 40}}\n",
      "c");
  EXPECT_EQ(catalog.at("real").memory_bytes, int64_t{40} << 30);
  EXPECT_DOUBLE_EQ(catalog.at("real").memory_bandwidth_bytes_per_s, 1555e9);
  EXPECT_DOUBLE_EQ(catalog.at("slow").emulation->slowdown, 40);
  EXPECT_FALSE(catalog.at("real").emulation);
  try {
    catalog.at("reel");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown GPU type \"reel\", did you mean \"real\"? (types: c)");
  }
}

TEST(Catalog, RefusesWhatMakesNoSense) {
  auto error = [](const std::string& type) {
    return catalog_error("sailor_catalog: 1\ngpu_types:\n  a: " + type + "\n");
  };
  EXPECT_THAT(error("{memory: 1GiB, watts: {idle: 9, busy: 8}}"),
              HasSubstr("watts: busy must be at least idle"));
  EXPECT_THAT(error("{memory: 1GiB, watts: {idle: 9}}"), HasSubstr("busy"));
  EXPECT_THAT(error("{memory: 0}"), HasSubstr("f.yaml:3: gpu_types.a.memory: must be above 0"));
  EXPECT_THAT(error("{memory: -1GiB}"), HasSubstr("must be a size such as"));
  EXPECT_THAT(error("{memory: 9e30}"), HasSubstr("too large"));
  EXPECT_THAT(error("{}"), HasSubstr("missing key \"memory\""));
  EXPECT_THAT(error("{memory: 1GiB, emulate: {profile: cpu, slowdown: 0}}"),
              HasSubstr("must be a number above 0"));
  EXPECT_THAT(catalog_error("sailor_catalog: 2\ngpu_types: {}\n"), HasSubstr("version 2 is not supported"));
  EXPECT_THAT(catalog_error("gpu_types: {}\n"), HasSubstr("missing key \"sailor_catalog\""));
}

TEST(Catalog, SaysWhatLinksAreTakenFor) {
  const std::string types =
      "sailor_catalog: 1\ngpu_types: {big: {memory: 1GiB}, small: {memory: 1GiB}}\nlinks:\n";
  const Catalog catalog =
      parse_catalog(types +
                        "  - {scope: intra_node, from: big, to: big, latency: 2us, rate: 200GB/s}\n"
                        "  - {scope: inter_node, rate: 100Gbit/s, node_rate: 25GB/s}\n"
                        "  - {scope: inter_zone, rate: 2GB/s}\n  - {scope: inter_region, rate: 1GB/s}\n",
                    "c");
  ASSERT_EQ(catalog.links.size(), 4u);
  EXPECT_EQ(catalog.links[0].scope, AssumedLink::Scope::intra_node);
  EXPECT_EQ(catalog.links[0].from, "big");
  EXPECT_DOUBLE_EQ(catalog.links[0].latency_s, 2e-6);
  EXPECT_DOUBLE_EQ(catalog.links[0].bytes_per_s, 200e9);
  EXPECT_EQ(catalog.links[1].to, "");
  EXPECT_DOUBLE_EQ(catalog.links[1].bytes_per_s, 12.5e9);
  EXPECT_DOUBLE_EQ(catalog.links[1].node_bytes_per_s, 25e9);
  EXPECT_EQ(catalog.links[2].scope, AssumedLink::Scope::inter_zone);
  EXPECT_EQ(catalog.links[3].scope, AssumedLink::Scope::inter_region);
  const auto error = [&](const std::string& link) { return catalog_error(types + "  - " + link + "\n"); };
  EXPECT_THAT(error("{scope: intra_node}"), HasSubstr("missing key \"rate\""));
  EXPECT_THAT(error("{scope: intra_node, rate: 0}"), HasSubstr("must be above 0"));
  EXPECT_THAT(error("{scope: somewhere, rate: 1GB/s}"),
              HasSubstr("intra_node, inter_node, inter_zone or inter_region"));
  EXPECT_THAT(error("{scope: intra_node, rate: 1GB/s, from: bog}"),
              HasSubstr("f.yaml:4: links[0].from: unknown GPU type \"bog\", did you mean \"big\"?"));
}

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
    EXPECT_GT(type.usd_per_hour.value_or(1), 0);
    EXPECT_LT(type.spot_usd_per_hour.value_or(0), type.usd_per_hour.value_or(1));
    EXPECT_GE(type.memory_bytes, int64_t{10} << 30);
  }
  EXPECT_FALSE(catalog.at("V100-32").flops(Precision::bf16));
  EXPECT_EQ(*catalog.at("A100-80").flops(Precision::fp16), *catalog.at("A100-80").flops(Precision::bf16));
  EXPECT_EQ(catalog.at("H100-80").node.cards, 8);
}

// Relations between the values of a data sheet that a slip breaks: a rate with sparsity, a memory in other
// units, the values of a sibling.
TEST(InstalledCatalog, ValuesOfATypeFitTogether) {
  for (const auto& [name, type] : load_catalog("").gpu_types) {
    if (type.on_processors) continue;
    SCOPED_TRACE(name);
    const double half = *type.flops(Precision::fp16), single = *type.flops(Precision::fp32);
    // TF32 has half the rate of bf16; without it, fp32 is computed outside the matrix units.
    if (type.peak_flops.contains("bf16")) {
      EXPECT_NEAR(half / single, 2, 0.03);
    } else {
      EXPECT_GT(half / single, 3.9);
    }
    EXPECT_GT(half / type.memory_bandwidth_bytes_per_s, 30);
    EXPECT_LT(half / type.memory_bandwidth_bytes_per_s, 450);
    EXPECT_LT(half / type.power->busy_watts, 2.3e12);
    EXPECT_NEAR(type.power->idle_watts / type.power->busy_watts, 0.15, 0.01);
    const double memory_s = static_cast<double>(type.memory_bytes) / type.memory_bandwidth_bytes_per_s;
    EXPECT_GT(memory_s, 0.012);  // to read all of it
    EXPECT_LT(memory_s, 0.085);
    EXPECT_GT(type.base_memory_bytes, int64_t{1} << 29);
    EXPECT_LT(type.base_memory_bytes, type.memory_bytes / 5);
    EXPECT_LT(type.node.link_bytes_per_s, type.memory_bandwidth_bytes_per_s / 5);
    EXPECT_GE(type.compute_units, 40);
    EXPECT_LE(type.compute_units, 200);
    EXPECT_LE(type.efficiency.gemm, 0.9);
  }
}

// The number in a name that is one of gigabytes, of which the driver reports nearly all.
TEST(InstalledCatalog, MemoryIsThatOfTheName) {
  for (const auto& [name, type] : load_catalog("").gpu_types) {
    const size_t dash = name.rfind('-');
    if (name.starts_with("RTX") || dash == std::string::npos ||
        name.find_first_not_of("0123456789", dash + 1) != std::string::npos)
      continue;
    const double nominal = std::stod(name.substr(dash + 1)),
                 reported = static_cast<double>(type.memory_bytes) / (1 << 30);
    EXPECT_LE(reported, nominal) << name;
    EXPECT_GE(reported, 0.91 * nominal) << name;
  }
}

TEST(InstalledCatalog, EveryTypeNamesItsSource) {
  std::ifstream file(SAILOR_SOURCE_DIR "/etc/catalog.yaml");
  std::string before, line, comment;
  int types = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("  #")) {
      comment = before.starts_with("  #") ? comment + line : line;
    } else if (line.find(": {memory: ") != std::string::npos &&
               line.find("device: cpu") == std::string::npos) {
      EXPECT_TRUE(comment.starts_with("  # Source: ") && before.starts_with("  #")) << line;
      ++types;
    }
    before = line;
  }
  EXPECT_EQ(types + 1, static_cast<int>(load_catalog("").gpu_types.size()));
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
    return catalog_error("sailor_catalog: 1\ngpu_types:\n  a: " + type + "\n");
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
