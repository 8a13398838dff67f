// A Hugging Face model directory as the source of initial weights: config.json and model.safetensors, or
// model.safetensors.index.json and the files that it names. Every rank reads only its own rows.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/model/parameter.h"

namespace sailor {

class StoredModel : public WeightSource {
 public:
  // Opens the directory `model.from` and checks that it has every parameter of the model, each with the shape
  // from config.json, and nothing else. Throws InputError that names the file and the error.
  explicit StoredModel(const ModelSpec& model);

  void read(const ParameterSpec& parameter, int64_t first, at::Tensor rows) const override;
  // Of names, types and shapes, and of the first and last bytes of every tensor: tells models apart without
  // reading them whole.
  std::string digest() const;

 private:
  struct Place {
    const SafetensorsFile* file = nullptr;
    const StoredTensor* tensor = nullptr;
  };
  void open(const std::string& directory);
  void check(const ModelSpec& model) const;
  Place find(const std::string& name) const;  // empty if absent
  // Rows (columns, if transposed) [first, first + count) of a stored tensor, as [count, columns].
  at::Tensor read_rows(const ParameterSpec& parameter, const std::string& name, int64_t first,
                       int64_t count) const;

  std::string where_;   // the file that lists the tensors
  std::string prefix_;  // of the family's tensor names
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Place> places_;
};

}  // namespace sailor
