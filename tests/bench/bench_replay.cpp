// How much training is done while GPUs come and go: the elastic job against starting again from checkpoints
// and against waiting for the full set, on real availability traces.
//
//     bench_replay --reference DIR [--model M] [--gpu-type T] [--gpus-per-node N] [--until S] [--seed S]
//     TRACE...
//
// CSV, a line per trace and policy. Exit code 1 when the elastic job is behind one of the other two anywhere.
// --gpu-type stands for the GPUs of traces that do not say theirs: the data pack has no profile of every
// type.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>

#include "planner/replay/replay.h"
#include "tests/bench/reference_data.h"

namespace sailor::bench {
namespace {

struct Options {
  std::string reference, model = "OPT-350", gpu_type = "A100-40";
  std::vector<std::string> traces;
  int gpus_per_node = 4;
  double until_s = 0, time_limit_s = 1;
  uint64_t seed = 1;
  ReplayOptions replay;
};

// As many GPUs of each pool as there ever are: what the profiles and prices are for.
Scenario fullest(const AvailabilityTrace& trace, const Options& options) {
  Scenario scenario;
  scenario.name = trace.file;
  scenario.model = options.model;
  for (size_t i = 0; i < trace.pools.size(); ++i) {
    int most = 1;
    for (const AvailabilityTrace::Change& change : trace.changes) most = std::max(most, change.count[i]);
    const TracePool& pool = trace.pools[i];
    scenario.pools.push_back({most, pool.gpu_type.empty() ? options.gpu_type : pool.gpu_type,
                              pool.zone.empty() ? "us-central1-a" : pool.zone});
  }
  return scenario;
}

bool run_trace(const std::string& path, const Options& options) {
  const AvailabilityTrace trace = load_trace(path);
  const Scenario scenario = fullest(trace, options);
  Inputs inputs = ReferenceData(options.reference).inputs(scenario);
  inputs.job.training.steps = std::numeric_limits<int>::max();
  std::vector<ReplayPool> pools;
  const bool of_nodes = trace.unit == AvailabilityTrace::Unit::nodes;
  for (const PoolSize& pool : scenario.pools) {
    const Snapshot nodes = make_snapshot({pool}, options.gpus_per_node);
    pools.push_back(
        {pool.gpu_type, pool.zone, nodes.nodes.front().region, of_nodes ? 1 : options.gpus_per_node});
  }
  ReplayInput input{trace.changes, options.until_s > 0 ? options.until_s : trace.end_s,
                    [&] { return TraceCluster(pools, inputs.snapshot, options.seed); }};
  if (!(input.end_s > 0)) {
    fmt::print(stderr, "{}: skipped: one row lasts no time; --until S replays it for S seconds\n", path);
    return true;
  }
  std::erase_if(input.changes, [&](const auto& change) { return change.at_s >= input.end_s; });
  PlanOptions plan_options;
  plan_options.time_limit_s = options.time_limit_s;
  const std::vector<ReplayOutcome> outcomes =
      replay(inputs.context(), plan_options, input, options.replay,
             {ReplayPolicy::elastic, ReplayPolicy::restart, ReplayPolicy::full_set, ReplayPolicy::no_cost});
  const auto most = static_cast<double>(std::max<int64_t>(1, outcomes.back().steps));
  for (const ReplayOutcome& o : outcomes)
    fmt::print("{},{},{},{},{:.6f},{:.2f},{:.2f},{:.2f},{:.2f},{:.2f},{},{},{:.2f}\n",
               std::filesystem::path(path).filename().string(), options.model, to_string(o.policy), o.steps,
               static_cast<double>(o.steps) / input.end_s, 100 * static_cast<double>(o.steps) / most,
               100 * o.trained_s / input.end_s, 100 * o.lost_s / input.end_s,
               100 * o.changing_s / input.end_s, 100 * o.waiting_s / input.end_s, o.changes, o.lost_steps,
               o.usd);
  // Where nothing changes there is nothing to win.
  return outcomes[0].changes == 0 ||
         (outcomes[0].steps >= outcomes[1].steps && outcomes[0].steps >= outcomes[2].steps);
}

int run(const Options& options) {
  fmt::print(stderr, "seed {}\n", options.seed);
  fmt::print(
      "trace,model,policy,steps,steps_per_s,goodput_pct,trained_pct,lost_pct,changing_pct,waiting_pct,"
      "changes,lost_steps,usd\n");
  if (!std::filesystem::exists(options.reference)) {
    fmt::print(stderr, "skipped: no data ({} is not there)\n", options.reference);
    return kDone;
  }
  bool good = true;
  for (const std::string& trace : options.traces) good = run_trace(trace, options) && good;
  return good ? kDone : kFailed;
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  sailor::bench::Options options;
  CLI::App app{"Replays availability traces: elastic against starting again and against waiting"};
  app.add_option("traces", options.traces, "availability traces")->required()->type_name("TRACE");
  app.add_option("--reference", options.reference, "directory of the reference data pack")->required();
  app.add_option("--model", options.model, "model of the data pack")->capture_default_str();
  app.add_option("--gpu-type", options.gpu_type, "of traces that do not say theirs")->capture_default_str();
  app.add_option("--gpus-per-node", options.gpus_per_node, "in traces that count GPUs")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--until", options.until_s, "seconds to replay (default: to the last row)");
  app.add_option("--seed", options.seed, "which nodes go")->capture_default_str();
  app.add_option("--time-limit", options.time_limit_s, "seconds per search")->capture_default_str();
  app.add_option("--reconfigure", options.replay.reconfigure_s, "seconds")->capture_default_str();
  app.add_option("--restart", options.replay.restart_s, "seconds")->capture_default_str();
  app.add_option("--checkpoint-every", options.replay.checkpoint_steps, "steps (default: those of 600 s)");
  CLI11_PARSE(app, argc, argv);
  try {
    return sailor::bench::run(options);
  } catch (const sailor::InputError& error) {
    fmt::print(stderr, "bench_replay: {}\n", error.what());
    return sailor::kBadInput;
  }
}
