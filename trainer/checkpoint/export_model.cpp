#include "trainer/checkpoint/export_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "planner/spec/model_directory.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text_file.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/stored_rows.h"
#include "trainer/model/element_types.h"

namespace sailor {
void export_model(const std::string& directory, const ModelSpec& model, at::ScalarType type,
                  const std::function<at::Tensor(const ParameterSpec&)>& whole) {
  const std::string config = to_model_config(model, names_of(type).config_name);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw std::runtime_error(fmt::format("cannot make {}: {}", directory, error.message()));

  const std::vector<ParameterSpec> parameters = list_parameters(model, model.vocabulary);
  std::vector<StoredTensor> tensors;
  for (const ParameterSpec& parameter : parameters) {
    for (const std::string& name : stored_names(parameter))
      tensors.push_back({name, stored_dtype(type), stored_shape(parameter, name)});
  }
  SafetensorsWriter writer(directory + "/model.safetensors", tensors, {{"format", "pt"}});
  for (const ParameterSpec& parameter : parameters) {
    for (const auto& [name, tensor] : stored_tensors(parameter, whole(parameter))) {
      const at::Tensor converted = tensor.to(type).contiguous();
      writer.write(name, converted.data_ptr(), static_cast<int64_t>(converted.nbytes()));
    }
  }
  writer.finish();
  write_file_atomically(directory + "/config.json", config);
}

}  // namespace sailor
