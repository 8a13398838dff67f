#include "planner/profile/layer_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "planner/spec/error.h"

namespace sailor {

namespace {

template <typename T>
using ByKind = std::map<LayerKind, T>;  // the entries of one cell

// One entry per layer of the model. Empty when a kind is missing.
template <typename T>
std::vector<T> unroll_kinds(const ByKind<T>& kinds, const ModelSpec& model) {
  for (const LayerKind kind : {LayerKind::embedding, LayerKind::block, LayerKind::head})
    if (!kinds.contains(kind)) return {};
  std::vector<T> layers;
  for (int layer = 0; layer < model.num_all_layers(); ++layer) {
    const auto own = kinds.find(kind_of_layer(model, layer));
    layers.push_back(own != kinds.end() ? own->second : kinds.at(LayerKind::block));
  }
  return layers;
}

// The number of the first block of a kind in the pattern.
int first_block(const ModelSpec& model, char kind) {
  return static_cast<int>(model.window_pattern.find(kind)) + 1;
}

ModelSpec with_blocks(ModelSpec model, int blocks) {
  if (blocks < 1) throw std::invalid_argument(fmt::format("a model of {} blocks", blocks));
  model.layers = blocks;
  return model;
}

}  // namespace

const std::vector<const ModelKey*>& profiled_keys() {
  static const auto& keys = *new std::vector<const ModelKey*>([] {
    std::vector<const ModelKey*> found;
    for (const char* name :
         {"head_size", "attention_window", "window_pattern", "norm", "norm_place", "parallel_residual",
          "shared_norm", "position_embedding", "qk_norm", "qkv_bias", "proj_bias", "attention_soft_cap",
          "gated_mlp", "activation", "mlp_bias", "logit_soft_cap"})
      found.push_back(find_model_key(name));
    return found;
  }());
  return keys;
}

const std::vector<std::string>& layer_kind_names() {
  static const std::vector<std::string> names = {"embedding", "block", "local_block", "head"};
  return names;
}

const std::string& to_string(LayerKind kind) {
  return layer_kind_names()[static_cast<size_t>(kind)];
}

std::vector<LayerKind> layer_kinds(const ModelSpec& model) {
  if (model.mixes_local_blocks())
    return {LayerKind::embedding, LayerKind::block, LayerKind::local_block, LayerKind::head};
  return {LayerKind::embedding, LayerKind::block, LayerKind::head};
}

LayerKind kind_of_layer(const ModelSpec& model, int layer) {
  if (layer == 0) return LayerKind::embedding;
  if (layer > model.layers) return LayerKind::head;
  return model.mixes_local_blocks() && model.attends_locally(layer) ? LayerKind::local_block
                                                                    : LayerKind::block;
}

int layer_of_kind(const ModelSpec& model, LayerKind kind) {
  switch (kind) {
    case LayerKind::embedding:
      return 0;
    case LayerKind::block:
      return model.mixes_local_blocks() ? first_block(model, 'G') : 1;
    case LayerKind::local_block:
      return first_block(model, 'L');
    case LayerKind::head:
      break;
  }
  return model.layers + 1;
}

ModelSpec with_every_kind(ModelSpec model) {
  const int blocks =
      model.mixes_local_blocks() ? std::max(first_block(model, 'G'), first_block(model, 'L')) : 1;
  model.layers = std::max(model.layers, blocks);
  return model;
}

std::vector<int> LayerProfile::microbatches() const {
  std::set<int> values;
  for (const auto& entry : cells) values.insert(entry.first.first);
  return {values.begin(), values.end()};
}

std::vector<ReplicaShape> LayerProfile::shapes() const {
  std::set<ReplicaShape> values;
  for (const auto& entry : cells) values.insert(entry.first.second);
  return {values.begin(), values.end()};
}

bool matches(const ProfileFile& profile, const ModelSpec& model, Precision precision) {
  const ModelSpec& own = profile.model;
  return profile.precision == precision && own.family == model.family && own.hidden == model.hidden &&
         own.heads == model.heads && own.feed_forward == model.feed_forward &&
         own.sequence == model.sequence && own.vocabulary == model.vocabulary &&
         own.key_value_heads() == model.key_value_heads() && own.tied_embeddings == model.tied_embeddings &&
         std::all_of(profiled_keys().begin(), profiled_keys().end(),
                     [&](const ModelKey* key) { return key->equal(own, model); });
}

LayerProfile unroll(const ProfileFile& profile, int blocks) {
  const ModelSpec model = with_blocks(profile.model, blocks);
  std::map<std::pair<int, ReplicaShape>, ByKind<LayerTimes>> kinds;
  for (const ProfileFile::TimeCell& cell : profile.times) {
    kinds[{cell.microbatch, cell.shape}][cell.kind] = cell.times;
  }
  LayerProfile layers;
  layers.gpu_type = profile.gpu_type;
  layers.file = profile.file;
  layers.overheads = profile.overheads;
  layers.measured = profile.measured;
  for (const auto& [key, cell] : kinds) {
    LayerProfile::Cell unrolled = unroll_kinds(cell, model);
    if (!unrolled.empty()) layers.cells.emplace(key, std::move(unrolled));
  }
  return layers;
}

ModelSizes unroll_sizes(const ProfileFile& profile, int blocks) {
  const ModelSpec model = with_blocks(profile.model, blocks);
  std::map<ReplicaShape, ByKind<LayerSizes>> kinds;
  for (const ProfileFile::SizeCell& cell : profile.sizes) kinds[cell.shape][cell.kind] = cell.sizes;
  ModelSizes sizes;
  for (const auto& [shape, cell] : kinds) {
    std::vector<LayerSizes> unrolled = unroll_kinds(cell, model);
    if (unrolled.empty()) continue;
    if (profile.model.tied_embeddings) {  // measured alone, a head holds the matrix
      const int64_t rows = (int64_t{profile.model.vocabulary} + shape.parts() - 1) / shape.parts();
      unrolled.back().tied_parameters = std::min(unrolled.back().parameters, rows * profile.model.hidden);
    }
    // A block that is computed again keeps what it was given; the two ends are not computed again.
    for (size_t layer = 1; layer + 1 < unrolled.size(); ++layer)
      unrolled[layer].checkpoint_bytes =
          std::min(unrolled[layer].activation_bytes,
                   element_bytes(profile.precision) * unrolled[layer - 1].output_elements);
    sizes.by_shape.emplace(shape, std::move(unrolled));
  }
  return sizes;
}

}  // namespace sailor
