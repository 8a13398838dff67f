#include "trainer/launch/requeue.h"

#include <algorithm>
#include <cstdlib>

namespace sailor {
namespace {

// Between two polls.
constexpr double kFirstPause_s = 2, kLongestPause_s = 15, kPauseGrowth = 1.3;
constexpr int kMostTries = 5;  // the scheduler refuses to requeue jobs of --no-requeue

}  // namespace

RequeueVerdict judge_lost_job(const std::optional<QueuedJob>& job,
                              const std::optional<NodeInfo>& controller_node, int restarts) {
  if (!job) return RequeueVerdict::wait;
  if (job->restarts != restarts) return RequeueVerdict::leave;
  switch (job->state) {
    case JobState::failed:
    case JobState::node_failed:
      return RequeueVerdict::requeue;
    case JobState::completing:
      // It completes only after its agents have ended, so they cannot wait for it.
      return job->failed ? RequeueVerdict::requeue : RequeueVerdict::wait;
    case JobState::running:
      return controller_node && controller_node->lost() ? RequeueVerdict::requeue : RequeueVerdict::wait;
    default:
      return RequeueVerdict::leave;
  }
}

void requeue_lost_job(Scheduler& scheduler, double patience_s, const PassingTime& time) {
  const char* id = std::getenv("SAILOR_JOB_ID");
  if (!id || !*id) return;
  const char* count = std::getenv("SAILOR_RESTART_COUNT");
  const int restarts = count ? std::atoi(count) : 0;
  const double end_s = time.now_s() + patience_s;
  const auto pause = [&time](double about_s) { time.sleep(about_s * (0.5 + time.chance())); };
  int tries = 0;
  pause(kFirstPause_s);
  for (double pause_s = kFirstPause_s; time.now_s() < end_s;
       pause_s = std::min(kLongestPause_s, kPauseGrowth * pause_s)) {
    const std::optional<QueuedJob> job = scheduler.find_job(id);
    const std::optional<NodeInfo> node =
        job && !job->head_node.empty() ? scheduler.find_node(job->head_node) : std::nullopt;
    const RequeueVerdict verdict = judge_lost_job(job, node, restarts);
    if (verdict == RequeueVerdict::leave || tries == kMostTries) return;
    // Another agent may have been faster: the next poll shows it.
    if (verdict == RequeueVerdict::requeue) {
      ++tries;
      scheduler.requeue(id);
      if (may_move(scheduler)) scheduler.forget_node_names(id);  // one of them is lost
    }
    pause(pause_s);
  }
}

}  // namespace sailor
