// A model that is given by its config.json, without a job spec.
#pragma once

#include <string>

#include "planner/spec/job_spec.h"

namespace sailor::cli {

// The model of this config.json, or of the directory that has it. Throws InputError.
ModelSpec read_model_file(const std::string& path);
// Throws InputError when the model has no position for it.
void set_sequence(ModelSpec& model, int sequence);

}  // namespace sailor::cli
