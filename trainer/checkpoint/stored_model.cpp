#include "trainer/checkpoint/stored_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "planner/spec/document.h"
#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"
#include "trainer/checkpoint/block_checksums.h"
#include "trainer/checkpoint/stored_rows.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";

bool ends_with_any(const std::string& text, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
  });
}

// The files that an index names, each once, and which tensor is in which.
std::map<std::string, std::string> read_index(const std::string& path) {
  const Document document = parse_json(read_text_file(path), path);
  const Field root(document);
  const DocumentNode* weight_map = root.node().find("weight_map");
  if (weight_map == nullptr) root.fail("missing key \"weight_map\"");
  std::map<std::string, std::string> file_of;
  for (const auto& [name, file] : Field(document, *weight_map).entries()) {
    const std::string text = file.text();
    if (text.find('/') != std::string::npos) file.fail_type("the name of a file in the same directory");
    file_of[name] = text;
  }
  return file_of;
}

}  // namespace

StoredModel::StoredModel(const ModelSpec& model) : prefix_(model_family(model.family).stored_prefix) {
  open(model.from);
  check(model);
}

void StoredModel::open(const std::string& directory) {
  const std::string single = directory + "/" + kWeights, index = single + ".index.json";
  std::error_code error;
  if (fs::exists(single, error)) {
    where_ = single;
    files_.push_back(std::make_unique<SafetensorsFile>(single));
    for (const StoredTensor& tensor : files_.back()->tensors())
      places_[tensor.name] = {files_.back().get(), &tensor};
    return;
  }
  if (!fs::exists(index, error)) {
    throw InputError(
        {directory, 0},
        fmt::format("model.from: there is neither {0} nor {0}.index.json in it; weights in other "
                    "formats must be saved as safetensors first",
                    kWeights));
  }
  where_ = index;
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [name, file] : read_index(index)) {
    const SafetensorsFile*& shard = opened[file];
    if (shard == nullptr) {
      files_.push_back(std::make_unique<SafetensorsFile>(directory + "/" + file));
      shard = files_.back().get();
    }
    const StoredTensor* tensor = shard->find(name);
    if (tensor == nullptr) {
      throw InputError({index, 0}, fmt::format("weight_map says that {} is in {}, but it is not; the files "
                                               "are of different models, get them again",
                                               in_quotes(name), file));
    }
    places_[name] = {shard, tensor};
  }
}

StoredModel::Place StoredModel::find(const std::string& name) const {
  auto found = places_.find(name);
  if (found == places_.end() && name.compare(0, prefix_.size(), prefix_) == 0)
    found = places_.find(name.substr(prefix_.size()));
  return found == places_.end() ? Place{} : found->second;
}

void StoredModel::check(const ModelSpec& model) const {
  std::set<const StoredTensor*> used;
  for (const ParameterSpec& parameter : list_parameters(model, model.vocabulary)) {
    for (const std::string& name : stored_names(parameter)) {
      const Place place = find(name);
      if (place.tensor == nullptr) {
        throw InputError({where_, 0}, fmt::format("tensor {} is missing, which config.json requires; the two "
                                                  "files are not of the same model",
                                                  in_quotes(name)));
      }
      const std::vector<int64_t> expected = stored_shape(parameter, name);
      if (place.tensor->shape != expected) {
        throw InputError(
            {place.file->path(), 0},
            fmt::format("tensor {} has shape [{}], config.json makes it [{}]; the two files are "
                        "not of the same model",
                        in_quotes(name), fmt::join(place.tensor->shape, ", "), fmt::join(expected, ", ")));
      }
      stored_scalar_type(place.tensor->dtype, place.file->path());
      used.insert(place.tensor);
    }
  }
  // Tied models are sometimes stored with the head's matrix all the same.
  ModelSpec untied = model;
  untied.tied_embeddings = false;
  for (const ParameterSpec& parameter : list_parameters(untied, model.vocabulary)) {
    for (const std::string& name : stored_names(parameter)) used.insert(find(name).tensor);
  }
  const std::vector<std::string>& buffers = model_family(model.family).stored_buffers;
  for (const auto& [name, place] : places_) {
    if (used.count(place.tensor) == 0 && !ends_with_any(name, buffers)) {
      throw InputError({place.file->path(), 0},
                       fmt::format("tensor {} is not part of a {} of {} layers; the model computes something "
                                   "that the trainer does not",
                                   in_quotes(name), model.family, model.layers));
    }
  }
}

