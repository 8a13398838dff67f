// Emulated devices take at least the time of their profile, and report when they cannot.
#include "trainer/pipeline/emulated_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "planner/spec/error.h"
#include "trainer/comm/thread_plane.h"

namespace sailor {
namespace {

using Clock = Pacer::Clock;

// Three layers with forward 10, 20, 30 ms for two sequences at TP 1; half of it at TP 2; twice at eight
// sequences.
LayerProfile three_layers() {
  LayerProfile profile;
  profile.gpu_type = "A";
  for (const auto& [microbatch, tp, factor] : {std::tuple{2, 1, 1.0}, {2, 2, 0.5}, {8, 1, 2.0}}) {
    LayerProfile::Cell cell;
    for (const double ms : {10.0, 20.0, 30.0})
      cell.push_back({ms * 1e-3 * factor, 2 * ms * 1e-3 * factor, 0.5 * ms * 1e-3});
    profile.cells[{microbatch, {tp}}] = cell;
  }
  return profile;
}

PhaseWork forward(int first, int end, int tp, int sequences) {
  return {
      .phase = Phase::forward, .first_layer = first, .end_layer = end, .shape = {tp}, .sequences = sequences};
}

TEST(ProfiledTime, SumsTheLayersOfTheCell) {
  EXPECT_DOUBLE_EQ(profiled_time_s(three_layers(), forward(0, 3, 1, 2)), 0.060);
  EXPECT_DOUBLE_EQ(profiled_time_s(three_layers(), forward(1, 2, 2, 2)), 0.010);
  PhaseWork work = forward(0, 2, 1, 2);
  work.phase = Phase::backward;
  EXPECT_DOUBLE_EQ(profiled_time_s(three_layers(), work), 0.060);
}

TEST(ProfiledTime, ASplitBackwardTakesAsLongAsAWholeOne) {
  LayerProfile profile = three_layers();
  for (auto& [key, cell] : profile.cells)
    for (LayerTimes& times : cell) times.weight_s = times.backward_s / 4;
  PhaseWork work = forward(0, 3, 1, 2);
  work.phase = Phase::backward;
  const double whole_s = profiled_time_s(profile, work);
  work.split = true;
  const double first_s = profiled_time_s(profile, work);
  work.phase = Phase::weights;
  EXPECT_DOUBLE_EQ(first_s + profiled_time_s(profile, work), whole_s);
  // Only blocks compute weights later.
  PhaseWork block = work;
  block.first_layer = 1;
  block.end_layer = 2;
  EXPECT_GT(profiled_time_s(profile, block), 0);
  EXPECT_EQ(profiled_time_s(profile, block), profiled_time_s(profile, work));
}

TEST(ProfiledTime, ASmallerLastMicrobatchCostsItsShare) {
  EXPECT_DOUBLE_EQ(profiled_time_s(three_layers(), forward(0, 3, 1, 1)), 0.030);
  EXPECT_DOUBLE_EQ(profiled_time_s(three_layers(), forward(0, 3, 1, 7)), 0.120 * 7 / 8)
      << "the nearest size is 8";
}

TEST(ProfiledTime, TheUpdateDoesNotDependOnTheMicrobatch) {
  PhaseWork work = forward(0, 3, 1, 0);
  work.phase = Phase::update;
  EXPECT_DOUBLE_EQ(profiled_time_s(three_layers(), work), 0.030);
}

TEST(ProfiledTime, AnUnmeasuredTpDegreeIsAnErrorNeverFree) {
  EXPECT_THROW(profiled_time_s(three_layers(), forward(0, 3, 4, 2)), InputError);
}

TEST(EmulatedDevice, WaitsFromTheStartOfTheComputationNotFromItsEnd) {
  // The best of a few tries: one late wake-up of a busy machine says nothing.
  double best_wait_s = 1;
  for (int attempt = 0; attempt < 5; ++attempt) {
    EmulatedDevice device(three_layers());
    const auto now = Clock::now();
    const auto start = now - std::chrono::milliseconds(50);  // so long the real computation took, of 60 ms
    device.computed(forward(0, 3, 1, 2), start);
    EXPECT_GE(std::chrono::duration<double>(Clock::now() - start).count(), 0.060);
    EXPECT_NEAR(device.counters().emulated_s, 0.060, 1e-9);
    best_wait_s = std::min(best_wait_s, std::chrono::duration<double>(Clock::now() - now).count());
  }
  EXPECT_LT(best_wait_s, 0.050) << "10 ms remained, not 60";
}

TEST(EmulatedDevice, AnUpdateWaitsForTheLinkToTheHost) {
  PhaseWork work = forward(0, 3, 1, 0);
  work.phase = Phase::update;
  work.offloaded_bytes = 50'000;
  const auto emulated_s = [&](double host_bytes_per_s) {
    EmulatedDevice device(three_layers(), host_bytes_per_s);
    device.computed(work, Clock::now());
    return device.counters().emulated_s;
  };
  EXPECT_DOUBLE_EQ(emulated_s(1e6), 0.050);
  EXPECT_DOUBLE_EQ(emulated_s(5e6), 0.030) << "the update itself";
  work.offloaded_bytes = 0;
  EXPECT_DOUBLE_EQ(emulated_s(1e6), 0.030);
}

TEST(EmulatedDevice, ABackwardWaitsForInputsFromTheHost) {
  PhaseWork work = forward(0, 3, 1, 2);
  work.phase = Phase::backward;
  work.recompute = Recompute::full;
  work.offloaded_bytes = 1'000'000;
  const LayerProfile profile = three_layers();
  const double full_s = profiled_time_s(profile, work, 1e6);
  work.recompute = Recompute::offload;
  EXPECT_DOUBLE_EQ(profiled_time_s(profile, work), full_s) << "it takes no time";
  EXPECT_DOUBLE_EQ(profiled_time_s(profile, work, 1e12), full_s) << "beside the block";
  const PhaseWork block = [&] {
    PhaseWork of = forward(1, 2, 1, 2);
    return of;
  }();
  const double forward_s = profiled_time_s(profile, block);
  PhaseWork plain = block;
  plain.phase = Phase::backward;
  const double backward_s = profiled_time_s(profile, plain);
  EXPECT_NEAR(profiled_time_s(profile, work, 1e6), full_s + (1 - forward_s) + (1 - forward_s - backward_s),
              1e-12);
}

TEST(EmulatedDevice, APartOfABackwardTakesItsShareOfTheTimeAndIsNotCounted) {
  EmulatedDevice device(three_layers());
  PhaseWork part = forward(2, 3, 1, 2);
  part.phase = Phase::backward;
  const auto start = Clock::now();
  device.part_computed(part, start);
  EXPECT_GE(std::chrono::duration<double>(Clock::now() - start).count(), 0.060);
  EXPECT_EQ(device.counters().tasks, 0);
}

TEST(EmulatedDevice, CountsComputationThatIsSlowerThanTheDevice) {
  EmulatedDevice device(three_layers());
  const auto start = Clock::now() - std::chrono::milliseconds(100);
  device.computed(forward(0, 1, 1, 2), start);
  EXPECT_EQ(device.counters().tasks, 1);
  EXPECT_EQ(device.counters().overrun_tasks, 1);
  EXPECT_GE(device.counters().overrun_s, 0.090);
}

TEST(EmulatedDevice, ATpGroupEndsTogetherWhenItsLastMemberIsDone) {
  ThreadHub hub(2);
  std::vector<double> ended_s(2);
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto factory = hub.factory(rank);
      const auto group = factory->create("tp", {0, 1});
      EmulatedDevice device(three_layers());
      device.joins(group.get(), nullptr);
      device.computed(forward(0, 3, 1, 2), begin + std::chrono::milliseconds(200 * rank));
      ended_s[static_cast<size_t>(rank)] = std::chrono::duration<double>(Clock::now() - begin).count();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double s : ended_s) EXPECT_GE(s, 0.260) << "the second one starts at 200 ms and takes 60 ms";
}

}  // namespace
}  // namespace sailor
