// The workload of a queue study.
#include <algorithm>
#include <cmath>
#include <random>

#include "planner/spec/error.h"
#include "tests/bench/queue/queue_study.h"

namespace sailor::bench {
namespace {

constexpr double kShare = 0.125;                             // of the load: trainings
constexpr double kShortest_s = 1200, kLongest_s = 4 * 3600;  // of a run on four of the fastest nodes
constexpr double kLongestFixed_s = 24 * 3600;
constexpr double kMargin = 1.5;    // of time limits over the duration that users expect
constexpr double kSlowest = 1.05;  // real over predicted time, at most

double draw(std::mt19937_64& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random() >> 11) * 0x1p-53;
}

// Seconds of an iteration under hand-written plans, by kind; 0 = none fits.
std::vector<double> fixed_iterations(const Study& study, const StudyModel& model) {
  std::vector<double> result;
  for (const NodeKind& kind : study.kinds) {
    Snapshot nodes = study.cluster;
    nodes.nodes.clear();
    for (const std::string& name : kind.names)
      if (nodes.nodes.size() < kFixedNodes) nodes.nodes.push_back(*study.cluster.find(name));
    const auto plan =
        nodes.nodes.size() < kFixedNodes ? std::nullopt : hand_written(model.inputs->context(nodes));
    result.push_back(plan ? plan->prediction.iteration_s : 0);
  }
  return result;
}

}  // namespace

Workload draw_workload(const Study& study, const std::vector<TraceJob>& trace) {
  std::mt19937_64 random(study.seed);
  const double day_s = 86400, end_s = study.days * day_s;
  const double offered = study.load * gpus_of(study.kinds);  // GPUs
  std::vector<std::vector<double>> iterations;               // by model and kind
  for (const StudyModel& model : study.models) iterations.push_back(fixed_iterations(study, model));
  Workload workload;
  for (double gpu_s = 0; gpu_s < kShare * offered * end_s;) {
    Training training;
    training.model = random() % study.models.size();
    const std::vector<double>& by_kind = iterations[training.model];
    double fastest_s = 0;
    for (const double iteration_s : by_kind)
      if (iteration_s > 0 && (fastest_s == 0 || iteration_s < fastest_s)) fastest_s = iteration_s;
    if (fastest_s == 0)
      throw InputError("no four nodes of this cluster can train " + study.models[training.model].name);
    const double run_s = kShortest_s * std::pow(kLongest_s / kShortest_s, draw(random, 0, 1));
    training.steps = std::max<int64_t>(1, std::llround(run_s / fastest_s));
    std::vector<size_t> usable;  // kinds, by number of nodes
    for (size_t kind = 0; kind < by_kind.size(); ++kind) {
      const double fixed_s = by_kind[kind] * static_cast<double>(training.steps);
      if (fixed_s > 0 && fixed_s <= kLongestFixed_s)
        usable.insert(usable.end(), study.kinds[kind].names.size(), kind);
    }
    training.kind = usable[random() % usable.size()];
    const double fixed_s = by_kind[training.kind] * static_cast<double>(training.steps);
    training.limit_s = rounded_limit_s(kMargin * fixed_s);
    training.slowdown = draw(random, 1, kSlowest);
    training.submit_s = std::llround(draw(random, 0, end_s));
    gpu_s += fixed_s * training.slowdown * kFixedNodes * study.kinds[training.kind].gpus;
    workload.trainings.push_back(training);
  }
  workload.background = draw_background(trace, study.kinds, (1 - kShare) * offered * (end_s + day_s), -day_s,
                                        end_s, study.seed);
  return workload;
}

}  // namespace sailor::bench
