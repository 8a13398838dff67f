// What the profiler measures, on a model small enough to take no time.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <thread>

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_file.h"
#include "planner/profile/profile_set.h"
#include "planner/spec/error.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text_file.h"
#include "profiler/base_memory.h"
#include "profiler/crowd_bench.h"
#include "profiler/equipment.h"
#include "profiler/layer_bench.h"
#include "profiler/layer_rounds.h"
#include "profiler/link_bench.h"
#include "profiler/memory_meter.h"
#include "profiler/profile_job.h"
#include "profiler/profile_journal.h"
#include "profiler/samples.h"
#include "profiler/stack_bench.h"
#include "profiler/sync_bench.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

JobSpec tiny_job() {
  JobSpec job;
  job.file = "tiny.yaml";
  job.model = {.name = "tiny",
               .family = "gpt2",
               .layers = 2,
               .hidden = 32,
               .heads = 4,
               .feed_forward = 128,
               .sequence = 16,
               .vocabulary = 64};
  job.training.global_batch = 4;
  job.training.steps = 1;
  return job;
}

constexpr MeasuringOptions kQuick{
    .relative_error = 0.5, .min_samples = 5, .max_samples = 20, .max_seconds = 0.05, .warm_up = 1};

constexpr size_t kBlock = 1;  // in StackBench::ByKind

TEST(Samples, TheMedianIgnoresAnInterruptionAndTheErrorShrinksWithSamples) {
  Samples samples;
  EXPECT_EQ(samples.median(), 0);
  for (const double v : {1.0, 1.1, 0.9, 1.0, 50.0}) samples.add(v);
  EXPECT_DOUBLE_EQ(samples.median(), 1.0);
  const double few = samples.relative_error();
  for (int i = 0; i < 200; ++i) samples.add(0.9 + 0.001 * i);
  EXPECT_LT(samples.relative_error(), few);
  EXPECT_LT(samples.relative_error(), 0.05);
}

TEST(Samples, MeasuringEndsByPrecisionBySamplesOrByTime) {
  Samples equal, noisy;
  const MeasuringOptions options{
      .relative_error = 0.03, .min_samples = 7, .max_samples = 20, .max_seconds = 1, .warm_up = 0};
  for (int i = 0; i < 6; ++i) equal.add(1);
  EXPECT_FALSE(enough(equal, 100, options)) << "too few to say anything";
  equal.add(1);
  EXPECT_TRUE(enough(equal, 0, options));
  for (int i = 0; i < 10; ++i) noisy.add(1 + i % 5);
  EXPECT_FALSE(enough(noisy, 0.5, options));
  EXPECT_TRUE(enough(noisy, 1.0, options));
  for (int i = 0; i < 10; ++i) noisy.add(1 + i % 5);
  EXPECT_TRUE(enough(noisy, 0.5, options));
}

TEST(MemoryMeter, CountsLiveAndPeakBytesOfTensors) {
  MemoryMeter meter;
  at::Tensor kept = at::zeros({1 << 18});
  EXPECT_GE(meter.live_bytes(), 1 << 20);
  { const at::Tensor passing = at::zeros({1 << 18}); }
  EXPECT_LT(meter.live_bytes(), 2 << 20);
  EXPECT_GE(meter.peak_bytes(), 2 << 20);
  meter.reset_peak();
  EXPECT_LT(meter.peak_bytes(), 2 << 20);
  kept.reset();
  EXPECT_EQ(meter.live_bytes(), 0);
}

TEST(MemoryMeter, ResidentMemoryGrowsWithWhatIsTouched) {
  const int64_t before = resident_bytes();
  const at::Tensor ballast = at::ones({64 << 20}, at::kByte);
  EXPECT_GE(resident_bytes() - before, int64_t{60} << 20);
}

TEST(BaseMemory, IsThatOfARankWithLibtorch) {
  const int64_t base = measure_base_memory_bytes(tiny_job());
  EXPECT_GT(base, int64_t{10} << 20);
  EXPECT_LT(base, int64_t{1} << 30);
}

