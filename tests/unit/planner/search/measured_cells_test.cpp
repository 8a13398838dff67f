// Measuring some cells of a type never narrows what is searched, and never makes a plan worse.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <ranges>
#include <set>

#include "planner/profile/estimated_profile.h"
#include "planner/profile/profile_set.h"
#include "planner/search/search.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

using Key = std::pair<int, ReplicaShape>;

struct MeasuredCells : ::testing::Test {
  JobSpec job = parse_job_spec(
      "model: {family: gpt-neo, layers: 6, hidden: 1024, heads: 16, sequence: 1024, vocabulary: 32000, "
      "attention_window: 256}\n"
      "training: {global_batch: 64, precision: bf16, steps: 10}\n",
      "job.yaml");
  Catalog catalog = parse_catalog(
      "sailor_catalog: 1\ngpu_types:\n"
      "  chip: {memory: 24GiB, peak_flops: {bf16: 1e14}, memory_bandwidth: 1TB/s, compute_units: 100}\n"
      "  other: {memory: 12GiB, peak_flops: {bf16: 5e13}, memory_bandwidth: 500GB/s, compute_units: 60}\n"
      "links: [{scope: intra_node, rate: 100GB/s}, {scope: inter_node, rate: 10GB/s}]\n",
      "catalog.yaml");
  Snapshot snapshot = parse_snapshot(
      "sailor_snapshot: 1\nnodes:\n"
      "  - {name: a, zone: z, region: r, gpu_type: chip, gpus: 4}\n"
      "  - {name: b, zone: z, region: r, gpu_type: other, gpus: 2}\n",
      "cluster.yaml");
  std::string directory = test::scratch_directory("measured_cells");
  ProfileSet estimates = load_profiles({}, job, catalog, own_framework(Ranks::gpus));

  // What `sailor profile` would write if it saw `factor` times the estimates.
  ProfileFile measured(const std::set<Key>& keys, const std::function<double()>& factor) const {
    ProfileFile file;
    file.gpu_type = "chip";
    file.model = job.model;
    file.precision = job.training.precision;
    const LayerProfile& chip = estimates.layers.at("chip");
    file.overheads = chip.overheads;
    std::set<ReplicaShape> shapes;
    for (const auto& [microbatch, shape] : keys) {
      shapes.insert(shape);
      for (const LayerKind kind : layer_kinds(job.model)) {
        LayerTimes times =
            chip.cells.at({microbatch, shape})[static_cast<size_t>(layer_of_kind(job.model, kind))];
        times.forward_s *= factor();
        const double of_backward = factor();
        times.backward_s *= of_backward;
        times.weight_s *= of_backward;
        file.times.push_back({microbatch, shape, kind, times});
      }
    }
    for (const ReplicaShape& shape : shapes)
      for (const LayerKind kind : layer_kinds(job.model))
        file.sizes.push_back(
            {shape, kind,
             (*estimates.sizes.find(shape))[static_cast<size_t>(layer_of_kind(job.model, kind))]});
    return file;
  }

  ProfileSet with(const ProfileFile& file) const {
    save_profile_file(file, directory + "/chip.json");
    return load_profiles({directory}, job, catalog, own_framework(Ranks::gpus));
  }

  double best_s(const ProfileSet& profiles) const {
    PlanOptions options;
    options.time_limit_s = 60;
    options.top_k = 1;
    options.explain = false;
    const PlanningContext context{job, snapshot, catalog, profiles, own_framework(Ranks::gpus)};
    const SearchResult result = search(context, options);
    EXPECT_FALSE(result.candidates.empty());
    return result.candidates.empty() ? 0 : result.candidates[0].prediction.iteration_s;
  }
};

std::set<Key> some_of(const LayerProfile& profile, std::mt19937_64& random) {
  std::set<Key> keys;
  for (const Key& key : profile.cells | std::views::keys)
    if (random() % 4 == 0) keys.insert(key);
  if (keys.empty()) keys.insert(profile.cells.begin()->first);
  return keys;
}

