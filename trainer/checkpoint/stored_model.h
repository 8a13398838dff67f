// A model directory as the Hugging Face libraries write it, as the source of a model's initial weights:
// config.json beside model.safetensors, or beside model.safetensors.index.json and the files that it names.
// Every rank reads its own rows only.
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
  // Opens the directory `model.from` and checks that it holds every parameter of the model, each with the
  // shape that config.json gives it, and nothing else. Throws InputError that names the file and what is
  // wrong.
  explicit StoredModel(const ModelSpec& model);

  void read(const ParameterSpec& parameter, int64_t first, at::Tensor rows) const override;

 private:
  struct Place {
    const SafetensorsFile* file = nullptr;
    const StoredTensor* tensor = nullptr;
  };
  void open(const std::string& directory);
  void check(const ModelSpec& model) const;
  Place find(const std::string& name) const;  // empty when absent
  // Rows (columns, when transposed) [first, first + count) of a stored tensor, as [count, columns].
  at::Tensor read_rows(const ParameterSpec& parameter, const std::string& name, int64_t first,
                       int64_t count) const;

  std::string where_;   // the file that says what there is
  std::string prefix_;  // of the family's names
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Place> places_;
};

}  // namespace sailor