TEST(LayerBench, TimesArePositiveAndParametersAreTheShards) {
  const JobSpec job = tiny_job();
  const StackBench::ByKind measured = StackBench(job, 1).measure(2, kQuick);
  ASSERT_EQ(measured.size(), layer_kinds(job.model).size());
  for (size_t k = 0; k < measured.size(); ++k) {
    const LayerKind kind = layer_kinds(job.model)[k];
    LayerBench whole(job, kind, 1), half(job, kind, 2);
    const LayerMeasurement& m = measured[k];
    EXPECT_GT(m.times.forward_s, 0);
    EXPECT_GT(m.times.backward_s, 0);
    EXPECT_GT(m.times.update_s, 0);
    EXPECT_GE(m.samples, 5);
    EXPECT_TRUE(m.forward_bytes.empty()) << "one GPU has nobody to talk to";
    const LayerSizes one = whole.sizes(2), two = half.sizes(2);
    EXPECT_LT(two.parameters, one.parameters);
    EXPECT_GT(two.parameters, one.parameters / 2 - 1);
    EXPECT_EQ(one.output_elements, two.output_elements);
    EXPECT_GT(one.activation_bytes, 0);
    if (kind == LayerKind::embedding || kind == LayerKind::head) {
      EXPECT_EQ(m.times.light_s + m.times.mlp_s + m.times.weight_s, 0);
      EXPECT_EQ(one.light_bytes + one.mlp_bytes + one.pending_bytes, 0);
      continue;
    }
    EXPECT_GT(m.times.light_s, 0);
    EXPECT_GT(m.times.mlp_s, 0);
    EXPECT_LT(m.times.mlp_s, m.times.forward_s + m.times.backward_s);
    EXPECT_GT(m.times.weight_s, 0);
    EXPECT_LE(m.times.weight_s, m.times.backward_s);
    // Of a token of one rank: the results of two norms, of the activation function, and of the product
    // before it, in fp32.
    for (const auto& [sizes, tp] : {std::pair(one, 1), std::pair(two, 2)}) {
      const int64_t tokens = job.model.sequence, inner = job.model.feed_forward / tp;
      EXPECT_EQ(sizes.activation_bytes - sizes.light_bytes, tokens * 4 * (2 * job.model.hidden + inner));
      EXPECT_EQ(sizes.light_bytes - sizes.mlp_bytes, tokens * 4 * inner);
      // The inputs of four products, and the gradients of their results.
      const int64_t hidden = job.model.hidden, part = hidden / tp;
      EXPECT_EQ(sizes.pending_bytes,
                tokens * 4 * ((hidden + 3 * part) + (part + hidden) + (hidden + inner) + (inner + hidden)));
    }
  }
}

TEST(LayerBench, ABlockHoldsThePublishedNumberOfParameters) {
  const int64_t d = 32, f = 128;
  LayerBench block(tiny_job(), LayerKind::block, 1);
  EXPECT_EQ(block.sizes(1).parameters, 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d);
}

TEST(LayerBench, ABlockPassesItsActivationsTwiceEachWay) {
  const JobSpec job = tiny_job();
  const LayerMeasurement m = StackBench(job, 2).measure(3, kQuick)[kBlock];
  const int64_t bytes = 3 * job.model.sequence * job.model.hidden * 4;
  EXPECT_THAT(m.forward_bytes, testing::ElementsAre(bytes, bytes));
  EXPECT_THAT(m.backward_bytes, testing::ElementsAre(bytes, bytes));
}

TEST(LayerBench, ActivationsGrowWithTheMicrobatchNotPerSequence) {
  LayerBench block(tiny_job(), LayerKind::block, 1);
  const auto one = static_cast<double>(block.sizes(1).activation_bytes);
  EXPECT_NEAR(static_cast<double>(block.sizes(8).activation_bytes), one, 0.1 * one);
}