TEST_F(MeasuredCells, ThatEqualTheEstimatesNeverMakeThePlanWorse) {
  std::mt19937_64 random(1);
  const double estimated_s = best_s(estimates);
  for (int round = 0; round < 6; ++round) {
    const std::set<Key> keys = some_of(estimates.layers.at("chip"), random);
    const ProfileSet profiles = with(measured(keys, [] { return 1.0; }));
    const LayerProfile& chip = profiles.layers.at("chip");
    for (const auto& [key, cell] : estimates.layers.at("chip").cells) {
      ASSERT_TRUE(chip.cells.contains(key));
      EXPECT_EQ(chip.is_estimated(key.first, key.second), !keys.contains(key));
      for (size_t layer = 0; layer < cell.size(); ++layer) {
        EXPECT_NEAR(chip.cells.at(key)[layer].forward_s, cell[layer].forward_s, 1e-9 * cell[layer].forward_s);
        EXPECT_NEAR(chip.cells.at(key)[layer].backward_s, cell[layer].backward_s,
                    1e-9 * cell[layer].backward_s);
      }
    }
    EXPECT_LE(best_s(profiles), estimated_s * (1 + 1e-9)) << keys.size() << " cells";
  }
}

TEST_F(MeasuredCells, OfWhateverTimesLeaveEveryChoice) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> factor(0.3, 3);
  for (int round = 0; round < 20; ++round) {
    std::set<Key> keys = some_of(estimates.layers.at("chip"), random);
    const ProfileFile file = measured(keys, [&] { return factor(random); });
    const ProfileSet profiles = with(file);
    for (const Key& key : estimates.layers.at("chip").cells | std::views::keys) {
      EXPECT_NE(profiles.layers.at("chip").find(key.first, key.second), nullptr);
      EXPECT_NE(profiles.sizes.find(key.second), nullptr);
    }
    for (const ProfileFile::TimeCell& cell : file.times)
      EXPECT_EQ(profiles.layers.at("chip")
                    .find(cell.microbatch, cell.shape)
                    ->at(static_cast<size_t>(layer_of_kind(job.model, cell.kind)))
                    .forward_s,
                cell.times.forward_s)
          << "what was measured stands";
    EXPECT_FALSE(profiles.layers.at("chip").is_estimated());
  }
}

TEST_F(MeasuredCells, OfOneFactorScaleTheOthersByIt) {
  const ProfileSet profiles = with(measured({{2, {1}}, {8, {1}}, {4, {2}}}, [] { return 1.5; }));
  const LayerProfile& chip = profiles.layers.at("chip");
  for (const auto& [key, cell] : estimates.layers.at("chip").cells)
    for (size_t layer = 0; layer < cell.size(); ++layer)
      EXPECT_NEAR(chip.cells.at(key)[layer].forward_s / cell[layer].forward_s, 1.5, 1e-9);
  EXPECT_GT(chip.uncertainty, 0);
  EXPECT_LT(chip.uncertainty, kUncalibrated);
  EXPECT_EQ(with(measured({{2, {1}}}, [] { return 1.5; })).layers.at("chip").uncertainty, kUncalibrated);
}

TEST_F(MeasuredCells, AreInterpolatedBetweenAndHeldBeyond) {
  ProfileFile file = measured({{2, {1}}, {8, {1}}}, [] { return 1.0; });
  for (ProfileFile::TimeCell& cell : file.times)
    if (cell.microbatch == 8) cell.times.forward_s *= 2;
  const LayerProfile chip = with(file).layers.at("chip");
  const LayerProfile& estimate = estimates.layers.at("chip");
  const auto ratio = [&](int microbatch, int tp) {
    return chip.find(microbatch, {tp})->at(1).forward_s / estimate.find(microbatch, {tp})->at(1).forward_s;
  };
  EXPECT_NEAR(ratio(1, 1), 1, 1e-9);
  EXPECT_NEAR(ratio(4, 1), 1.5, 1e-9) << "halfway from 2 to 8, in doublings";
  EXPECT_NEAR(ratio(32, 1), 2, 1e-9);
  EXPECT_NEAR(ratio(4, 4), 1.5, 1e-9);
}

TEST_F(MeasuredCells, OutsideTheUsualOnesAddChoices) {
  ProfileFile file = measured({{2, {1}}}, [] { return 1.0; });
  for (ProfileFile::TimeCell& cell : file.times) cell.microbatch = 3;
  const LayerProfile chip = with(file).layers.at("chip");
  EXPECT_NE(chip.find(3, {4}), nullptr);
  EXPECT_TRUE(chip.is_estimated(3, {4}));
  EXPECT_EQ(chip.cells.size(), estimates.layers.at("chip").cells.size() + chip.shapes().size());
}

}  // namespace
}  // namespace sailor
