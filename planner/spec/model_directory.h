// The config.json of a Hugging Face model directory, and the model that it describes. A directory whose model
// the trainer would compute differently is rejected: every setting that changes the mathematics is checked.
// Weights are read in trainer/checkpoint.
#pragma once

#include <string>

#include "planner/spec/field.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// All of the model but its name; `from` is `directory`, `sequence` the model's number of positions. Throws
// InputError: at `from`, the key of the job spec that names the directory, when there is no such directory;
// otherwise with file and line in config.json.
ModelSpec read_model_config(const std::string& directory, const Field& from);
// The same for programs: errors about the directory itself have no place.
ModelSpec read_model_config(const std::string& directory);

// The model of this config.json text; `from` stays empty.
ModelSpec parse_model_config(const std::string& json, const std::string& file_name);

// The config.json of that model, readable by read_model_config() and by the transformers package.
// `torch_dtype` is e.g. `float32`. Throws InputError when the family has no config.json.
std::string to_model_config(const ModelSpec& model, const std::string& torch_dtype);

}  // namespace sailor