TEST(LayerBench, AnIndivisibleModelIsRefused) {
  EXPECT_THROW(LayerBench(tiny_job(), LayerKind::block, 3), InputError);
  EXPECT_THROW(StackBench(tiny_job(), 3), InputError);
}

TEST(StackBench, MembersOfARealGroupMeasureTogetherCollectivesIncluded) {
  std::vector<StackBench::ByKind> members(2);
  run_ranks(2, [&members](Communicator& group) {
    members[static_cast<size_t>(group.rank())] =
        StackBench(tiny_job(), 2, {.all = &group, .group = &group}).measure(2, kQuick);
  });
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_GT(members[0][k].times.forward_s, 0);
    EXPECT_GT(members[0][k].times.backward_s, 0);
    EXPECT_EQ(members[0][k].samples, members[1][k].samples);
    EXPECT_TRUE(members[0][k].forward_bytes.empty()) << "nothing is left to be added";
  }
}

TEST(CrowdBench, EveryDegreeIsMeasuredWhetherItsGroupFitsOrNot) {
  CrowdBench crowd(tiny_job(), 2, kQuick);
  for (const int tp : {1, 2, 4}) {
    const std::vector<StackBench::ByKind> cells = crowd.measure(tp, {1, 2}, kQuick).cells;
    ASSERT_EQ(cells.size(), 2u);
    for (const StackBench::ByKind& kinds : cells)
      for (const LayerMeasurement& m : kinds) {
        EXPECT_GT(m.times.forward_s, 0);
        EXPECT_GT(m.times.update_s, 0);
        EXPECT_GE(m.samples, kQuick.min_samples);
      }
    // Without a real group the collectives of a block are counted, so that their cost can be added.
    EXPECT_EQ(cells[0][kBlock].forward_bytes.empty(), tp <= 2);
  }
}

// In a process of its own, whose address space is limited.
TEST(CrowdBenchDeathTest, AMicrobatchThatDoesNotFitEndsTheSeries) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto measure = [] {
    JobSpec job = tiny_job();
    CrowdBench(job, 2, kQuick).measure(1, {1}, kQuick);  // threads and libraries are there
    std::ifstream statm("/proc/self/statm");
    uint64_t pages = 0;
    statm >> pages;
    const rlim_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (uint64_t{1} << 30);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
    setrlimit(RLIMIT_AS, &limit);
    const CrowdBench::Series series = CrowdBench(job, 2, kQuick).measure(2, {1, 2, 1 << 20, 4}, kQuick);
    std::cerr << series.cells.size() << (series.out_of_memory ? " fit" : " measured");
    _exit(0);
  };
  EXPECT_EXIT(measure(), testing::ExitedWithCode(0), "^2 fit$");
}

TEST(Samples, TheUsualMeanHoldsSmallDisturbancesAndNoInterruptions) {
  Samples samples;
  EXPECT_EQ(samples.usual_mean(), 0);
  for (const double v : {1.0, 1.0, 1.0, 1.8, 50.0}) samples.add(v);
  EXPECT_DOUBLE_EQ(samples.usual_mean(), 1.2);
  EXPECT_DOUBLE_EQ(samples.mean(), 54.8 / 5);
}

TEST(Samples, InterruptionsAreSpreadOverAllThatTookTheTime) {
  Samples whole;
  for (int i = 0; i < 99; ++i) whole.add(2);
  whole.add(202);  // interrupted for as long as the hundred took
  EXPECT_DOUBLE_EQ(slowdown_by_interruptions(whole, 2), 2);
  EXPECT_DOUBLE_EQ(slowdown_by_interruptions(whole, 5), 1);
  EXPECT_DOUBLE_EQ(slowdown_by_interruptions(whole, 0), 1);
}

