// The queue study: what it submits, and what the policies make of a small cluster.
#include "tests/bench/queue/queue_study.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "planner/spec/error.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor::bench {
namespace {

using testing::HasSubstr;

std::vector<TraceJob> trace_of(size_t jobs) {
  std::vector<TraceJob> trace;
  for (size_t i = 0; i < jobs; ++i)
    trace.push_back(
        {100.0 * static_cast<double>(i), 600.0 + 1000 * static_cast<double>(i % 7), i % 5 == 0 ? 8 : 1});
  return trace;
}

Snapshot small_cluster() {
  return parse_snapshot(
      "sailor_snapshot: 1\nnodes:\n"
      "  - {name: a, count: 6, zone: z, gpu_type: A100-40, gpus: 4}\n"
      "  - {name: t, count: 6, zone: z, gpu_type: A10-24, gpus: 4}\n",
      "small.yaml");
}

TEST(QueueWorkload, TraceFilesArePlainOrCompressed) {
  const std::string scratch = test::scratch_directory("trace") + "/";
  const std::string text = "submit_s,duration_s,gpus,cluster\n0,60,8,x\n5,90.5,1,y\n";
  std::ofstream(scratch + "jobs.csv") << text;
  const std::string packed = scratch + "jobs.csv.gz";
  gzFile file = gzopen(packed.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  for (const std::string& path : {scratch + "jobs.csv", packed}) {
    const std::vector<TraceJob> jobs = load_trace(path);
    ASSERT_EQ(jobs.size(), 2U) << path;
    EXPECT_EQ(jobs[1].submit_s, 5);
    EXPECT_EQ(jobs[1].duration_s, 90.5);
    EXPECT_EQ(jobs[0].gpus, 8);
  }
}

TEST(QueueWorkload, BrokenTraceFilesNameThePlace) {
  const std::string scratch = test::scratch_directory("trace") + "/";
  std::ofstream(scratch + "a.csv") << "submit_s,gpus\n0,1\n";
  EXPECT_THAT(test::error_of([&] { load_trace(scratch + "a.csv"); }),
              HasSubstr("a.csv:1: there is no column duration_s"));
  std::ofstream(scratch + "b.csv") << "submit_s,duration_s,gpus\n0,1,1\n0,soon,1\n";
  EXPECT_THAT(test::error_of([&] { load_trace(scratch + "b.csv"); }),
              HasSubstr("b.csv:3: column 2 must be a number"));
}

TEST(QueueWorkload, BackgroundHoldsTheOfferedHoursWithinTheTime) {
  const Snapshot cluster = small_cluster();
  const std::vector<NodeKind> kinds = kinds_of(cluster);
  const double offered_gpu_s = 5e6;
  const std::vector<BackgroundJob> jobs =
      draw_background(trace_of(2000), kinds, offered_gpu_s, -1000, 9000, 7);
  double gpu_s = 0;
  std::set<int> widths;
  for (const BackgroundJob& job : jobs) {
    EXPECT_GE(job.submit_s, -1000);
    EXPECT_LE(job.submit_s, 9000);
    EXPECT_GE(job.limit_s, job.duration_s);
    widths.insert(job.nodes);
    gpu_s += static_cast<double>(job.duration_s) * job.nodes * kinds[job.kind].gpus;
  }
  EXPECT_EQ(widths, (std::set<int>{1, 2}));  // 1 or 8 GPUs on nodes of 4
  EXPECT_GE(gpu_s, offered_gpu_s);
  EXPECT_LT(gpu_s, offered_gpu_s + 7000.0 * 8);  // one job more at most
  EXPECT_TRUE(std::is_sorted(jobs.begin(), jobs.end(), [](const BackgroundJob& a, const BackgroundJob& b) {
    return a.submit_s < b.submit_s;
  }));
}

TEST(QueueWorkload, UsersRoundTimeLimitsUp) {
  EXPECT_EQ(rounded_limit_s(60), 3600);
  EXPECT_EQ(rounded_limit_s(3601), 2 * 3600);
  EXPECT_EQ(rounded_limit_s(1e9), kLongestLimit_s);
}

TEST(QueueStudy, HandWrittenPlansUseAllGpusAndFit) {
  Snapshot cluster = small_cluster();
  const std::vector<StudyModel> models =
      load_models(SAILOR_SOURCE_DIR "/tests/bench/queue/models.csv", cluster);
  cluster.nodes.resize(4);
  for (const StudyModel& model : models) {
    const auto plan = hand_written(model.inputs->context(cluster));
    ASSERT_TRUE(plan) << model.name;
    EXPECT_TRUE(plan->prediction.fits);
    EXPECT_EQ(num_ranks(plan->plan), 16);
  }
}

TEST(QueueStudy, PlannedStartsBeatFourNodesOfOneTypeOnABusyCluster) {
  const Snapshot cluster = small_cluster();
  const std::vector<NodeKind> kinds = kinds_of(cluster);
  const std::vector<StudyModel> models =
      load_models(SAILOR_SOURCE_DIR "/tests/bench/queue/models.csv", cluster);
  const Study study{cluster, kinds, models, 0.5, 0.9, 3};
  const Workload workload = draw_workload(study, trace_of(2000));
  const std::string file = test::scratch_directory("plans") + "/plans";
  PlanCache plans(models, kinds, file);
  const QueueOutcome fixed = run_study(study, workload, QueuePolicy::fixed, plans);
  const QueueOutcome now = run_study(study, workload, QueuePolicy::now, plans);
  const QueueOutcome planned = run_study(study, workload, QueuePolicy::automatic, plans);
  ASSERT_GT(fixed.jobs, 0U);
  EXPECT_EQ(planned.jobs, fixed.jobs);
  EXPECT_LT(planned.mean_turnaround_s, fixed.mean_turnaround_s);
  EXPECT_LE(planned.mean_turnaround_s, now.mean_turnaround_s);
  EXPECT_LE(planned.others_mean_wait_s, 1.02 * fixed.others_mean_wait_s);
  EXPECT_GT(planned.gpu_hours, 0);

  PlanCache kept(models, kinds, file);
  EXPECT_EQ(run_study(study, workload, QueuePolicy::automatic, kept).mean_turnaround_s,
            planned.mean_turnaround_s);
  EXPECT_EQ(kept.searches(), 0U);
}

TEST(QueueStudy, KeptPlansAreForOneCluster) {
  const Snapshot cluster = small_cluster();
  const std::vector<StudyModel> models =
      load_models(SAILOR_SOURCE_DIR "/tests/bench/queue/models.csv", cluster);
  std::vector<NodeKind> kinds = kinds_of(cluster);
  const std::string file = test::scratch_directory("plans") + "/plans";
  { const PlanCache plans(models, kinds, file); }
  kinds[0].names.pop_back();
  EXPECT_THAT(test::error_of([&] { PlanCache(models, kinds, file); }),
              HasSubstr("plans:1: these are not plans for this cluster"));
}

}  // namespace
}  // namespace sailor::bench
