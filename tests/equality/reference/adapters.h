// LoRA by its definition: W + (alpha / r) B A in the place of every adapted weight W.
#pragma once

#include <string>

#include "planner/spec/job_spec.h"
#include "tests/equality/reference/families.h"

namespace sailor::equality {

bool is_adapter(const std::string& name);

// The weights with which a model without adapters computes the same. `adapters` has A and B by the trainer's
// names.
Weights with_adapters(const JobSpec& job, const Weights& frozen, const Weights& adapters);

}  // namespace sailor::equality
