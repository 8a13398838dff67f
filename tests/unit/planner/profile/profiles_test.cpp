#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_profile.h"
#include "planner/profile/profile_set.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ProfileFile example_profile() {
  ProfileFile profile;
  profile.gpu_type = "cpu";
  profile.model = {.name = "",
                   .family = "gpt",
                   .layers = 0,
                   .hidden = 64,
                   .heads = 4,
                   .feed_forward = 256,
                   .sequence = 128,
                   .vocabulary = 256};
  profile.precision = Precision::fp32;
  profile.measured.at = "2026-11-21T22:43:00Z";
  profile.measured.device = "a chip";
  profile.measured.ranks = 2;
  profile.overhead_samples = {1, 15, 12};
  profile.overheads = {1 << 20, 0.001, 2e-9};
  double unit = 0.001;
  for (int microbatch : {1, 2}) {
    for (int tp : {1, 2}) {
      double scale = unit * microbatch / tp;
      profile.times.push_back({microbatch, {tp}, LayerKind::embedding, {scale, 2 * scale, unit}, 3});
      profile.times.push_back({microbatch, {tp}, LayerKind::block, {3 * scale, 6 * scale, unit}, 3});
      profile.times.push_back({microbatch, {tp}, LayerKind::head, {2 * scale, 4 * scale, unit}, 3});
    }
  }
  for (int tp : {1, 2}) {
    profile.sizes.push_back({{tp}, LayerKind::embedding, {16384 / tp, 8192, 32768, 0}});
    profile.sizes.push_back({{tp}, LayerKind::block, {50000 / tp, 8192, 400000, 100}});
    profile.sizes.push_back({{tp}, LayerKind::head, {128, 32768, 32768, 262144}});
  }
  return profile;
}

JobSpec profiled_job() {
  JobSpec spec;
  spec.file = "job.yaml";
  spec.model = example_profile().model;
  spec.model.name = "gpt-4x64";
  spec.model.layers = 4;
  return spec;
}

Catalog catalog() {
  return parse_catalog(
      "sailor_catalog: 1\n"
      "gpu_types:\n"
      "  cpu: {memory: 1GiB}\n"
      "  slow: {memory: 1GiB, emulate: {profile: cpu, slowdown: 10}}\n"
      "  other: {memory: 1GiB}\n",
      "catalog.yaml");
}

std::string reference_directory(const std::string& name) {
  return test::scratch_directory(name);
}

TEST(LayerProfile, WritingAndReadingGivesTheSame) {
  std::string json = to_json(example_profile());
  EXPECT_EQ(to_json(parse_profile_file(json, "p")), json);
}

TEST(LayerProfile, OneBlockServesAnyNumberOfBlocks) {
  LayerProfile profile = unroll(example_profile(), 4);
  EXPECT_THAT(profile.microbatches(), ElementsAre(1, 2));
  EXPECT_THAT(profile.shapes(), ElementsAre(ReplicaShape{1}, ReplicaShape{2}));
  ASSERT_NE(profile.find(2, {1}), nullptr);
  ASSERT_EQ(profile.find(2, {1})->size(), 6u);
  EXPECT_DOUBLE_EQ((*profile.find(2, {1}))[0].forward_s, 0.002);
  EXPECT_DOUBLE_EQ((*profile.find(2, {1}))[4].backward_s, 0.012);
  EXPECT_DOUBLE_EQ((*profile.find(2, {1}))[5].forward_s, 0.004);
  EXPECT_EQ(profile.find(4, {1}), nullptr);
  EXPECT_EQ(unroll_sizes(example_profile(), 4).find({2})->at(3).parameters, 25000);
}

