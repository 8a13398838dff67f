#include "trainer/record/measured_run.h"

#include <algorithm>

namespace sailor {

RunRecord measured_run(const RunSummary& summary, const JobSpec& job, const Plan& plan) {
  RunRecord record;
  record.name = summary.job_id.empty() ? job.model.name : summary.job_id;
  record.framework = "sailor";
  record.platform = "site";
  record.precision = job.training.precision;
  record.model = job.model.name;
  record.family = job.model.family;
  record.shape = shape_of(job.model);
  record.plan = plan;
  record.plan.prediction.reset();
  record.ran = summary.status == "finished";
  if (summary.measured_iteration_s) record.iteration_s.push_back(*summary.measured_iteration_s);
  int64_t peak_bytes = 0;
  for (const RankSummary& rank : summary.ranks) peak_bytes = std::max(peak_bytes, rank.peak_rss_bytes);
  if (peak_bytes > 0) record.peak_memory_bytes.push_back(static_cast<double>(peak_bytes));
  return record;
}

}  // namespace sailor
