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

class LayerParameters {
 public:
  LayerParameters(const ModelSpec& model, const TensorNames& names, int layer, int64_t padded_vocabulary)
      : model_(model),
        names_(names),
        layer_(layer),
        padded_vocabulary_(padded_vocabulary),
        block_(fmt::format("{}{}.", names.block, layer - 1)) {}

  void first() {
    ParameterSpec tokens = vocabulary_matrix(kTokenMatrix, names_.tokens);
    if (model_.tied_embeddings) tokens.layer = model_.num_all_layers();
    add(std::move(tokens));
    if (model_.learned_positions())
      add(matrix("position.weight", model_.unused_positions + model_.position_rows(), kInitialDeviation / 2,
                 names_.positions + ".weight"));
  }

  void block() {
    const bool before = model_.norm_place != NormPlace::after, after = model_.norm_place != NormPlace::before;
    if (before) norm("norm1", block_ + names_.norm1);
    output_split("qkv", int64_t{model_.head_width()} * (model_.heads + 2 * model_.key_value_heads()),
                 stored_qkv(), model_.qkv_bias);
    query_key_norms();
    input_split("proj", int64_t{model_.head_width()} * model_.heads, names_.proj, model_.proj_bias);
    if (after) norm("norm1_after", block_ + names_.norm1_after);
    if (before && !model_.shared_norm) norm("norm2", block_ + names_.norm2);
    if (model_.gated_mlp) {
      output_split("gate_up", int64_t{2} * model_.feed_forward, stored_gate_up(), model_.mlp_bias);
      input_split("down", model_.feed_forward, names_.down, model_.mlp_bias);
    } else {
      StoredRows up(block_ + names_.up.front());
      up.transposed = names_.inputs_first;
      output_split("fc1", model_.feed_forward, up, model_.mlp_bias);
      input_split("fc2", model_.feed_forward, names_.down, model_.mlp_bias);
    }
    if (after) norm("norm2_after", block_ + names_.norm2_after);
  }

  void last() {
    norm("norm", names_.final_norm);
    if (!model_.tied_embeddings) {
      add(vocabulary_matrix(fmt::format("{}.head.weight", layer_), names_.head));
      return;
    }
    ParameterSpec spec = vocabulary_matrix(kTokenMatrix, names_.tokens);
    spec.layer = model_.num_all_layers();
    spec.tied_copy = true;
    add(std::move(spec));
  }

  std::vector<ParameterSpec> take() { return std::move(list_); }

 private:
  void add(ParameterSpec spec) {
    for (StoredPiece& piece : spec.stored.pieces) {
      if (piece.rows == 0) piece.rows = spec.real_rows;
    }
    list_.push_back(std::move(spec));
  }

  ParameterSpec described(const std::string& name, int64_t rows, StoredRows stored) const {
    return {.name = fmt::format("{}.{}", layer_, name),
            .layer = layer_,
            .rows = rows,
            .real_rows = rows,
            .stored = std::move(stored)};
  }

  ParameterSpec matrix(const std::string& name, int64_t rows, double deviation, StoredRows stored) const {
    ParameterSpec spec = described(name, rows, std::move(stored));
    spec.columns = model_.hidden;
    spec.decay = true;
    spec.deviation = deviation;
    return spec;
  }

  ParameterSpec vocabulary_matrix(const std::string& full_name, const std::string& stored) const {
    ParameterSpec spec = matrix("", padded_vocabulary_, kInitialDeviation, stored + ".weight");
    spec.name = full_name;
    spec.real_rows = model_.vocabulary;
    spec.sharded = true;
    return spec;
  }

  void add_vector(const std::string& name, int64_t size, double value, StoredRows stored, bool sharded) {
    ParameterSpec spec = described(name, size, std::move(stored));
    spec.mean = value;
    spec.sharded = sharded;
    add(std::move(spec));
  }

  double norm_start() const { return model_.norm == Norm::zero_centred_rms ? 0.0 : 1.0; }