TEST(LayerProfile, MatchesEveryNumberOfBlocksButNoOtherShape) {
  JobSpec spec = profiled_job();
  EXPECT_TRUE(matches(example_profile(), spec.model, Precision::fp32));
  EXPECT_FALSE(matches(example_profile(), spec.model, Precision::bf16));
  spec.model.vocabulary = 512;
  EXPECT_FALSE(matches(example_profile(), spec.model, Precision::fp32));

  ProfileFile grouped = example_profile();
  grouped.model.kv_heads = 2;
  grouped.model.tied_embeddings = true;
  const ProfileFile read = parse_profile_file(to_json(grouped), "p");
  EXPECT_TRUE(matches(read, grouped.model, Precision::fp32));
  EXPECT_FALSE(matches(read, profiled_job().model, Precision::fp32)) << "fewer key and value heads";
  grouped.sizes.back().sizes.parameters = 100'000;  // of a head at TP 2
  EXPECT_EQ(unroll_sizes(grouped, 4).find({2})->back().tied_parameters, 128 * 64);
  EXPECT_EQ(unroll_sizes(example_profile(), 4).find({2})->back().tied_parameters, 0);
}

TEST(LayerProfile, HolesAndRepetitionsAreErrors) {
  auto error = [](const ProfileFile& profile) -> std::string {
    try {
      parse_profile_file(to_json(profile), "p");
    } catch (const InputError& e) {
      EXPECT_GE(e.where().line, 1);
      return e.what();
    }
    return "no error";
  };
  ProfileFile profile = example_profile();
  profile.times.pop_back();
  EXPECT_THAT(error(profile), HasSubstr("microbatch 2, tp 2 has no entry for the layer \"head\""));
  profile = example_profile();
  profile.times.push_back(profile.times[0]);
  EXPECT_THAT(error(profile), HasSubstr("times[12]: this (microbatch, tp, layer) is listed twice"));
  profile = example_profile();
  profile.sizes.pop_back();
  EXPECT_THAT(error(profile), HasSubstr("sizes: tp 2 has no entry for the layer \"head\""));
  profile = example_profile();
  profile.times[1].times.forward_s = 0;
  EXPECT_THAT(error(profile), HasSubstr("times[1].forward_s: must be a number above 0"));
  profile = example_profile();
  profile.sizes[0].sizes.parameters = -1;
  EXPECT_THAT(error(profile), HasSubstr("sizes[0].parameters: must be an integer of at least 0"));
}

TEST(LinkCurve, PointsAreJoinedAndExtendedByLatencyAndBandwidth) {
  LinkCurve curve = LinkCurve::from_points({{1000, 1e-5}, {11000, 2e-5}, {21000, 4e-5}});
  EXPECT_EQ(curve.time_s(0), 0);
  EXPECT_DOUBLE_EQ(curve.time_s(10), 1e-5);
  EXPECT_DOUBLE_EQ(curve.time_s(6000), 1.5e-5);
  EXPECT_DOUBLE_EQ(curve.time_s(31000), 6e-5);
}

TEST(LinkCurve, FitIsThePublishedFormulaAndNeverNegative) {
  LinkCurve curve = LinkCurve::from_fit({-0.002, 0.14, 1.1});
  double bytes = 64e6;
  double m = std::log2(64.0);
  EXPECT_DOUBLE_EQ(curve.time_s(bytes), bytes / 1e9 / (-0.002 * m * m + 0.14 * m + 1.1));
  for (double size = 1; size < 1e9; size *= 2) EXPECT_GT(curve.time_s(size), 0) << size;
}

