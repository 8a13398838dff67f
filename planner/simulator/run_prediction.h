// The prediction of a measured run, for comparing the two: the run becomes a job, a platform and a plan, and
// goes the way of every plan. Pure and thread-safe.
#pragma once

#include "planner/plan/measured_run.h"
#include "planner/profile/profile_set.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/prediction.h"

namespace sailor {

// Layer times are estimated from the shape of the model; with `measured`, its layer times and sizes and its
// network are used instead, as far as it has them. A platform that the assumptions know says what it adds to
// either; without one, everything must have been measured. Throws InputError when the assumptions know
// neither the run's platform nor its framework nor a GPU type, or an option of the run is none.
Prediction predict_run(const MeasuredRun& record, const Assumptions& assumptions,
                       const ProfileSet* measured = nullptr);

// What the run would have been as a job.
JobSpec job_of(const MeasuredRun& record);

// The framework's description with the run's options.
FrameworkStyle style_of(const MeasuredRun& record, const Assumptions& assumptions);

// Peak memory on the rank whose memory the run's figure is.
int64_t predicted_peak_bytes(const MeasuredRun& record, const Prediction& prediction);

}  // namespace sailor
