#include "planner/simulator/calibrate.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "planner/simulator/run_prediction.h"

namespace sailor {
namespace {

using ::testing::Contains;
using ::testing::Not;

Assumptions made_up_machines() {
  Assumptions a;
  a.catalog = parse_catalog(
      "sailor_catalog: 1\ngpu_types:\n"
      "  A: {memory: 80GiB, peak_flops: {bf16: 300e12}, memory_bandwidth: 2000GB/s, compute_units: 100}\n"
      "  B: {memory: 80GiB, peak_flops: {bf16: 900e12}, memory_bandwidth: 3000GB/s, compute_units: 130}\n",
      "catalog.yaml");
  a.platforms["p"] = parse_platform(
      "sailor_platform: 1\nname: p\ngpus_per_node: 4\nbase_memory_bytes: 1e9\nlinks:\n"
      "  - {name: inside, scope: intra_node, latency_s: 1e-6, bytes_per_s: 200e9}\n"
      "  - {name: network, scope: inter_node, latency_s: 1e-5, bytes_per_s: 10e9}\n",
      "p.yaml");
  a.frameworks["f"] = parse_framework_style("sailor_framework: 1\nname: f\n", "f.yaml");
  return a;
}

// `pipelines` replicas of `stages` stages of the type, `tp` GPUs each; a node has four GPUs.
MeasuredRun run_of(const std::string& type, int hidden, int pipelines, int stages, int tp, int microbatch) {
  MeasuredRun run;
  run.name = run.model = run.plan.model = type + std::to_string(hidden);
  run.framework = "f";
  run.platform = "p";
  run.shape.layers = 8;
  run.shape.hidden = hidden;
  run.shape.heads = run.shape.kv_heads = hidden / 64;
  run.shape.head_width = 64;
  run.shape.feed_forward = 4 * hidden;
  run.shape.sequence = 1024;
  run.shape.vocabulary = 50304;
  run.plan.microbatch = microbatch;
  run.plan.global_batch = 4 * microbatch * pipelines;
  int gpu = 0;
  for (int p = 0; p < pipelines; ++p) {
    PlanPipeline pipeline{4, {}};
    for (int s = 0; s < stages; ++s, gpu += tp) {
      PlanStage stage;
      stage.first_layer = s * 10 / stages;
      stage.end_layer = (s + 1) * 10 / stages;
      stage.gpu_type = type;
      stage.zone = "z";
      stage.shape.tp = tp;
      stage.node = std::to_string(gpu / 4);
      pipeline.stages.push_back(stage);
    }
    run.plan.pipelines.push_back(pipeline);
  }
  return run;
}

Prediction predicted(const MeasuredRun& run, const Assumptions& with) {
  return predict_run(run, with);
}

// As measured on machines with these constants.
std::vector<MeasuredRun> measured(std::vector<MeasuredRun> runs,
                                  const std::map<std::string, double>& constants) {
  Assumptions real = made_up_machines();
  for (const auto& [path, value] : constants) set_constant(real, path, value);
  for (MeasuredRun& run : runs) {
    const Prediction prediction = predicted(run, real);
    run.iteration_s = {prediction.iteration_s};
    run.peak_memory_bytes = {static_cast<double>(prediction.peak_memory_bytes())};
  }
  return runs;
}

std::vector<MeasuredRun> some_runs() {
  return {run_of("A", 1024, 1, 1, 1, 4), run_of("A", 4096, 1, 1, 1, 1), run_of("A", 2048, 2, 1, 2, 2),
          run_of("A", 2048, 2, 2, 4, 2), run_of("B", 4096, 1, 1, 1, 4), run_of("B", 1024, 4, 2, 1, 1),
          run_of("B", 2048, 1, 2, 4, 2)};
}

double worst_error(const std::vector<MeasuredRun>& runs, const std::map<std::string, double>& values) {
  Assumptions with = made_up_machines();
  for (const auto& [path, value] : values) set_constant(with, path, value);
  double worst = 0;
  for (const MeasuredRun& run : runs)
    worst = std::max(worst, std::fabs(predicted(run, with).iteration_s / *run.measured_s() - 1));
  return worst;
}

TEST(Calibrate, FindsTheMachinesThatRunsWereMeasuredOn) {
  const std::map<std::string, double> real = {{"gpu_types.A.efficiency.gemm", 0.5},
                                              {"gpu_types.B.efficiency.gemm", 0.65},
                                              {"frameworks.f.host_block_s", 1.2e-3},
                                              {"frameworks.f.base_memory_bytes", 3e9}};
  const std::vector<MeasuredRun> runs = measured(some_runs(), real);
  const Assumptions a = made_up_machines();
  const auto constants = free_constants(runs, a.framework("f"), a, true);
  const auto values = fit_constants(runs, constants, a, predicted, true);
  EXPECT_GT(worst_error(runs, {}), 0.3);
  EXPECT_LT(worst_error(runs, values), 0.08);
  EXPECT_NEAR(values.at("gpu_types.A.efficiency.gemm"), 0.5, 0.05);
  EXPECT_NEAR(values.at("gpu_types.B.efficiency.gemm"), 0.65, 0.065);
  EXPECT_NEAR(values.at("frameworks.f.base_memory_bytes"), 3e9, 0.3e9);

  // Others of the same machines, which calibrated nothing.
  const std::vector<MeasuredRun> others =
      measured({run_of("A", 3072, 1, 2, 2, 2), run_of("B", 3072, 2, 1, 2, 1)}, real);
  EXPECT_LT(worst_error(others, values), 0.08);
}

TEST(Calibrate, OneDisturbedRunDoesNotDecide) {
  std::vector<MeasuredRun> runs = measured(some_runs(), {{"gpu_types.A.efficiency.gemm", 0.5}});
  runs[1].iteration_s = {3 * *runs[1].measured_s()};
  const Assumptions a = made_up_machines();
  const auto values =
      fit_constants(runs, free_constants(runs, a.framework("f"), a, false), a, predicted, false);
  runs.erase(runs.begin() + 1);
  EXPECT_LT(worst_error(runs, values), 0.15);
}

TEST(Calibrate, WhatRunsSayNothingAboutStaysAsExpected) {
  // Small matrices on one GPU: all of its time is the host's.
  std::vector<MeasuredRun> runs =
      measured({run_of("B", 256, 1, 1, 1, 1)}, {{"frameworks.f.host_block_s", 50e-3}});
  const Assumptions a = made_up_machines();
  const auto constants = free_constants(runs, a.framework("f"), a, false);
  const auto values = fit_constants(runs, constants, a, predicted, false);
  for (const FreeConstant& constant : constants) {
    if (constant.path == "frameworks.f.host_block_s") continue;
    EXPECT_NEAR(values.at(constant.path) / constant.expected, 1, 0.02) << constant.path;
  }
}

TEST(Calibrate, FitsOnlyWhatThePlansHave) {
  const Assumptions a = made_up_machines();
  const auto path = [](const char* text) { return ::testing::Field(&FreeConstant::path, text); };
  const auto single = free_constants({run_of("A", 1024, 1, 1, 1, 1)}, a.framework("f"), a, false);
  EXPECT_THAT(single, Contains(path("gpu_types.A.efficiency.gemm")));
  EXPECT_THAT(single, Not(Contains(path("gpu_types.B.efficiency.gemm"))));
  EXPECT_THAT(single, Not(Contains(path("frameworks.f.host_tp_block_s"))));
  EXPECT_THAT(single, Not(Contains(path("frameworks.f.jitter"))));
  EXPECT_THAT(single, Not(Contains(path("frameworks.f.base_memory_bytes"))));
  const auto several = free_constants({run_of("A", 1024, 2, 1, 4, 1)}, a.framework("f"), a, true);
  EXPECT_THAT(several, Contains(path("frameworks.f.host_tp_block_s")));
  EXPECT_THAT(several, Contains(path("frameworks.f.jitter")));
  EXPECT_THAT(several, Contains(path("frameworks.f.sync_slowdown")));
  EXPECT_THAT(several, Contains(path("frameworks.f.base_memory_bytes")));
}

TEST(Calibrate, FailedRunsAreIgnored) {
  std::vector<MeasuredRun> runs = measured(some_runs(), {{"gpu_types.A.efficiency.gemm", 0.5}});
  const Assumptions a = made_up_machines();
  const auto constants = free_constants(runs, a.framework("f"), a, false);
  const auto values = fit_constants(runs, constants, a, predicted, false);
  MeasuredRun failed = run_of("A", 1024, 1, 1, 1, 4);
  failed.ran = false;
  failed.iteration_s = {1e6};
  runs.push_back(failed);
  EXPECT_EQ(fit_constants(runs, constants, a, predicted, false), values);
}

}  // namespace
}  // namespace sailor