TEST(LinkCurve, RatesKnowHowTheGpusOfANodeShareItsNetworkCards) {
  const LinkCurve curve = LinkCurve::from_rates(1e-5, 10e9, 40e9);
  EXPECT_DOUBLE_EQ(curve.time_s(1e6), 1e-5 + 1e-4);
  EXPECT_DOUBLE_EQ(curve.time_s(1e6, 4), 1e-5 + 1e-4);
  EXPECT_DOUBLE_EQ(curve.time_s(1e6, 8), 1e-5 + 2e-4);
  EXPECT_DOUBLE_EQ(curve.latency_s(), 1e-5);
  EXPECT_EQ(curve.time_s(0, 8), 0);
  EXPECT_DOUBLE_EQ(curve.published_time_s(1e6), curve.time_s(1e6));
  // Without a limit of the node every GPU has its own card.
  EXPECT_DOUBLE_EQ(LinkCurve::from_rates(0, 10e9, 0).time_s(1e6, 1000), 1e-4);
  EXPECT_THROW(LinkCurve::from_rates(-1, 1, 1), std::invalid_argument);
  EXPECT_THROW(LinkCurve::from_rates(0, 0, 1), std::invalid_argument);
  EXPECT_THROW(LinkCurve::from_rates(0, 1, -1), std::invalid_argument);
}

TEST(LinkCurve, AFitOfSeveralGpusIsTheirRateTogether) {
  // 2 GB/s over four GPUs: 1 GB of one of them takes 2 s; the published formula asks about the whole tensor.
  const LinkCurve curve = LinkCurve::from_fit({0, 0, 2}, 4);
  EXPECT_DOUBLE_EQ(curve.time_s(1e9), 2);
  EXPECT_DOUBLE_EQ(curve.published_time_s(1e9), 0.5);
  EXPECT_EQ(curve.latency_s(), 0);
}

TEST(NetworkProfile, ALinkHasPointsOrRatesOrBoth) {
  const auto network = [](const std::string& link) {
    return parse_network_profile("{\"sailor_network_profile\": 1, \"links\": [{" + link + "}]}", "n.json");
  };
  const auto error = [&](const std::string& link) -> std::string {
    try {
      network(link);
    } catch (const InputError& e) {
      return e.what();
    }
    return "no error";
  };
  const LinkEnd any{"X", "z", 1};
  EXPECT_DOUBLE_EQ(network(R"("latency_s": 1e-5, "bytes_per_s": 1e9, "node_bytes_per_s": 2e9)")
                       .find(any, any, false)
                       ->time_s(1e6, 4),
                   1e-5 + 2e-3);
  EXPECT_DOUBLE_EQ(network(R"("bytes_per_s": 1e9)").find(any, any, false)->time_s(1e6, 4), 1e-3);
  EXPECT_THAT(error(R"("latency_s": 1e-5)"), HasSubstr("need \"bytes_per_s\" or \"points\""));
  EXPECT_THAT(error(R"("latency_s": 2, "points": [[1, 1]])"),
              HasSubstr("not be above the time of the first"));
  const NetworkProfile both = network(
      R"("latency_s": 1e-5, "bytes_per_s": 1e9, "node_bytes_per_s": 2e9, "points": [[1e3, 2e-5], [1e6, 2e-3]])");
  const LinkCurve& curve = *both.find(any, any, false);
  EXPECT_EQ(curve.latency_s(), 1e-5);
  EXPECT_DOUBLE_EQ(curve.time_s(10), 2e-5) << "below the first point";
  EXPECT_DOUBLE_EQ(curve.time_s(1e6), 2e-3);
  EXPECT_DOUBLE_EQ(curve.time_s(2e6), 3e-3) << "above the last point at the rate that stands beside";
  EXPECT_DOUBLE_EQ(curve.time_s(1e6, 2), 2e-3) << "the node has room for both";
  EXPECT_DOUBLE_EQ(curve.time_s(1e6, 8), 1e-5 + 4e-3);
  EXPECT_TRUE(curve.knows_cards());
  EXPECT_THAT(error(R"("bytes_per_s": 0)"), HasSubstr("must be a number from 1"));
  EXPECT_THAT(error(R"("points": [[1024, 1e308]])"), HasSubstr("must be a number from 0 to 1000000"));
  EXPECT_THAT(error(R"("points": [[1024, 0]])"), HasSubstr("must be a number above 0"));
  EXPECT_THAT(error(R"("scope": "any")"), HasSubstr("missing key \"points\""));
}

