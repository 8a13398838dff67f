// The inner search: for one microbatch size and one D, the cuts of the layers into stages, each stage in a
// placement class (placement_classes.h), whose lower bound is better than what is known.
//
// Dynamic programming from the last layer to the first over partial pipelines (labels), with dominance and
// bounds. A stage's memory depends on how many stages follow it, which is known in this direction. A label
// dominates another at the same layer behind the same leading placement class when it has no more stages,
// uses no more of any resource and can end in no worse time and cost whatever comes before. Holds no state
// between calls.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/search/costs/pipeline_template.h"

namespace sailor {

struct TemplateOutcome {
  bool complete = true;  // false: stopped by time, or the labels take too much memory
  int64_t labels = 0;
  bool out_of_memory = false;  // some stage does not fit in memory
  bool over_budget = false;
  bool too_slow = false;
};

// Calls `found` for every complete pipeline template that can meet the limits and may be better than
// `threshold()` at that moment; `threshold` is what the caller would still accept (it usually falls as
// pipeline templates are found). `expired` is polled.
TemplateOutcome search_templates(const TemplateProblem& problem, const std::function<double()>& threshold,
                                 const std::function<void(const PipelineTemplate&)>& found,
                                 const std::function<bool()>& expired);

}  // namespace sailor