TEST(Samples, MeasuringGoesOnForTheLeastTimeButNeverBeyondTheMost) {
  Samples samples;
  for (int i = 0; i < 20; ++i) samples.add(1.0);
  MeasuringOptions options{.relative_error = 0.5, .min_samples = 5, .min_seconds = 0.2, .max_seconds = 1};
  EXPECT_FALSE(enough(samples, 0.1, options));
  EXPECT_TRUE(enough(samples, 0.3, options));
  options.min_seconds = 10;
  EXPECT_FALSE(enough(samples, 0.9, options));
  EXPECT_TRUE(enough(samples, 1.0, options));
}

TEST(CrowdBench, TheTypicalMeasurementIsTheMeanOfEachPart) {
  std::vector<StackBench::ByKind> rounds(3, StackBench::ByKind(3));
  const double forward_s[] = {1, 9, 2}, backward_s[] = {7, 3, 5};  // 9: interrupted
  for (size_t i = 0; i < rounds.size(); ++i) {
    rounds[i][1].times.forward_s = forward_s[i];
    rounds[i][1].times.backward_s = backward_s[i];
    rounds[i][1].samples = 5;
  }
  const StackBench::ByKind kinds = typical(rounds);
  EXPECT_EQ(kinds[1].times.forward_s, 1.5);
  EXPECT_EQ(kinds[1].times.backward_s, 5);
  EXPECT_EQ(kinds[1].samples, 15);
}

TEST(CrowdBench, TheErrorShrinksWithRoundsThatAgreeAndNotWithOthers) {
  std::vector<StackBench::ByKind> agree(4, StackBench::ByKind(3)), apart = agree;
  for (size_t i = 0; i < 4; ++i) {
    agree[i][0].times.forward_s = 1;
    apart[i][0].times.forward_s = i % 2 == 0 ? 0.9 : 1.1;
    agree[i][0].relative_error = apart[i][0].relative_error = 0.02;
  }
  EXPECT_DOUBLE_EQ(typical(agree)[0].relative_error, 0.01);
  // Student's t of four samples times their deviation over its root.
  EXPECT_NEAR(typical(apart)[0].relative_error, 3.18 * std::sqrt(0.04 / 3) / 2, 1e-12);
}

