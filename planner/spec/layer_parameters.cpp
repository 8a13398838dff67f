#include "planner/spec/layer_parameters.h"

#include <fmt/format.h>

#include <cmath>

namespace sailor {
namespace {

// The name of the embedding's matrix, whichever layer holds it.
constexpr const char* kTokenMatrix = "0.token.weight";
// Of initial weights, as GPT-2.
constexpr double kInitialDeviation = 0.02;

// A bias is stored in the order of the weight's rows.
StoredRows bias_of(const StoredRows& weight) {
  StoredRows bias = weight.with_suffix(".bias");
  bias.transposed = false;
  return bias;
}

}  // namespace

void LayerParameters::add(ParameterSpec spec) {
  for (StoredPiece& piece : spec.stored.pieces) {
    if (piece.rows == 0) piece.rows = spec.real_rows;
  }
  list_.push_back(std::move(spec));
}

ParameterSpec LayerParameters::described(const std::string& name, int64_t rows, StoredRows stored) const {
  return {.name = fmt::format("{}.{}", layer_, name),
          .layer = layer_,
          .rows = rows,
          .real_rows = rows,
          .stored = std::move(stored)};
}

ParameterSpec LayerParameters::matrix(const std::string& name, int64_t rows, double deviation,
                                      StoredRows stored) const {
  ParameterSpec spec = described(name, rows, std::move(stored));
  spec.columns = model_.hidden;
  spec.decay = true;
  spec.deviation = deviation;
  return spec;
}

ParameterSpec LayerParameters::vocabulary_matrix(const std::string& full_name,
                                                 const std::string& stored) const {
  ParameterSpec spec = matrix("", padded_vocabulary_, kInitialDeviation, stored);
  spec.name = full_name;
  spec.real_rows = model_.vocabulary;
  spec.sharded = true;
  return spec;
}

void LayerParameters::token_embedding(const std::string& stored) {
  ParameterSpec spec = vocabulary_matrix(kTokenMatrix, stored);
  if (model_.tied_embeddings) spec.layer = model_.num_all_layers();
  add(std::move(spec));
}

void LayerParameters::position_embedding(const std::string& stored, int unused) {
  add(matrix("position.weight", model_.position_rows() + unused, kInitialDeviation / 2, stored));
}

void LayerParameters::head(const std::string& stored, const std::string& stored_embedding) {
  if (!model_.tied_embeddings) {
    add(vocabulary_matrix(fmt::format("{}.head.weight", layer_), stored));
    return;
  }
  ParameterSpec spec = vocabulary_matrix(kTokenMatrix, stored_embedding);
  spec.layer = model_.num_all_layers();
  spec.tied_copy = true;
  add(std::move(spec));
}

void LayerParameters::add_vector(const std::string& name, int64_t size, double value, StoredRows stored,
                                 bool sharded) {
  ParameterSpec spec = described(name, size, std::move(stored));
  spec.mean = value;
  spec.sharded = sharded;
  add(std::move(spec));
}

void LayerParameters::layer_norm(const std::string& name, const std::string& stored) {
  rms_norm(name, stored);
  add_vector(name + ".bias", model_.hidden, 0.0, stored + ".bias", false);
}

void LayerParameters::rms_norm(const std::string& name, const std::string& stored) {
  add_vector(name + ".weight", model_.hidden, 1.0, stored + ".weight", false);
}

void LayerParameters::output_split(const std::string& name, int64_t outputs, const StoredRows& stored,
                                   Bias bias) {
  ParameterSpec weight = matrix(name + ".weight", outputs, kInitialDeviation, stored.with_suffix(".weight"));
  weight.sharded = true;
  add(std::move(weight));
  if (bias == Bias::yes) add_vector(name + ".bias", outputs, 0.0, bias_of(stored), true);
}

void LayerParameters::input_split(const std::string& name, int64_t inputs, const StoredRows& stored,
                                  Bias bias) {
  const double deviation = kInitialDeviation / std::sqrt(2.0 * model_.layers);  // two writers in a block
  ParameterSpec weight = matrix(name + ".weight", inputs, deviation, stored.with_suffix(".weight"));
  weight.sharded = true;
  add(std::move(weight));
  // The rows of the weight are inputs: the bias has the outputs' order, which is the tensor's own.
  if (bias == Bias::yes)
    add_vector(name + ".bias", model_.hidden, 0.0, stored.pieces.front().tensor + ".bias", false);
}

StoredRows separate_qkv(const ModelSpec& model, const std::string& stored) {
  const int64_t size = model.hidden / model.heads, kv_heads = model.key_value_heads();
  return {{{stored + "q_proj", 0, size * (model.heads / kv_heads)},
           {stored + "k_proj", 0, size},
           {stored + "v_proj", 0, size}},
          kv_heads};
}

}  // namespace sailor
