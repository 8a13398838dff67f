// The inner search: for one microbatch size and one D, the layer splits with a placement class for each stage
// (placement_classes.h) whose lower bound is better than the best known value.
//
// Dynamic programming over partial pipelines (labels) from the last layer to the first, with dominance and
// bounds. A stage's memory depends on how many stages follow it, which is known in this direction. A label
// dominates another at the same layer with the same leading placement class if it has no more stages, uses no
// more of any resource and, for every continuation, ends in no worse time and cost. Stateless.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/search/costs/pipeline_template.h"

namespace sailor {

struct TemplateOutcome {
  bool complete = true;  // false: stopped by time, or labels need too much memory
  int64_t labels = 0;
  bool out_of_memory = false;  // some stage did not fit into memory
  bool over_budget = false;
  bool too_slow = false;
};

// Calls `found` for every complete pipeline template that can meet the limits and may be better than
// `threshold()` at that moment; `threshold` is the value that the caller still accepts (it usually decreases
// as templates are found). `expired` is polled.
TemplateOutcome search_templates(const TemplateProblem& problem, const std::function<double()>& threshold,
                                 const std::function<void(const PipelineTemplate&)>& found,
                                 const std::function<bool()>& expired);

}  // namespace sailor