std::string StoredModel::digest() const {
  constexpr int64_t kSampleBytes = 4096;
  std::string text;
  std::vector<char> sample(kSampleBytes);
  for (const auto& [name, place] : places_) {
    const StoredTensor& tensor = *place.tensor;
    text += fmt::format("{} {} [{}]", name, tensor.dtype, fmt::join(tensor.shape, ","));
    const int64_t bytes = std::min(kSampleBytes, tensor.bytes);
    for (const int64_t first : {int64_t{0}, tensor.bytes - bytes}) {
      place.file->read(tensor, first, bytes, sample.data());
      text += " " + checksum_of(sample.data(), bytes);
    }
    text += '\n';
  }
  return checksum_of(text.data(), static_cast<int64_t>(text.size()));
}

at::Tensor StoredModel::read_rows(const ParameterSpec& parameter, const std::string& name, int64_t first,
                                  int64_t count) const {
  const Place place = find(name);
  const at::ScalarType type = stored_scalar_type(place.tensor->dtype, place.file->path());
  const auto element = static_cast<int64_t>(at::elementSize(type));
  const int64_t columns = std::max<int64_t>(1, parameter.columns);
  if (!parameter.stored.transposed) {
    at::Tensor rows = at::empty({count, columns}, type);
    place.file->read(*place.tensor, first * columns * element, count * columns * element, rows.data_ptr());
    return rows;
  }
  const int64_t stored_row = place.tensor->shape[1];
  at::Tensor columns_of = at::empty({columns, count}, type);
  if (count == stored_row) {
    place.file->read(*place.tensor, 0, columns * count * element, columns_of.data_ptr());
  } else {
    for (int64_t i = 0; i < columns; ++i) {
      place.file->read(*place.tensor, (i * stored_row + first) * element, count * element,
                       static_cast<char*>(columns_of.data_ptr()) + i * count * element);
    }
  }
  return columns_of.t();
}

void StoredModel::read(const ParameterSpec& parameter, int64_t first, at::Tensor rows) const {
  const StoredRows& stored = parameter.stored;
  const int64_t count = rows.size(0), columns = std::max<int64_t>(1, parameter.columns);
  at::Tensor out = rows.view({count, columns});
  if (stored.groups == 1 && stored.pieces.size() == 1) {
    const StoredPiece& piece = stored.pieces.front();
    out.copy_(read_rows(parameter, piece.tensor, piece.first + first, count));
    return;
  }
  // Whole groups, of which the rows are a part: those of one piece are next to each other in their tensor.
  int64_t per_group = 0;
  for (const StoredPiece& piece : stored.pieces) per_group += piece.rows;
  const int64_t group = first / per_group, end = (first + count + per_group - 1) / per_group;
  at::Tensor groups = at::empty({end - group, per_group, columns}, rows.options().requires_grad(false));
  int64_t offset = 0;
  for (const StoredPiece& piece : stored.pieces) {
    groups.narrow(1, offset, piece.rows)
        .copy_(
            read_rows(parameter, piece.tensor, piece.first + group * piece.rows, (end - group) * piece.rows)
                .reshape({end - group, piece.rows, columns}));
    offset += piece.rows;
  }
  out.copy_(groups.view({-1, columns}).narrow(0, first - group * per_group, count));
}

}  // namespace sailor
