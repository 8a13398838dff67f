// Seeds for clusters of a few GPUs: equal pipelines with any stages in any order, and two different classes
// of such pipelines, in all numbers that fit.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

struct FewGpusOptions {
  double sequences = 0.15;  // fraction of the effort for equal pipelines
  double pairs = 0.1;       // for two classes
  size_t alike = 6;         // number of pipelines with the same GPUs, the fastest, that are paired
  size_t most_pairs = 600;  // per microbatch size
  double kept = 1.4;        // values beyond this multiple of the best are not computed exactly
  // also skips pairs that take longer than this multiple without messages and gradient reduction
  double factor = 2;
};

void score_few_gpus(Scorer& scorer, const PlanFeatures& offered, const FewGpusOptions& options);

}  // namespace sailor::native