ProfileFile windowed_profile() {
  ProfileFile profile = example_profile();
  profile.model.attention_window = 16;
  const auto as_local = [](auto& cells, const auto& halved) {
    auto local = cells;
    std::erase_if(local, [](const auto& cell) { return cell.kind != LayerKind::block; });
    for (auto& cell : local) {
      cell.kind = LayerKind::local_block;
      halved(cell);
      cells.push_back(cell);
    }
  };
  as_local(profile.times, [](ProfileFile::TimeCell& cell) { cell.times.forward_s /= 2; });
  as_local(profile.sizes, [](ProfileFile::SizeCell& cell) { cell.sizes.workspace_bytes += 7; });
  return profile;
}

TEST(LayerProfile, EveryKindOfBlockHasItsOwnTimesAndSizes) {
  const ProfileFile file = parse_profile_file(to_json(windowed_profile()), "p");
  const LayerProfile::Cell cell = *unroll(file, 5).find(1, {1});
  const std::vector<LayerSizes> sizes = *unroll_sizes(file, 5).find({1});
  for (size_t layer = 1; layer <= 5; ++layer) {
    EXPECT_DOUBLE_EQ(cell[layer].forward_s, layer % 2 == 0 ? 0.0015 : 0.003) << layer;
    EXPECT_EQ(sizes[layer].workspace_bytes, layer % 2 == 0 ? 107 : 100) << layer;
  }
}

TEST(LayerProfile, OlderFilesHaveOneTimeForAllBlocks) {
  ProfileFile old = example_profile();
  old.model.attention_window = 16;
  const LayerProfile::Cell cell = *unroll(parse_profile_file(to_json(old), "p"), 4).find(1, {1});
  EXPECT_EQ(cell[1].forward_s, cell[2].forward_s);
}

TEST(LayerProfile, LocalBlocksAreInAllCellsOrInNone) {
  const auto error = [](const ProfileFile& file) -> std::string {
    try {
      parse_profile_file(to_json(file), "p");
    } catch (const InputError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error(windowed_profile()), "no error");
  ProfileFile file = windowed_profile();
  file.times.pop_back();
  EXPECT_THAT(error(file), HasSubstr("microbatch 2, tp 2 has no entry for the layer \"local_block\""));
  file = windowed_profile();
  file.sizes.pop_back();
  EXPECT_THAT(error(file), HasSubstr("tp 2 has no entry for the layer \"local_block\""));
  file = windowed_profile();
  file.model.attention_window = 0;
  EXPECT_THAT(error(file), HasSubstr("local blocks of a model without attention_window"));
}

TEST(LayerProfile, RecomputationKeepsTheLeastThatIsKnown) {
  LayerSizes sizes;
  sizes.activation_bytes = 100;
  EXPECT_EQ(sizes.kept_bytes(Recompute::full), 100);
  EXPECT_EQ(sizes.kept_bytes(Recompute::selective), 100);
  sizes.selective_bytes = 60;
  sizes.checkpoint_bytes = 5;
  EXPECT_EQ(sizes.kept_bytes(Recompute::none), 100);
  EXPECT_EQ(sizes.kept_bytes(Recompute::selective), 60);
  EXPECT_EQ(sizes.kept_bytes(Recompute::full), 5);
}

TEST(NetworkProfile, TheMostSpecificLinkWinsInBothDirections) {
  NetworkProfile network = parse_network_profile(R"({"sailor_network_profile": 1, "links": [
    {"points": [[1, 1.0]]},
    {"scope": "intra_node", "points": [[1, 2.0]]},
    {"from": {"gpu_type": "A"}, "to": {"gpu_type": "B"}, "points": [[1, 3.0]]},
    {"from": {"gpu_type": "A", "zone": "z1"}, "to": {"gpu_type": "B"}, "points": [[1, 4.0]]},
    {"from": {"gpu_type": "B"}, "to": {"gpu_type": "A", "zone": "z1"}, "points": [[1, 5.0]]}]})",
                                                 "n");
  auto time = [&](const char* from, const char* from_zone, const char* to, const char* to_zone,
                  bool same_node = false) {
    const LinkCurve* curve = network.find({from, from_zone, 1}, {to, to_zone, 1}, same_node);
    return curve == nullptr ? -1 : curve->time_s(1);
  };
  EXPECT_EQ(time("X", "z", "Y", "z"), 1);
  EXPECT_EQ(time("X", "z", "Y", "z", true), 2);
  EXPECT_EQ(time("A", "z2", "B", "z1"), 3);
  EXPECT_EQ(time("B", "z1", "A", "z2"), 3);
  EXPECT_EQ(time("A", "z1", "B", "z2"), 4);
  EXPECT_EQ(time("B", "z2", "A", "z1"), 5);
}