  void norm(const std::string& name, const std::string& stored) {
    add_vector(name + ".weight", model_.hidden, norm_start(), stored + ".weight", false);
    if (model_.norm == Norm::layer) add_vector(name + ".bias", model_.hidden, 0.0, stored + ".bias", false);
  }

  void query_key_norms() {
    if (model_.qk_norm == QkNorm::none) return;
    const bool whole = model_.qk_norm == QkNorm::projection;
    const int64_t size = model_.head_width();
    add_vector("query_norm.weight", whole ? size * model_.heads : size, norm_start(),
               block_ + names_.query_norm + ".weight", whole);
    add_vector("key_norm.weight", whole ? size * model_.key_value_heads() : size, norm_start(),
               block_ + names_.key_norm + ".weight", whole);
  }

  // Column-parallel: sharded by outputs, the bias too.
  void output_split(const std::string& name, int64_t outputs, const StoredRows& stored, bool bias) {
    ParameterSpec weight =
        matrix(name + ".weight", outputs, kInitialDeviation, stored.with_suffix(".weight"));
    weight.sharded = true;
    add(std::move(weight));
    if (bias) add_vector(name + ".bias", outputs, 0.0, bias_of(stored), true);
  }

  // Row-parallel: sharded by inputs; every rank has the whole bias. Writes into the residual stream, so
  // initial values are smaller.
  void input_split(const std::string& name, int64_t inputs, const std::string& stored, bool bias) {
    const double deviation = kInitialDeviation / std::sqrt(2.0 * model_.layers);  // two writers in a block
    StoredRows rows(block_ + stored + ".weight");
    rows.transposed = !names_.inputs_first;
    ParameterSpec weight = matrix(name + ".weight", inputs, deviation, std::move(rows));
    weight.sharded = weight.rows_are_inputs = true;
    add(std::move(weight));
    // The rows of the weight are inputs: the bias has the outputs' order, which is the tensor's own.
    if (bias) add_vector(name + ".bias", model_.hidden, 0.0, block_ + stored + ".bias", false);
  }

  // Of every key and value head in turn: its query heads, key and value.
  StoredRows stored_qkv() const {
    const std::vector<std::string>& names = names_.qkv;
    StoredRows rows(block_ + names.front());
    if (names_.qkv_rows != QkvRows::by_head) {
      const int64_t size = model_.head_width(), groups = model_.key_value_heads();
      const int64_t queries = size * model_.heads, keys = size * groups;
      if (names_.qkv_rows == QkvRows::separate)
        rows = {{{block_ + names[0], 0, queries / groups},
                 {block_ + names[1], 0, size},
                 {block_ + names[2], 0, size}},
                groups};
      else
        rows = {{{block_ + names[0], 0, queries / groups},
                 {block_ + names[0], queries, size},
                 {block_ + names[0], queries + keys, size}},
                groups};
    }
    rows.transposed = names_.inputs_first;
    return rows;
  }

  StoredRows stored_gate_up() const {
    const std::string gate = block_ + names_.up.front(), up = block_ + names_.up.back();
    StoredRows rows({{gate, 0, 1}, {up, names_.up.size() == 1 ? model_.feed_forward : 0, 1}},
                    model_.feed_forward);
    rows.transposed = names_.inputs_first;
    return rows;
  }

  const ModelSpec& model_;
  const TensorNames& names_;
  int layer_;
  int64_t padded_vocabulary_;
  std::string block_;
  std::vector<ParameterSpec> list_;
};

}  // namespace

std::vector<ParameterSpec> decoder_parameters(const ModelSpec& model, const TensorNames& names, int layer,
                                              int64_t padded_vocabulary) {
  LayerParameters list(model, names, layer, padded_vocabulary);
  if (layer == 0) {
    list.first();
  } else if (layer > model.layers) {
    list.last();
  } else {
    list.block();
  }
  return list.take();
}

}  // namespace sailor
