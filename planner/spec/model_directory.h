// The config.json of a model directory as the Hugging Face libraries write it, and the model that it
// describes. A directory whose model would not compute what ours computes is refused: every setting that
// changes the mathematics is looked at. Weights are the trainer's business (trainer/checkpoint).
#pragma once

#include <string>

#include "planner/spec/field.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// Everything of the model but its name; `from` is `directory`, `sequence` what the model was made for. Throws
// InputError: at `from`, the key of the job spec that names the directory, when there is no such directory,
// else with file and line in config.json.
ModelSpec read_model_config(const std::string& directory, const Field& from);
// The same for a program: errors about the directory itself have no place.
ModelSpec read_model_config(const std::string& directory);

// The model of a config.json whose text this is; `from` stays empty.
ModelSpec parse_model_config(const std::string& json, const std::string& file_name);

// The config.json of that model, readable by read_model_config() and by the transformers package.
// `torch_dtype` is e.g. `float32`. Throws InputError when the family has no such form.
std::string to_model_config(const ModelSpec& model, const std::string& torch_dtype);

}  // namespace sailor
