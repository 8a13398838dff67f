// Memory of a GPU while an elastic job changes its plan: until the state has moved, the process has that of
// the old plan beside the tensors of the new one. Activations, gradients and messages of the old plan are
// freed before (RankTrainer::make_room() in trainer/pipeline/rank_trainer.h). Pure.
//
// A plan whose GPUs could not hold this, for a next plan as large as itself, restarts on change: its ranks
// free their state first, and training resumes from the newest checkpoint.
#pragma once

#include "planner/simulator/prediction.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// The most that a GPU holds while the rank of the plan `before` becomes one of `after`. At most the memory of
// training under `after` where the framework moves the old state to host memory.
int64_t change_bytes(const MemoryBreakdown& before, const MemoryBreakdown& after,
                     const FrameworkStyle& style);

// Of elastic jobs only: the first stage that restarts on change; nullptr if none does.
const StagePrediction* restarts_on_change(const JobSpec& job, const Prediction& prediction,
                                          const FrameworkStyle& style);

// Where such a change of this job gets its state from, for people.
const char* restart_source(const JobSpec& job);
// The same after the loss of state that no other node has.
const char* loss_source(const JobSpec& job);

}  // namespace sailor