TEST(NetworkProfile, AnUnknownPairIsNotFree) {
  NetworkProfile network = parse_network_profile(
      R"({"sailor_network_profile": 1, "links": [{"from": {"zone": "z1"}, "to": {"zone": "z2"}, "points": [[1, 1]]}]})",
      "n");
  EXPECT_EQ(network.find({"A", "z1", 1}, {"A", "z1", 1}, false), nullptr);
  EXPECT_NE(network.find({"A", "z2", 4}, {"B", "z1", 2}, false), nullptr);
}

TEST(NetworkProfile, WhatIsAssumedIsTheLastResortWithinAZone) {
  NetworkProfile network = parse_network_profile(
      R"({"sailor_network_profile": 1, "links": [{"from": {}, "to": {}, "scope": "inter_node", "bytes_per_s": 1e9}]})",
      "n");
  NetworkProfile assumed;
  for (const auto scope : {NetworkProfile::Scope::intra_node, NetworkProfile::Scope::inter_node})
    assumed.add({{"a", "", 0}, {"a", "", 0}, scope, LinkCurve::from_rates(0, 5e9, 0)});
  network.assume(std::move(assumed));
  const LinkEnd a{"a", "z", 1}, elsewhere{"a", "y", 1}, b{"b", "z", 1};
  EXPECT_DOUBLE_EQ(network.find(a, a, false)->time_s(1e9), 1)
      << "what was measured stands, however unspecific";
  EXPECT_FALSE(network.is_assumed(a, a, false));
  EXPECT_DOUBLE_EQ(network.find(a, a, true)->time_s(1e9), 0.2);
  EXPECT_TRUE(network.is_assumed(a, a, true));
  EXPECT_EQ(network.find(b, b, true), nullptr);
  EXPECT_FALSE(network.is_assumed(b, b, true));
  EXPECT_EQ(network.find(a, elsewhere, true), nullptr) << "between zones nothing is assumed";
}

TEST(NetworkProfile, BetweenZonesTheRegionsDecideWhatIsAssumed) {
  NetworkProfile network = parse_network_profile(
      R"({"sailor_network_profile": 1, "links": [{"from": {"zone": "z1"}, "to": {"zone": "z3"}, "bytes_per_s": 5e8}]})",
      "n");
  const auto one_rate = [](double bytes_per_s) {
    NetworkProfile profile;
    profile.add({{"", "", 0},
                 {"", "", 0},
                 NetworkProfile::Scope::inter_node,
                 LinkCurve::from_rates(0, bytes_per_s, 0)});
    return profile;
  };
  network.assume(one_rate(4e9), NetworkProfile::Reach::zone);
  network.assume(one_rate(2e9), NetworkProfile::Reach::region);
  network.assume(one_rate(1e9), NetworkProfile::Reach::world);
  for (const char* zone : {"z1", "z2"}) network.set_region(zone, "r1");
  for (const char* zone : {"z3", "z4"}) network.set_region(zone, "r2");
  const auto seconds = [&](const char* from, const char* to) {
    return network.find({"a", from, 1}, {"b", to, 1}, false)->time_s(4e9);
  };
  EXPECT_DOUBLE_EQ(seconds("z1", "z1"), 1);
  EXPECT_DOUBLE_EQ(seconds("z1", "z2"), 2);
  EXPECT_DOUBLE_EQ(seconds("z2", "z3"), 4);
  EXPECT_DOUBLE_EQ(seconds("z5", "z6"), 4) << "a zone that nobody knows is in a region of its own";
  EXPECT_DOUBLE_EQ(seconds("z3", "z1"), 8) << "what was measured stands";
  EXPECT_FALSE(network.is_assumed({"a", "z1", 1}, {"b", "z3", 1}, false));
  EXPECT_TRUE(network.is_assumed({"a", "z1", 1}, {"b", "z4", 1}, false));
}

