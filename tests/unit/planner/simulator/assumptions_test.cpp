#include "planner/simulator/assumptions.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "planner/profile/kernels.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kShipped = SAILOR_SOURCE_DIR "/etc";

const Assumptions& shipped() {
  static const Assumptions assumptions = load_assumptions(kShipped);
  return assumptions;
}

TEST(Assumptions, WhatIsShippedIsReadAndConsistent) {
  EXPECT_GE(shipped().catalog.gpu_types.size(), 10u);
  EXPECT_GE(shipped().platforms.size(), 9u);
  EXPECT_GE(shipped().frameworks.size(), 8u);
  for (const auto& [name, platform] : shipped().platforms) {
    EXPECT_EQ(platform.name, name);
    EXPECT_EQ(fs::path(platform.file).stem().string(), name);
    EXPECT_FALSE(platform.links.empty()) << name;
    for (const PlatformLink& link : platform.links)
      for (const std::string& type : {link.from.gpu_type, link.to.gpu_type}) {
        if (type.empty()) continue;
        EXPECT_NO_THROW(shipped().catalog.at(type)) << name << " " << link.name;
      }
  }
  for (const auto& [name, type] : shipped().catalog.gpu_types)
    for (Precision precision : {Precision::fp16, Precision::fp32})
      EXPECT_EQ(has_kernel_model(type, precision), !type.on_processors) << name;
}

TEST(Assumptions, EveryShippedCalibrationNamesItsRowsAndApplies) {
  for (const auto& entry : fs::directory_iterator(std::string(kShipped) + "/calibration")) {
    if (entry.path().extension() != ".json") continue;
    const Calibration calibration = load_calibration(entry.path().string());
    EXPECT_EQ(calibration.set, entry.path().stem().string());
    EXPECT_FALSE(calibration.rows.empty()) << entry.path();
    EXPECT_FALSE(calibration.constants.empty()) << entry.path();
    Assumptions copy = shipped();
    EXPECT_NO_THROW(apply(calibration, copy)) << entry.path();
  }
}

TEST(Assumptions, UnknownNamesListTheKnownOnes) {
  const std::string framework = test::error_of([] { shipped().framework("sailer"); });
  EXPECT_THAT(framework, HasSubstr("unknown framework \"sailer\", did you mean \"sailor\"? (known: "));
  EXPECT_THAT(framework, HasSubstr("nanotron"));
  EXPECT_THAT(test::error_of([] { shipped().platform("nowhere"); }),
              HasSubstr("unknown platform \"nowhere\""));
}

// A directory of assumptions of its own.
std::string calibration_directory() {
  const std::string path = test::scratch_directory("assumptions");
  fs::create_directories(path + "/platforms");
  fs::create_directories(path + "/frameworks");
  write_file_atomically(path + "/catalog.yaml",
                        "sailor_catalog: 1\ngpu_types:\n  one.2: {memory: 1GiB, efficiency: {gemm: 0.5}}\n");
  write_file_atomically(path + "/platforms/p.yaml",
                        "sailor_platform: 1\nname: p.1\ngpus_per_node: 2\nlinks:\n"
                        "  - {name: l, scope: any, latency_s: 1e-5, bytes_per_s: 1e9}\n");
  write_file_atomically(path + "/frameworks/f.yaml", "sailor_framework: 1\nname: f\n");
  return path;
}

TEST(Assumptions, NumbersAreSetByTheirPathEvenWhereNamesHoldDots) {
  Assumptions a = load_assumptions(calibration_directory());
  set_constant(a, "gpu_types.one.2.efficiency.gemm", 0.25);
  set_constant(a, "gpu_types.one.2.efficiency.gemm_half_depth", 11);
  set_constant(a, "platforms.p.1.host_block_s", 1e-3);
  set_constant(a, "platforms.p.1.links.l.bytes_per_s", 2e9);
  set_constant(a, "frameworks.f.overlap", 0.75);
  set_constant(a, "frameworks.f.optimizer_traffic_bytes", 31.4159265358979);
  EXPECT_EQ(a.catalog.at("one.2").efficiency.gemm, 0.25);
  EXPECT_EQ(a.catalog.at("one.2").efficiency.gemm_half_depth, 11);
  EXPECT_EQ(a.platform("p.1").host.block_s, 1e-3);
  EXPECT_EQ(a.platform("p.1").links[0].bytes_per_s, 2e9);
  EXPECT_EQ(a.framework("f").overlap, 0.75);
  EXPECT_EQ(a.framework("f").optimizer_traffic_bytes, 31.4159265358979);
}

