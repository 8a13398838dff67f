// The model that a checkpoint has: its own weights, or those of its base model with its adapters merged.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/stored_model.h"
#include "trainer/model/parameter.h"

namespace sailor {

// The checkpoints that a path means: it is one, or a directory of some. Newest first, at least one. Throws
// InputError.
std::vector<std::string> checkpoints_of(std::string path);

// The newest complete one of those. `told` gets a line about each that is damaged. Throws InputError.
std::unique_ptr<CheckpointReader> open_newest(const std::string& path,
                                              const std::function<void(const std::string&)>& told);

// One thread per object.
class TrainedModel : public WeightSource {
 public:
  // `base` is the directory of the base model of adapters; empty = where training found it. Throws InputError
  // if it is not there, or has other weights. `reader` outlives the object. `average`: of the averages of
  // what was trained.
  TrainedModel(CheckpointReader& reader, const std::string& base, bool average = false);

  const ModelSpec& model() const { return model_; }
  // An unsharded parameter in the type of the checkpoint, without padding. Throws CheckpointDamaged.
  at::Tensor weight(const ParameterSpec& parameter) const;
  void read(const ParameterSpec& parameter, int64_t first, at::Tensor rows) const override;

 private:
  CheckpointReader& reader_;
  ModelSpec model_;
  const bool average_;
  std::unique_ptr<StoredModel> base_;  // of adapters
};

}  // namespace sailor
