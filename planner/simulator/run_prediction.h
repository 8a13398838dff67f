// The prediction of a measured run, to compare both: the run becomes a job, a platform and a plan, and is
// predicted like every plan. Pure and thread-safe.
#pragma once

#include "planner/plan/measured_run.h"
#include "planner/profile/profile_set.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/prediction.h"

namespace sailor {

// Layer times are estimated from the shape of the model; where `measured` has them, its layer times, sizes
// and network are used instead. The overheads come from the run's platform, if the assumptions have it;
// otherwise everything must have been measured. Throws InputError when the assumptions have neither the run's
// platform nor its framework nor a GPU type, or an option of the run is unknown.
Prediction predict_run(const MeasuredRun& record, const Assumptions& assumptions,
                       const ProfileSet* measured = nullptr);

// The runs of a file or directory (load_measured_runs). Throws InputError, also when there is none, or when
// the parts of one contradict each other.
std::vector<MeasuredRun> load_checked_runs(const std::string& path);

// The run as a job.
JobSpec job_of(const MeasuredRun& record);

// The framework's description with the run's options.
FrameworkStyle style_of(const MeasuredRun& record, const Assumptions& assumptions);

// Predicted peak memory of the rank whose memory was measured.
int64_t predicted_peak_bytes(const MeasuredRun& record, const Prediction& prediction);

}  // namespace sailor