TEST(ProfileSet, EstimatesHaveTheTpDegreesThatLinksAllow) {
  const std::string types =
      "sailor_catalog: 1\ngpu_types:\n  chip: {memory: 80GiB, peak_flops: {fp32: 1e14}, memory_bandwidth: "
      "1TB/s, "
      "compute_units: 100}\n";
  JobSpec spec = profiled_job();
  spec.model.family = "gpt2";
  const auto tps_of = [](const LayerProfile& profile) {
    std::vector<int> tps;
    for (const ReplicaShape& shape : profile.shapes()) tps.push_back(shape.tp);
    return tps;
  };
  const auto tps = [&](const std::string& links) {
    return tps_of(load_profiles({}, spec, parse_catalog(types + links, "c")).layers.at("chip"));
  };
  EXPECT_THAT(tps(""), ElementsAre(1)) << "nothing is known of any link";
  EXPECT_THAT(tps("links: [{scope: inter_node, rate: 10GB/s}]\n"), ElementsAre(1)) << "TP stays in a node";
  EXPECT_THAT(tps("links: [{scope: intra_node, rate: 10GB/s}]\n"), ElementsAre(1, 2, 4));

  const std::string directory = test::scratch_directory("measured_links");
  write_file_atomically(
      directory + "/network.json",
      R"({"sailor_network_profile": 1, "links": [{"from": {}, "to": {}, "bytes_per_s": 1e9}]})");
  EXPECT_THAT(tps_of(load_profiles({directory}, spec, parse_catalog(types, "c")).layers.at("chip")),
              ElementsAre(1, 2, 4))
      << "measured";
}

// The rate of TCP must not take the place of what the catalog says of NVLink.
TEST(ProfileSet, GpusAreNotPlannedWithLinksMeasuredOverSockets) {
  const std::string directory = test::scratch_directory("socket_links");
  const Catalog types = parse_catalog(
      "sailor_catalog: 1\n"
      "gpu_types: {G: {memory: 80GiB, peak_flops: {fp32: 1e13}, memory_bandwidth: 1e12,\n"
      "                compute_units: 100, base_memory: 1GiB, node: {link: 212GB/s}}}\n",
      "catalog.yaml");
  const auto rate = [&](Ranks ranks) {
    JobSpec spec = profiled_job();
    spec.model.family = "gpt2";
    const ProfileSet set = load_profiles({directory}, spec, types, own_framework(ranks));
    const LinkCurve* link = set.network.find({"G", "z", 1}, {"G", "z", 1}, true);
    return std::tuple(1e12 / link->time_s(1e12), set.network.is_assumed({"G", "z", 1}, {"G", "z", 1}, true),
                      set.measured_otherwise);
  };
  const auto links = [&](const std::string& list) {
    write_file_atomically(directory + "/network.json",
                          "{\"sailor_network_profile\": 1, \"links\": [" + list + "]}");
  };
  const std::string sockets = R"({"transport": "sockets", "bytes_per_s": 1e9})";
  links(sockets);
  const auto [assumed_rate, assumed, otherwise] = rate(Ranks::gpus);
  EXPECT_NEAR(assumed_rate, 212e9, 1e9);
  EXPECT_TRUE(assumed && otherwise);
  EXPECT_EQ(rate(Ranks::processors), std::tuple(1e9, false, false));
  links(sockets + R"(, {"transport": "nccl", "bytes_per_s": 150e9})");
  EXPECT_EQ(rate(Ranks::gpus), std::tuple(150e9, false, true));
  EXPECT_EQ(rate(Ranks::processors), std::tuple(1e9, false, true));
  links(R"({"bytes_per_s": 3e9})");  // as files were before
  EXPECT_EQ(rate(Ranks::gpus), std::tuple(3e9, false, false));
  EXPECT_EQ(rate(Ranks::processors), std::tuple(3e9, false, false));
}

