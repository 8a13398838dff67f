// sailor model: parameters and FLOPs of a model, in all and by layer.
#include <filesystem>

#include "planner/cli/commands.h"
#include "planner/cli/model_source.h"
#include "planner/cli/output.h"
#include "planner/report/model_table.h"
#include "planner/spec/error.h"

namespace sailor::cli {

int run_model(const ModelCommand& command) {
  const std::filesystem::path path(command.model);
  std::error_code error;
  const bool config = path.extension() == ".json" || std::filesystem::is_directory(path, error);
  ModelSpec model;
  std::optional<LoraSpec> lora;
  if (config) {
    model = read_model_file(command.model);
  } else {
    const JobSpec job = load_job_spec(command.model);
    model = job.model;
    lora = job.training.lora;
  }
  if (command.sequence) set_sequence(model, *command.sequence);
  print(command.format == Format::json ? model_json(model, lora) : model_table(model, lora));
  return kDone;
}

}  // namespace sailor::cli
