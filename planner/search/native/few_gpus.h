// Seeds for clusters of a few GPUs: equal pipelines with any stages in any order, and two unlike classes of
// such pipelines side by side, in all numbers that there are GPUs for.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"

namespace sailor::native {

struct FewGpusOptions {
  double sequences = 0.15;  // part of the effort for equal pipelines
  double pairs = 0.1;       // for two classes
  size_t alike = 6;         // pipelines with the same GPUs, the fastest, that are paired
  size_t most_pairs = 600;  // of one size of microbatches
  double kept = 1.4;        // values beyond this multiple of the best are not worked out
  double factor = 2;        // pairs that take longer than this multiple without sums and messages neither
};

void score_few_gpus(Scorer& scorer, const PlanFeatures& offered, const FewGpusOptions& options);

}  // namespace sailor::native