TEST(ProfileSet, EmulatedTypesAreTheirBaseStretched) {
  std::string path = reference_directory("emulated");
  save_profile_file(example_profile(), path + "/cpu.json");
  ProfileSet set = load_profiles({path}, profiled_job(), catalog());
  EXPECT_DOUBLE_EQ((*set.layers.at("slow").find(1, {1}))[1].forward_s, 0.03);
  EXPECT_DOUBLE_EQ((*set.layers.at("cpu").find(1, {1}))[1].forward_s, 0.003);
  EXPECT_EQ(set.layers.at("slow").overheads.base_memory_bytes, 1 << 20);
  EXPECT_FALSE(set.layers.contains("other"));
  EXPECT_THAT(set.notes, ElementsAre(HasSubstr("type other: no profile of gpt-4x64")));
  EXPECT_NE(set.sizes.find({2}), nullptr);
}

TEST(ProfileSet, NoProfileAtAllSaysHowToMakeOne) {
  try {
    load_profiles({reference_directory("none")}, profiled_job(), catalog());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no profile of family \"gpt\""));
    EXPECT_THAT(error.what(), HasSubstr("known families are gpt2, opt"));
  }
  try {
    JobSpec known = profiled_job();
    known.model.family = "gpt2";
    load_profiles({reference_directory("none")}, known, catalog());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("make one with `sailor profile job.yaml`"));
  }
}

TEST(ProfileSet, BrokenAndForeignFilesAreErrorsOfTheirOwn) {
  std::string path = reference_directory("broken");
  save_profile_file(example_profile(), path + "/a.json");
  write_file_atomically(path + "/b.json", "{\"sailor_layer_profile\": 1,\n\"gpu_type\"");
  EXPECT_THROW(load_profiles({path}, profiled_job(), catalog()), InputError);
  write_file_atomically(path + "/b.json", "{\"x\": 1}");
  EXPECT_THROW(load_profiles({path}, profiled_job(), catalog()), InputError);
  EXPECT_THROW(load_profiles({path + "/nowhere"}, profiled_job(), catalog()), InputError);
}

// What somebody else left in a shared directory stops nobody's planning.
TEST(ProfileSet, BrokenFilesOfOthersAreLeftOutWithANote) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to other users";
  const std::string path = reference_directory("others");
  save_profile_file(example_profile(), path + "/a.json");
  const ProfileSet before = load_profiles({path}, profiled_job(), catalog());
  EXPECT_THAT(before.not_used, IsEmpty());

  const std::string broken = path + "/b.json", writable = path + "/c.json", pipe = path + "/d.json";
  write_file_atomically(broken, "{\"sailor_layer_profile\": 1,\n\"gpu_type\"");
  save_profile_file(example_profile(), writable);
  std::filesystem::permissions(writable, std::filesystem::perms(0666));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0644), 0);  // whoever opens it hangs
  for (const std::string& file : {broken, writable, pipe}) ASSERT_EQ(chown(file.c_str(), 1234, 1234), 0);
  const ProfileSet after = load_profiles({path}, profiled_job(), catalog());
  EXPECT_EQ(after.files, before.files);
  EXPECT_THAT(after.not_used, ElementsAre(AllOf(HasSubstr("of user 1234"), HasSubstr(broken + ":2")),
                                          AllOf(HasSubstr(writable), HasSubstr("every user can change")),
                                          AllOf(HasSubstr(pipe), HasSubstr("not a regular file"))));

  // Those of this user are errors.
  std::filesystem::remove(pipe);
  ASSERT_EQ(chown(broken.c_str(), 0, 0), 0);
  EXPECT_THROW(load_profiles({path}, profiled_job(), catalog()), InputError);
}

