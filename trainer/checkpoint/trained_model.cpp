#include "trainer/checkpoint/trained_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "planner/spec/error.h"
#include "trainer/checkpoint/adapter_directory.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/stored_rows.h"
#include "trainer/checkpoint/training_state.h"

namespace sailor {

namespace fs = std::filesystem;

std::vector<std::string> checkpoints_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  if (!fs::is_directory(path, error)) throw InputError({path, 0}, "is not a directory");
  if (fs::exists(path + "/manifest.json", error) || fs::exists(path + "/DONE", error)) return {path};
  std::vector<std::string> found = list_checkpoints(path);
  if (found.empty()) throw InputError({path, 0}, "has no checkpoints (step-N)");
  return found;
}

std::unique_ptr<CheckpointReader> open_newest(const std::string& path,
                                              const std::function<void(const std::string&)>& told) {
  for (const std::string& candidate : checkpoints_of(path)) {
    try {
      return std::make_unique<CheckpointReader>(candidate, open_checkpoint(candidate));
    } catch (const CheckpointDamaged& damage) {
      told(skipped_line(candidate, damage.what()));
    }
  }
  throw InputError({path, 0}, "has no complete checkpoint");
}

TrainedModel::TrainedModel(CheckpointReader& reader, const std::string& base, bool average)
    : reader_(reader), model_(reader.manifest().model), average_(average) {
  const CheckpointManifest& manifest = reader.manifest();
  if (!manifest.lora) return;
  if (!base.empty()) model_.from = base;
  std::error_code error;
  if (!fs::is_directory(model_.from, error))
    throw InputError({model_.from, 0}, "is not a directory; name that of the base model with --base");
  base_ = std::make_unique<StoredModel>(model_);
  if (base_->digest() != manifest.lora->base_digest)
    throw InputError({model_.from, 0}, fmt::format("has other weights than the base model of {}, {}",
                                                   reader.path(), manifest.model.from));
}

at::Tensor TrainedModel::weight(const ParameterSpec& parameter) const {
  if (!base_) return read_whole(reader_, parameter, average_);
  const CheckpointManifest& manifest = reader_.manifest();
  std::vector<int64_t> shape = {parameter.real_rows};
  if (parameter.columns > 0) shape.push_back(parameter.columns);
  at::Tensor value =
      at::empty(shape, stored_scalar_type(kind_of(manifest.precision).state_type, reader_.path()));
  base_->read(parameter, 0, value);
  return with_merged_adapters(parameter, value, model_, *manifest.lora, [this](const ParameterSpec& adapter) {
    return read_whole(reader_, adapter, average_);
  });
}

void TrainedModel::read(const ParameterSpec& parameter, int64_t first, at::Tensor rows) const {
  rows.copy_(weight(parameter).narrow(0, first, rows.size(0)));
}

}  // namespace sailor
