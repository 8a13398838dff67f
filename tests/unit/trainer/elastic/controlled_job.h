// The job of tests of the controller, which plan and never compute: the smallest model that TP 4 can split.
#pragma once

#include "planner/spec/job_spec.h"

namespace sailor {

inline JobSpec controlled_job(int64_t global_batch, int64_t steps) {
  JobSpec job;
  job.model.name = "m";
  job.model.family = "gpt2";
  job.model.layers = 4;
  job.model.hidden = 8;
  job.model.heads = 4;
  job.model.feed_forward = 32;
  job.model.sequence = 8;
  job.model.vocabulary = 64;
  job.training.global_batch = global_batch;
  job.training.steps = steps;
  return job;
}

}  // namespace sailor
