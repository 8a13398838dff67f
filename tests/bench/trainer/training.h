// Shared by benchmarks of training: one pipeline over ranks on this machine, and tokens to train on.
#pragma once

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/data/token_data.h"

namespace sailor::bench {

struct Shape {
  int stages = 1;
  int tp = 1;
  int microbatches = 1;

  int ranks() const { return stages * tp; }
};

// One pipeline with balanced stages.
Plan even_plan(const JobSpec& job, const Shape& shape);
TokenData random_tokens(const JobSpec& job);

}  // namespace sailor::bench
