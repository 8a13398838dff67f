#include "trainer/elastic/next_job.h"

#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

#include "planner/spec/error.h"

namespace sailor {

int end_stopped_job(const StoppedJob& stopped, Scheduler& scheduler, RunSummary& summary) {
  summary.status = "cancelled";
  if (!scheduler.carried_value("SAILOR_SUBMISSION")) return kFailed;
  const AfterStop then =
      after_stop(stopped.stop, scheduler.find_job(stopped.job_id), stopped.restarts, stopped.saved_more);
  if (then == AfterStop::starts_again) summary.error += "; the scheduler starts the job again";
  if (then == AfterStop::no_progress)
    summary.error += "; no other job continues, because this one saved no step: give it more time (--time)";
  if (then != AfterStop::continues) return kFailed;
  summary.status = "failed";
  for (const std::string& name : stopped.variables) unsetenv(name.c_str());
  try {
    summary.next_job = scheduler.submit_next_part(stopped.run_directory);
  } catch (const std::runtime_error& error) {
    summary.error += fmt::format(
        "; the job that continues was not submitted ({}): submit this one again to continue", error.what());
    return kFailed;
  }
  summary.status = "continued";
  summary.error.clear();
  return kDone;
}

}  // namespace sailor
