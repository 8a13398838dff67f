// What others submit to a busy cluster, and the trainings that arrive among them, with time compressed: an
// hour of the trace is a minute.
//
//     busy_workload --jobs FILE.csv[.gz] --nodes NODES.txt --load 0.95 --seed S --minutes M
//                   [--iterations S,S,...]
//
// NODES.txt: a line per node of a throw-away cluster, "NAME PARTITION GRES_TYPE GPUS". Prints CSV in the
// order of submission:
//
//     what,submit_s,duration_s,limit_min,nodes,partition,steps
//
// what: `other`, or `running`: jobs of others that run when the minutes begin, with what is left of them.
// Jobs of others are drawn as for bench_queue (queue/workload.h), but none is longer than a third of the
// minutes. With --iterations, the seconds of a training step on kTrainingNodes nodes of each partition, an
// eighth of the load are trainings, which are 20 to 150 s long where that is fastest; `nodes` and `partition`
// are those of hand-written plans.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "planner/spec/error.h"
#include "tests/bench/queue/workload.h"

namespace sailor::bench {
namespace {

constexpr double kCompression = 60;
constexpr double kTrainingShare = 0.125, kShortest_s = 20, kLongest_s = 150, kMargin = 1.5;
constexpr int kTrainingNodes = 2;
constexpr int64_t kLeastTrainingLimit_min = 4;  // a chain's job stops more than 30 s before its limit
constexpr double kLongestShare = 1.0 / 3;       // of the minutes

struct Options {
  std::string jobs, nodes;
  double load = 0.95, minutes = 30;
  uint64_t seed = 1;
  std::vector<double> iterations_s{};

  double length_s() const { return 60 * minutes; }
};

struct BusyJob {
  std::string what;
  double submit_s = 0, duration_s = 0;
  int64_t limit_min = 0;
  int nodes = 0;
  std::string partition;
  int64_t steps = 0;
};

// One kind per partition.
std::vector<NodeKind> read_kinds(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw InputError({path}, "cannot be read");
  std::vector<NodeKind> kinds;
  std::string name, partition, type;
  for (int gpus = 0; file >> name >> partition >> type >> gpus;) {
    if (kinds.empty() || kinds.back().gpu_type != partition) kinds.push_back({partition, gpus, {}});
    kinds.back().names.push_back(name);
  }
  if (kinds.empty()) throw InputError({path}, "has no nodes");
  return kinds;
}

int64_t minutes_of(double trace_s) {
  return static_cast<int64_t>(std::ceil(trace_s / kCompression / 60));
}

// Jobs of others, also of the time before the minutes: what still runs then if all started at once.
std::vector<BusyJob> draw_others(const Options& options, const std::vector<TraceJob>& trace,
                                 const std::vector<NodeKind>& kinds, double longest_s, double gpu_s) {
  const double end_s = options.length_s() * kCompression;
  std::vector<BusyJob> jobs;
  for (const BackgroundJob& from : draw_background(trace, kinds, gpu_s, -longest_s, end_s, options.seed)) {
    const auto ran_s = static_cast<double>(std::max<int64_t>(0, -from.submit_s));
    const double left_s = static_cast<double>(from.duration_s) - ran_s;
    if (left_s <= 0) continue;
    const double limit_s = std::max(left_s, static_cast<double>(from.limit_s) - ran_s);
    jobs.push_back({from.submit_s < 0 ? "running" : "other",
                    std::max(0.0, static_cast<double>(from.submit_s) / kCompression), left_s / kCompression,
                    minutes_of(limit_s), from.nodes, kinds[from.kind].gpu_type});
  }
  return jobs;
}

// Adds jobs until they offer these GPUs within the minutes: in so short a time, a few long jobs decide that.
std::vector<BusyJob> draw_others(const Options& options, const std::vector<NodeKind>& kinds, double gpus) {
  const double longest_s = kLongestShare * options.length_s() * kCompression;
  std::vector<TraceJob> trace = load_trace(options.jobs);
  for (TraceJob& job : trace) job.duration_s = std::min(job.duration_s, longest_s);
  const double all_s = gpus * (options.length_s() * kCompression + longest_s);
  constexpr double kStep = 0.01, kMost = 10;
  for (double part = kStep;; part += kStep) {
    std::vector<BusyJob> jobs = draw_others(options, trace, kinds, longest_s, part * all_s);
    double offered_s = 0;
    for (const BusyJob& job : jobs) {
      const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                     [&](const NodeKind& of) { return of.gpu_type == job.partition; });
      offered_s += std::min(job.duration_s, options.length_s() - job.submit_s) * job.nodes * kind->gpus;
    }
    if (offered_s >= gpus * options.length_s() || part > kMost) return jobs;
  }
}

void draw_trainings(const Options& options, const std::vector<NodeKind>& kinds, double gpus,
                    std::vector<BusyJob>& jobs) {
  std::mt19937_64 random(options.seed);
  const auto draw = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };  // [0, 1)
  const double fastest_s = *std::min_element(options.iterations_s.begin(), options.iterations_s.end());
  std::vector<size_t> by_nodes;
  for (size_t kind = 0; kind < kinds.size(); ++kind)
    by_nodes.insert(by_nodes.end(), kinds[kind].names.size(), kind);
  for (double gpu_s = 0; gpu_s < gpus * options.length_s();) {
    const double run_s = kShortest_s * std::pow(kLongest_s / kShortest_s, draw());
    const auto steps = std::max<int64_t>(1, std::llround(run_s / fastest_s));
    size_t kind = 0;
    double fixed_s = 0;
    do {
      kind = by_nodes[random() % by_nodes.size()];
      fixed_s = options.iterations_s[kind] * static_cast<double>(steps);
    } while (options.iterations_s[kind] > fastest_s && fixed_s > kLongestShare * options.length_s());
    const auto limit_s = static_cast<double>(rounded_limit_s(kMargin * fixed_s * kCompression));
    jobs.push_back({"training", draw() * options.length_s(), fixed_s,
                    std::max(kLeastTrainingLimit_min, minutes_of(limit_s)), kTrainingNodes,
                    kinds[kind].gpu_type, steps});
    gpu_s += fixed_s * kTrainingNodes * kinds[kind].gpus;
  }
}

