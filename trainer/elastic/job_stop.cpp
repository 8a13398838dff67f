#include "trainer/elastic/job_stop.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr double kSteps = 3;          // ranks may begin two more steps before they stop
constexpr double kSaves = 1.5;        // file systems vary
constexpr double kMargin_s = 30;      // to end the processes of the job, to plan and to submit
constexpr double kBytes_per_s = 2e8;  // of a slow shared file system

}  // namespace

double time_to_save_s(const StopLead& lead) {
  return std::max(0.0, lead_s(lead) - kMargin_s / 2);
}

double lead_s(const StopLead& lead) {
  return std::min(kMargin_s + kSteps * lead.step_s + kSaves * lead.save_s, lead.whole_s / 2);
}

double estimated_save_s(int64_t bytes) {
  return static_cast<double>(bytes) / kBytes_per_s;
}

AfterStop after_stop(const StopReason& reason, const std::optional<QueuedJob>& job, int restarts,
                     bool saved_more) {
  if (job && job->restarts != restarts) return AfterStop::starts_again;
  const bool pushed_out = job && (job->out_of_time || job->preempted);
  const bool cancelled = job && job->state != JobState::running && !pushed_out;
  if (cancelled || (!pushed_out && !reason.continues)) return AfterStop::ends;
  return saved_more ? AfterStop::continues : AfterStop::no_progress;
}

}  // namespace sailor