TEST(SyncBench, WhatTheMessagesDoNotExplainIsThePartOfTheProcessor) {
  NetworkProfile at_once, never;
  at_once.add({{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(0, 1e15, 0)});
  never.add({{"", "", 0}, {"", "", 0}, NetworkProfile::Scope::any, LinkCurve::from_rates(100, 1e9, 0)});
  EXPECT_GT(measure_sync_s_per_byte(tiny_job(), 2, at_once, kQuick).value, 0);
  EXPECT_EQ(measure_sync_s_per_byte(tiny_job(), 2, never, kQuick).value, 0) << "it is never a gain";
  EXPECT_EQ(measure_sync_s_per_byte(tiny_job(), 1, at_once, kQuick).value, 0) << "one rank sums nothing";
}

TEST(LinkBench, LargeMessagesTakeLongerAndEveryoneReduces) {
  const auto points = measure_messages({4096, 1 << 22}, kQuick);
  ASSERT_EQ(points.size(), 2u);
  EXPECT_GT(points[0].second, 0);
  EXPECT_GT(points[1].second, points[0].second);
  EXPECT_GT(measure_all_reduce(3, {1 << 12}, kQuick).at(1 << 12), 0);
}

struct ProfileJobTest : testing::Test {
  std::string directory = testing::TempDir() + "/profiles." + std::to_string(getpid());
  ~ProfileJobTest() override { fs::remove_all(directory); }
  ProfileOutcome profile(std::vector<int> microbatches, std::vector<int> tps,
                         const JobSpec& job = tiny_job()) {
    return profile_job(job,
                       {.gpu_type = "cpu",
                        .directory = directory,
                        .microbatches = microbatches,
                        .tps = tps,
                        .seconds = 1,
                        .base_memory_bytes = int64_t{5} << 20},
                       [](const std::string&) {});
  }
};

TEST_F(ProfileJobTest, ThePlannerReadsWhatWasMeasured) {
  const ProfileOutcome outcome = profile({1, 2}, {1, 2});
  EXPECT_EQ(outcome.cells, 4);
  const JobSpec job = tiny_job();
  Catalog catalog;
  catalog.gpu_types["cpu"].name = "cpu";
  const ProfileSet set = load_profiles({directory}, job, catalog);
  const LayerProfile& layers = set.layers.at("cpu");
  ASSERT_NE(layers.find(2, {2}), nullptr);
  EXPECT_EQ(layers.find(2, {2})->size(), 4u);
  EXPECT_EQ(layers.overheads.base_memory_bytes, int64_t{5} << 20);
  EXPECT_GT(layers.overheads.iteration_overhead_s, 0);
  ASSERT_NE(set.network.find({"cpu", "z", 1}, {"cpu", "z", 1}, false), nullptr);
  EXPECT_GT(set.network.find({"cpu", "z", 1}, {"cpu", "z", 1}, false)->time_s(1 << 20), 0);
}

TEST_F(ProfileJobTest, ASecondRunAddsToTheFirst) {
  profile({1}, {1});
  const ProfileOutcome outcome = profile({4}, {1});
  const ProfileFile file = load_profile_file(outcome.layer_file);
  EXPECT_EQ(file.times.size(), 6u) << "three kinds of layers at microbatch 1 and at 4";
}

TEST_F(ProfileJobTest, AnInterruptedRunIsContinuedAndACompleteOneIsMeasuredAnew) {
  fs::create_directories(directory);
  const std::string path = layer_profile_path(directory, tiny_job(), "cpu");
  const int ranks = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  StackBench::ByKind kinds(3);
  for (LayerMeasurement& m : kinds) {
    m.times.forward_s = 123;
    m.times.backward_s = 4;
    m.samples = 5;
  }
  {
    ProfileJournal journal(path, this_equipment(ranks), 3);
    for (int round = 0; round < 3; ++round) journal.add(1, 2, kinds);
  }
  profile({1, 2}, {1});
  const auto forward_s = [&path](int microbatch) {
    for (const ProfileFile::TimeCell& cell : load_profile_file(path).times)
      if (cell.microbatch == microbatch) return cell.times.forward_s;
    return 0.0;
  };
  EXPECT_EQ(forward_s(2), 123) << "measured by the first run";
  EXPECT_LT(forward_s(1), 1);
  EXPECT_FALSE(fs::exists(ProfileJournal::path_of(path)));
  profile({1, 2}, {1});
  EXPECT_LT(forward_s(2), 1) << "nothing is left to be continued";
}

TEST_F(ProfileJobTest, FiguresOfAnotherLibraryAreReplaced) {
  const std::string path = profile({1}, {1}).layer_file;
  ProfileFile old = load_profile_file(path);
  EXPECT_GE(old.times[0].samples, 15);
  EXPECT_GE(old.overhead_samples.sync, 1);
  old.measured.libraries = "another 1.0";
  save_profile_file(old, path);
  const ProfileOutcome outcome = profile({2}, {1});
  ASSERT_EQ(outcome.notes.size(), 1u);
  EXPECT_THAT(outcome.notes[0], HasSubstr("another 1.0"));
  EXPECT_EQ(load_profile_file(path).times.size(), 3u) << "old and new figures must not stand in one file";
}

TEST_F(ProfileJobTest, LinksThatWereProbedStay) {
  NetworkFile network = load_network_file(profile({1}, {1}).network_file);
  ASSERT_EQ(network.links.size(), 1u);
  const LinkEnd x{.gpu_type = "X", .zone = "", .gpus = 0};
  network.link(x, x, NetworkProfile::Scope::inter_node).bytes_per_s = 1e9;
  const std::string path = directory + "/network.json";
  save_network_file(network, path);
  profile({1}, {1});
  network = load_network_file(path);
  ASSERT_EQ(network.links.size(), 2u);
  EXPECT_EQ(network.links[1].bytes_per_s, 1e9);
}

TEST_F(ProfileJobTest, ABrokenOldFileIsReplacedWithANote) {
  fs::create_directories(directory);
  write_file_atomically(layer_profile_path(directory, tiny_job(), "cpu"), "{\"sailor_layer_profile\": 1, ");
  const ProfileOutcome outcome = profile({1}, {1});
  ASSERT_EQ(outcome.notes.size(), 1u);
  EXPECT_THAT(outcome.notes[0], HasSubstr("replaced"));
  EXPECT_EQ(load_profile_file(outcome.layer_file).times.size(), 3u);
}

TEST_F(ProfileJobTest, DegreesThatDoNotDivideTheModelAreLeftOutWithANote) {
  const ProfileOutcome outcome = profile({1}, {1, 3});
  EXPECT_EQ(outcome.cells, 1);
  ASSERT_EQ(outcome.notes.size(), 1u);
  EXPECT_THAT(outcome.notes[0], HasSubstr("TP degree 3"));
  EXPECT_THROW(profile({1}, {3}), InputError);
}

TEST_F(ProfileJobTest, ByDefaultMeasuresEveryDegreeThatDividesTheModel) {
  const ProfileFile file = load_profile_file(profile({}, {}).layer_file);
  std::set<std::pair<int, int>> cells;
  for (const ProfileFile::TimeCell& cell : file.times) cells.emplace(cell.shape.tp, cell.microbatch);
  std::set<std::pair<int, int>> expected;
  for (const int tp : {1, 2, 4})
    for (const int microbatch : {1, 2, 4, 8}) expected.emplace(tp, microbatch);
  EXPECT_EQ(cells, expected);
}

JobSpec windowed_job() {
  JobSpec job = tiny_job();
  set_family(job.model, "gpt-neo");
  job.model.attention_window = 4;
  return job;
}

TEST_F(ProfileJobTest, LocalBlocksAreMeasuredApart) {
  JobSpec job = windowed_job();
  job.model.layers = 1;  // of which none is local; the profile is for any number of blocks
  const std::string path = profile({1}, {1}, job).layer_file;
  const ProfileFile file = load_profile_file(path);
  std::vector<LayerKind> times, sizes;
  for (const ProfileFile::TimeCell& cell : file.times) times.push_back(cell.kind);
  for (const ProfileFile::SizeCell& cell : file.sizes) sizes.push_back(cell.kind);
  EXPECT_EQ(times, layer_kinds(job.model));
  EXPECT_EQ(sizes, layer_kinds(job.model));
  EXPECT_GT(file.sizes[2].sizes.activation_bytes + file.sizes[2].sizes.workspace_bytes, 0);

  ProfileFile old = file;
  std::erase_if(old.times, [](const auto& cell) { return cell.kind == LayerKind::local_block; });
  std::erase_if(old.sizes, [](const auto& cell) { return cell.kind == LayerKind::local_block; });
  save_profile_file(old, path);
  const ProfileOutcome again = profile({2}, {1}, job);
  EXPECT_THAT(again.notes, testing::Contains(HasSubstr("no times of local blocks; replaced")));
  EXPECT_EQ(load_profile_file(path).times.size(), 4u);
}

TEST_F(ProfileJobTest, TheTimeEndsAnOpenEndedSeriesAfterItsFirstMicrobatch) {
  fs::create_directories(directory);
  ProfileFile file;
  LayerRounds rounds({.job = tiny_job(),
                      .microbatches = {1, 2, 4},
                      .tps = {1, 2},
                      .ranks = 2,
                      .gpus = false,
                      .open_ended = true,
                      .seconds = 0},
                     kQuick, directory + "/tiny.json", file);
  rounds.measure({});
  EXPECT_THAT(rounds.notes(),
              testing::ElementsAre(HasSubstr("TP degree 1: microbatches from 2 on were not"),
                                   HasSubstr("TP degree 2: microbatches from 2 on were not")));
  EXPECT_EQ(rounds.tell_all([](const std::string&) {}), 2);
}

}  // namespace
}  // namespace sailor