int run(const Options& options) {
  const std::vector<NodeKind> kinds = read_kinds(options.nodes);
  const bool trains = !options.iterations_s.empty();
  if (trains && options.iterations_s.size() != kinds.size())
    throw InputError(
        fmt::format("--iterations: {} partitions, not {}", kinds.size(), options.iterations_s.size()));
  const double offered = options.load * gpus_of(kinds);
  std::vector<BusyJob> jobs = draw_others(options, kinds, (trains ? 1 - kTrainingShare : 1) * offered);
  if (trains) draw_trainings(options, kinds, kTrainingShare * offered, jobs);
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const BusyJob& a, const BusyJob& b) { return a.submit_s < b.submit_s; });
  fmt::print("what,submit_s,duration_s,limit_min,nodes,partition,steps\n");
  for (const BusyJob& job : jobs)
    fmt::print("{},{:.2f},{:.2f},{},{},{},{}\n", job.what, job.submit_s, job.duration_s, job.limit_min,
               job.nodes, job.partition, job.steps);
  return kDone;
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  sailor::bench::Options options;
  CLI::App app{"The jobs of a busy throw-away cluster"};
  app.add_option("--jobs", options.jobs, "trace of jobs")->required()->type_name("FILE.csv[.gz]");
  app.add_option("--nodes", options.nodes, "nodes of the cluster")->required()->type_name("FILE");
  app.add_option("--load", options.load, "offered GPU hours over capacity")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 2.0));
  app.add_option("--seed", options.seed, "of the jobs")->capture_default_str();
  app.add_option("--minutes", options.minutes, "in which jobs are submitted")
      ->capture_default_str()
      ->check(CLI::Range(0.5, 10000.0));
  app.add_option("--iterations", options.iterations_s, "seconds of a training step, by partition")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    return sailor::bench::run(options);
  } catch (const sailor::InputError& error) {
    fmt::print(stderr, "busy_workload: {}\n", error.what());
    return sailor::kBadInput;
  }
}
