// How fast the simulator and a small search are (Google Benchmark).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "planner/search/search.h"
#include "planner/simulator/timeline.h"
#include "tests/bench/reference_data.h"

namespace {

using namespace sailor;

// Times of the stages: all alike, from a few kinds of stages, or every stage different.
enum Variety { alike, few_kinds, all_different };

std::vector<StageTimes> stage_times(int count, Variety variety) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> about_one(0.8, 1.2);
  std::vector<StageTimes> times(static_cast<size_t>(count));
  for (size_t i = 0; i < times.size(); ++i) {
    const double kind = 0.01 * static_cast<double>(i % 7);
    if (variety == alike) times[i] = {1, 2, 0.1, 0.1};
    if (variety == few_kinds) times[i] = {1 + kind, 2 + 2 * kind, 0.1, 0.1};
    if (variety == all_different)
      times[i] = {about_one(random), 2 * about_one(random), 0.1 * about_one(random), 0.1 * about_one(random)};
  }
  return times;
}

using Seconds = std::chrono::duration<double>;

// What a core needs for as many additions and maxima as every operation of the timeline played one by one
// has at least: two of each, each depending on the one before. The yardstick for `ratio`.
double seconds_for_dependent_operations(int64_t operations) {
  double best = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) {
    double t = 0, arrival = 0.25;
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < operations; ++i) {
      t = std::max(t, arrival) + 0.5;
      arrival = std::max(t, arrival) + 0.25;
      benchmark::DoNotOptimize(arrival);
    }
    benchmark::DoNotOptimize(t);
    best = std::min(best, Seconds(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

// `ratio`: how often the whole timeline fits into the yardstick; below 1 means slower than playing it so.
// Args: stages, microbatches, variety.
void timeline(benchmark::State& state, PipelineSchedule schedule) {
  const int microbatches = static_cast<int>(state.range(1));
  const std::vector<StageTimes> times =
      stage_times(static_cast<int>(state.range(0)) * schedule.chunks, static_cast<Variety>(state.range(2)));
  double best_s = 1e9;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(pipeline_timeline(schedule, times, microbatches).makespan_s);
    best_s = std::min(best_s, Seconds(std::chrono::steady_clock::now() - begin).count());
  }
  const double yardstick_s =
      seconds_for_dependent_operations(2 * static_cast<int64_t>(times.size()) * microbatches);
  state.counters["ratio"] = yardstick_s / best_s;
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Unit(benchmark::kMicrosecond)->Args({4, 64, few_kinds});
  for (Variety variety : {alike, few_kinds, all_different}) bench->Args({64, 1024, variety});
  bench->Args({64, 16384, all_different});
}

PipelineSchedule schedule(int chunks, P2p p2p) {
  PipelineSchedule out;
  out.chunks = chunks;
  out.p2p = p2p;
  return out;
}
BENCHMARK_CAPTURE(timeline, asynchronous, schedule(1, P2p::asynchronous))->Apply(sizes);
BENCHMARK_CAPTURE(timeline, asynchronous_in_turn, schedule(1, P2p::asynchronous_in_turn))->Apply(sizes);
BENCHMARK_CAPTURE(timeline, blocking, schedule(1, P2p::blocking))->Apply(sizes);
BENCHMARK_CAPTURE(timeline, interleaved, schedule(2, P2p::asynchronous))->Apply(sizes);
BENCHMARK_CAPTURE(timeline, interleaved_blocking, schedule(2, P2p::blocking))->Apply(sizes);

PlanOptions search_options(CostModel model) {
  PlanOptions options;
  options.space = model == CostModel::native ? SearchSpace::full : SearchSpace::paper;
  options.cost_model = model;
  options.top_k = 1;
  options.time_limit_s = 5;
  return options;
}

bench::Inputs small_inputs() {
  bench::Inputs inputs = bench::generate_inputs(1, 2, 1, 16);
  inputs.job.model.heads = 32;
  inputs.job.model.feed_forward = 4096;
  return inputs;
}

void predict(benchmark::State& state, CostModel model) {
  const bench::Inputs inputs = small_inputs();
  const SearchResult result = search(inputs.context(), search_options(model));
  for (auto _ : state)
    benchmark::DoNotOptimize(simulate(inputs.context(), result.candidates.at(0).plan, model).iteration_s);
}
BENCHMARK_CAPTURE(predict, native, CostModel::native)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(predict, published, CostModel::published)->Unit(benchmark::kMicrosecond);

void search_small(benchmark::State& state, CostModel model) {
  const bench::Inputs inputs = small_inputs();
  for (auto _ : state)
    benchmark::DoNotOptimize(search(inputs.context(), search_options(model)).candidates.size());
}
BENCHMARK_CAPTURE(search_small, native, CostModel::native)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search_small, published, CostModel::published)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
