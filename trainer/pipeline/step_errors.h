// The texts of errors with which a step ends the training on every rank. Pure.
#pragma once

#include <string>

#include "planner/spec/job_spec.h"
#include "trainer/optim/loss_scaler.h"
#include "trainer/optim/spike_guard.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {

// The loss or the norm is not finite; `ranks` are those whose part is not.
std::string not_finite_text(const StepResult& result, const std::string& ranks);
// Another overflow at the smallest scale.
std::string overflow_text(const StepResult& result, const LossScaleSpec& spec, const LossScaleState& state);
// Another spike after as many as may be skipped.
std::string spike_text(const StepResult& result, const SpikeState& state);

// Replicas differ after the step (divergence_lines()).
std::string divergence_text(const StepResult& result);

}  // namespace sailor
