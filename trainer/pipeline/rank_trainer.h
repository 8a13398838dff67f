// Everything one rank does in an iteration: its stage of the model, its part of the pipeline, gradient sync,
// optimizer.
//
//     RankTrainer trainer(job, plan, rank, factory, data);
//     for (;;) { StepResult r = trainer.step(); ... }
//
// All ranks of the plan construct one and call step() the same number of times. A CommError leaves the object
// unusable (destroy it, and build another over a new factory); the values of parameters are those before the
// step or after it, never in between, unless the error came out of the update itself, which does not
// communicate. One thread per object.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/comm/communicator.h"
#include "trainer/data/token_data.h"
#include "trainer/model/layer.h"
#include "trainer/optim/adamw.h"
#include "trainer/pipeline/pacer.h"

namespace sailor {

struct StepResult {
  int64_t step = 0;       // 0 is the first
  double loss = 0;        // mean over the tokens of the global batch; the same on every rank
  double grad_norm = 0;   // L2 norm of the whole model's gradient; the same on every rank
  int64_t tokens = 0;     // of the global batch
  int max_in_flight = 0;  // most microbatches whose activations this rank held at once
  // Of this rank. They add up to step_s but for bookkeeping.
  double forward_s = 0;
  double backward_s = 0;
  double wait_s = 0;  // for activations and gradients of neighbours
  double gradient_sync_s = 0;
  double update_s = 0;  // all work per parameter: the optimizer, clearing gradients, their norm
  double step_s = 0;
};

class RankTrainer {
 public:
  // Throws InputError when job and plan do not fit each other or the model family, CommError when groups
  // cannot be made. `factory`, `data` and `pacer` outlive the object.
  RankTrainer(const JobSpec& job, const Plan& plan, int rank, CommFactory& factory, const TokenData& data,
              Pacer* pacer = nullptr);
  ~RankTrainer();

  // One iteration. Gradients stay readable until the next call.
  StepResult step();

  int64_t next_step() const;
  void set_next_step(int64_t step);  // after loading a checkpoint

  // This rank's parameters in the order of layers; `value.grad()` is the gradient of the mean loss.
  std::vector<Parameter*> parameters();
  AdamW& optimizer();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sailor