TEST(Assumptions, UnknownPathsAreErrors) {
  Assumptions a = load_assumptions(calibration_directory());
  for (const char* path :
       {"gpu_types.two.efficiency.gemm", "gpu_types.one.2.efficiency.colour", "gpu_types.one.2.memory",
        "platforms.p.1.links.x.bytes_per_s", "platforms.q.host_block_s", "weather", ""})
    EXPECT_THAT(test::error_of([&] { set_constant(a, path, 1); }), HasSubstr("to calibrate")) << path;
  EXPECT_THAT(test::error_of([&] { set_constant(a, "frameworks.f.overlaps", 1); }),
              HasSubstr("unknown key \"overlaps\", did you mean \"overlap\"?"));
  Calibration calibration;
  calibration.file = "/d/c.json";
  calibration.constants["gpu_types.two.efficiency.gemm"] = 1;
  EXPECT_THAT(test::error_of([&] { apply(calibration, a); }),
              AllOf(StartsWith("/d/c.json: "), HasSubstr("gpu_types.two.efficiency.gemm")));
}

TEST(Assumptions, ADirectoryThatIsNotOneIsAnError) {
  EXPECT_THAT(test::error_of([] { load_assumptions("/nowhere"); }), HasSubstr("/nowhere/catalog.yaml"));
  const std::string path = calibration_directory();
  fs::remove_all(path + "/platforms");
  EXPECT_THAT(test::error_of([&] { load_assumptions(path); }), HasSubstr("cannot list this directory"));
}

TEST(Calibration, WritingAndReadingGivesTheSame) {
  Calibration calibration;
  calibration.constants = {{"platforms.p.host_block_s", 0.00109437},
                           {"gpu_types.a.efficiency.gemm", 1.0 / 3}};
  calibration.set = "some";
  calibration.data = "rows.csv";
  calibration.rule = "every 11th run";
  calibration.rows = {"12", "23"};
  calibration.mean_error_pct = 4.5;
  const Calibration read = parse_calibration(to_json(calibration), "/d/c.json");
  EXPECT_EQ(read.constants, calibration.constants);
  EXPECT_EQ(read.set, calibration.set);
  EXPECT_EQ(read.data, calibration.data);
  EXPECT_EQ(read.rule, calibration.rule);
  EXPECT_EQ(read.rows, calibration.rows);
  EXPECT_EQ(read.mean_error_pct, calibration.mean_error_pct);
  EXPECT_EQ(read.file, "/d/c.json");
}

TEST(Calibration, BrokenFilesAreErrorsWithFileAndLine) {
  const auto error = [](const std::string& json) {
    return test::error_of([&] { parse_calibration(json, "/d/c.json"); });
  };
  EXPECT_THAT(error("{\"sailor_calibration\": 1}"), HasSubstr("/d/c.json:1: missing key \"constants\""));
  EXPECT_THAT(error("{\"sailor_calibration\": 1, \"constants\": {\n\"a.b\": -1}}"),
              HasSubstr("/d/c.json:2: constants.a.b: must be a number of at least 0"));
  EXPECT_THAT(error("{\"sailor_calibration\": 1, \"constants\": {}}"),
              HasSubstr("missing key \"provenance\""));
  EXPECT_THAT(error("{\"sailor_calibration\": 2}"), HasSubstr("version 2 is not supported"));
  EXPECT_THAT(error("{\"sailor_calibration\": 1, \"constant\": {}}"), HasSubstr("unknown key \"constant\""));
}

}  // namespace
}  // namespace sailor