// A small pack in the reference formats, with the defects that its README lists.
class ReferencePack : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = reference_directory("reference");
    for (const char* sub : {"profiles/M/good", "profiles/M/wrong", "network"}) {
      std::filesystem::create_directories(root_ + "/" + sub);
    }
    write_file_atomically(root_ + "/profiles/M/good/profile.json", cell(3, 0.5));
    write_file_atomically(root_ + "/profiles/M/wrong/profile.json", cell(4, 0.5));
    write_file_atomically(root_ + "/profiles/profiles_tmp.json",
                          "{\"M\": {\"good\": " + cell(3, 0.25) + ", \"wrong\": " + cell(3, 0.125) + "}}");
    std::string sizes;
    for (int layer = 0; layer < 3; ++layer) {
      sizes +=
          (layer > 0 ? "," : "") + ("\"" + std::to_string(layer)) +
          "\": {\"params_floats\": 10, \"act_output_floats\": 5, \"act_mem_floats\": 7, \"params_bytes\": 0}";
    }
    write_file_atomically(root_ + "/profiles/llm_info.json", "{\"M\": {\"1\": {" + sizes + "}}}");
    write_file_atomically(root_ + "/network/multizone_bandwidths_het.json",
                          R"({"z1": {"good": {"2": {"z2": {"wrong": {"1": [[0.0, 0.0, 2.0], 9.0]}}}}}})");
  }

  static std::string cell(int layers, double forward) {
    std::string text;
    for (int layer = 0; layer < layers; ++layer) {
      text += (layer > 0 ? ", \"" : "\"") + std::to_string(layer) + "\": [" + std::to_string(forward) +
              ", 1.0, 0.0]";
    }
    return "{\"2\": {\"1\": {" + text + "}, \"4\": {}}}";
  }

  std::string root_;
};

TEST_F(ReferencePack, AWrongCopyIsReplacedByTheOtherFileWithANote) {
  ProfileSet set =
      load_reference_profiles(root_, "M", {"good", "wrong", "absent"}, ReferenceTimes::planner_copy);
  EXPECT_DOUBLE_EQ((*set.layers.at("good").find(2, {1}))[0].forward_s, 0.5);
  EXPECT_EQ(set.layers.at("good").find(2, {4}), nullptr);
  EXPECT_DOUBLE_EQ((*set.layers.at("wrong").find(2, {1}))[0].forward_s, 0.125);
  EXPECT_THAT(set.notes,
              ElementsAre(HasSubstr("type wrong: profile.json of M is missing or is another model's"),
                          HasSubstr("type absent: no profile of M")));
  EXPECT_EQ(set.sizes.find({1})->at(2).activation_bytes, 28);
  EXPECT_EQ(set.sizes.find({1})->at(2).parameters, 10);
  EXPECT_DOUBLE_EQ(set.network.find({"good", "z1", 2}, {"wrong", "z2", 1}, false)->published_time_s(4e9), 2);
  EXPECT_EQ(set.network.find({"good", "z1", 1}, {"wrong", "z2", 1}, false), nullptr);
}

TEST_F(ReferencePack, TheSimulatorsCopyIsAnotherFile) {
  ProfileSet set = load_reference_profiles(root_, "M", {"good"}, ReferenceTimes::simulator_copy);
  EXPECT_DOUBLE_EQ((*set.layers.at("good").find(2, {1}))[0].forward_s, 0.25);
  EXPECT_THAT(set.notes, IsEmpty());
}

}  // namespace
}  // namespace sailor
