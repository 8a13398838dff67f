// The FLOP of training and the peak FLOP/s of a plan's GPUs, which MFU compares. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "planner/plan/plan.h"
#include "planner/spec/catalog.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/training_flops.h"

namespace sailor {

// Peak FLOP/s of all GPUs of the plan at this precision, from the catalog; nothing if it is unknown for one
// of them, or if one is emulated.
std::optional<double> peak_flops(const Plan& plan, const Catalog& catalog, Precision precision);

// training_flops_per_token() when attention ends with a document: the mean over the tokens of documents, of
// which there are `documents[length]`.
double training_flops_per_token(const ModelSpec& model, const std::optional<LoraSpec>& lora,
                                const std::map<int64_t, int64_t>& documents);

}  // namespace sailor
