// How fast the simulator and a small search are (Google Benchmark).
#include <benchmark/benchmark.h>

#include "planner/search/search.h"
#include "planner/simulator/timeline.h"
#include "tests/bench/reference_data.h"

namespace {

using namespace sailor;

void timeline(benchmark::State& state) {
  std::vector<StageTimes> stages(static_cast<size_t>(state.range(0)));
  for (size_t i = 0; i < stages.size(); ++i)
    stages[i] = {1.0 + 0.01 * static_cast<double>(i % 7), 2.0 + 0.02 * static_cast<double>(i % 5), 0.1, 0.1};
  for (auto _ : state)
    benchmark::DoNotOptimize(one_f_one_b(stages, static_cast<int>(state.range(1))).makespan_s);
}
BENCHMARK(timeline)->Args({4, 64})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

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
