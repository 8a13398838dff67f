// Adapters (LoRA) for the PEFT library to compute with, and what the trainer computes with them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "planner/spec/job_spec.h"
#include "trainer/checkpoint/stored_model.h"

namespace sailor {

struct Computed {
  at::Tensor logits, loss;
  std::map<std::string, at::Tensor> values, gradients;  // by parameter; gradients of what is trained
};

// Predicting token i + 1 of every row of `ids` from the first i, in one process. With `lora`, B starts from
// random values: as long as it is zero A has no gradient.
Computed compute(const ModelSpec& model, const StoredModel& weights, const std::optional<LoraSpec>& lora,
                 const at::Tensor& ids, at::ScalarType dtype);

// Draws a LoraSpec and adapters from the seed, and writes, in double precision: DIRECTORY/adapter as
// export_adapters() does, with `computed.safetensors` (logits, loss, `gradient.NAME` by the names of the
// adapters' file) in it, and DIRECTORY/merged, the model with the adapters merged into it.
void write_adapters(const std::string& directory, const ModelSpec& model, const StoredModel& weights,
                    const at::Tensor& ids, uint64_t seed);

}  // namespace sailor
