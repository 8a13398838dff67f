// How long trainings take from submission to end on a busy cluster, and what others have of it.
//
//     bench_queue --jobs FILE.csv[.gz] [--cluster SNAPSHOT.yaml] --load 0.95 --seed S --policy fixed|now|auto
//     --days D [--plans FILE] [--trainings FILE.csv]
//
// CSV, a line per policy; --policy takes several. Most of the time goes into searches: --plans keeps their
// plans for other loads and seeds on the same cluster. The background is a measured trace of jobs
// (submit_s,duration_s,gpus); queue/queue_study.h says what the policies are. Without the trace: "skipped: no
// data".
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>

#include "planner/spec/error.h"
#include "tests/bench/queue/queue_study.h"

namespace sailor::bench {
namespace {

struct Options {
  std::string jobs, cluster = SAILOR_SOURCE_DIR "/tests/bench/queue/cluster.yaml", plans, trainings;
  double load = 0.95, days = 14;
  uint64_t seed = 1;
  std::vector<std::string> policies = {"fixed", "now", "auto"};
};

QueuePolicy policy_of(const std::string& name) {
  return name == "fixed" ? QueuePolicy::fixed : name == "now" ? QueuePolicy::now : QueuePolicy::automatic;
}

void write_trainings(std::ofstream& file, const std::string& policy, const std::vector<StudyModel>& models,
                     const QueueOutcome& outcome) {
  if (!file.is_open()) return;
  for (const TrainingOutcome& one : outcome.trainings)
    file << fmt::format("{},{},{},{},{:.0f},{:.0f},{:.1f},{},{}\n", policy, models[one.training->model].name,
                        one.training->submit_s, one.training->limit_s, one.wait_s, one.turnaround_s,
                        one.gpu_hours, one.parts, one.changes);
}

int run(const Options& options) {
  fmt::print(stderr, "seed {}\n", options.seed);
  fmt::print(
      "policy,jobs,mean_turnaround_s,p95_turnaround_s,mean_wait_s,gpu_hours,usd,others_mean_wait_s,"
      "others_p95_wait_s,lost_steps\n");
  if (!std::filesystem::exists(options.jobs)) {
    fmt::print(stderr, "skipped: no data ({} is not there)\n", options.jobs);
    return kDone;
  }
  const Snapshot cluster = load_snapshot(options.cluster);
  const std::vector<NodeKind> kinds = kinds_of(cluster);
  const std::vector<StudyModel> models =
      load_models(SAILOR_SOURCE_DIR "/tests/bench/queue/models.csv", cluster);
  const Study study{cluster, kinds, models, options.days, options.load, options.seed};
  const Workload workload = draw_workload(study, load_trace(options.jobs));
  PlanCache plans(models, kinds, options.plans);
  std::ofstream trainings;
  if (!options.trainings.empty()) {
    trainings.open(options.trainings);
    if (!trainings) throw InputError({options.trainings}, "cannot be written");
    trainings << "policy,model,submit_s,limit_s,wait_s,turnaround_s,gpu_hours,parts,changes\n";
  }
  for (const std::string& policy : options.policies) {
    const QueueOutcome o = run_study(study, workload, policy_of(policy), plans);
    fmt::print("{},{},{:.0f},{:.0f},{:.0f},{:.1f},{:.2f},{:.0f},{:.0f},{}\n", policy, o.jobs,
               o.mean_turnaround_s, o.p95_turnaround_s, o.mean_wait_s, o.gpu_hours, o.usd,
               o.others_mean_wait_s, o.others_p95_wait_s, o.lost_steps);
    fflush(stdout);
    write_trainings(trainings, policy, models, o);
  }
  fmt::print(stderr, "{} background jobs, {} searches\n", workload.background.size(), plans.searches());
  return kDone;
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  sailor::bench::Options options;
  CLI::App app{"Trainings on a busy cluster, by policy of submission"};
  app.add_option("--jobs", options.jobs, "background jobs")->required()->type_name("FILE.csv[.gz]");
  app.add_option("--cluster", options.cluster, "cluster snapshot with nodes of a few GPU types")
      ->type_name("FILE");
  app.add_option("--load", options.load, "offered GPU hours over capacity")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 2.0));
  app.add_option("--seed", options.seed, "of the workload")->capture_default_str();
  app.add_option("--policy", options.policies, "fixed, now, auto (default: all)")
      ->check(CLI::IsMember({"fixed", "now", "auto"}));
  app.add_option("--plans", options.plans, "keeps plans for further studies of this cluster")
      ->type_name("FILE");
  app.add_option("--trainings", options.trainings, "writes a line of CSV per policy and training")
      ->type_name("FILE");
  app.add_option("--days", options.days, "length of the study")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 365.0));
  CLI11_PARSE(app, argc, argv);
  try {
    return sailor::bench::run(options);
  } catch (const sailor::InputError& error) {
    fmt::print(stderr, "bench_queue: {}\n", error.what());
    return sailor::kBadInput;
  }
}
