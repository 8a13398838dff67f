#include "planner/cli/model_source.h"

#include <fmt/format.h>

#include <filesystem>

#include "planner/spec/error.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {

ModelSpec read_model_file(const std::string& path) {
  std::error_code error;
  std::filesystem::path file(path);
  if (std::filesystem::is_directory(file, error)) file /= "config.json";
  ModelSpec model = parse_model_config(read_text_file(file.string()), file.string());
  model.name = fmt::format("{}-{}x{}", model.family, model.layers, model.hidden);
  return model;
}

void set_sequence(ModelSpec& model, int sequence) {
  if (model.learned_positions() && sequence > model.position_rows())
    throw InputError(
        fmt::format("--sequence: the model has {} positions, {} is more", model.position_rows(), sequence));
  model.sequence = sequence;
}

}  // namespace sailor::cli
