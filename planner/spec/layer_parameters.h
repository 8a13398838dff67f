// The list of one layer's parameters, as a model family declares it: one call per norm, linear layer or
// embedding, in the order in which the trainer builds them. Names in calls are relative to the layer;
// `stored` names are tensors of a model directory, without `.weight` and `.bias` where both belong to one
// layer.
//
// Matrices are [rows, hidden]: a column-parallel linear layer is stored as [outputs, inputs], a row-parallel
// one as [inputs, outputs], so that both are sharded into blocks of rows.
#pragma once

#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "planner/spec/model_parameter.h"

namespace sailor {

class LayerParameters {
 public:
  // Rows of vocabulary matrices beyond the vocabulary are padding. `model` must outlive the list.
  LayerParameters(const ModelSpec& model, int layer, int64_t padded_vocabulary)
      : model_(model), layer_(layer), padded_vocabulary_(padded_vocabulary) {}

  // `token.weight`; the head uses the same matrix if they are tied.
  void token_embedding(const std::string& stored);
  // `position.weight`: one row per position, after `unused` others.
  void position_embedding(const std::string& stored, int unused = 0);
  // `head.weight`, or a copy of the embedding's matrix.
  void head(const std::string& stored, const std::string& stored_embedding);

  void layer_norm(const std::string& name, const std::string& stored);  // weight and bias
  void rms_norm(const std::string& name, const std::string& stored);    // weight

  enum class Bias { no, yes };
  // Column-parallel: sharded by outputs, the bias too.
  void output_split(const std::string& name, int64_t outputs, const StoredRows& stored, Bias bias);
  // Row-parallel: sharded by inputs; every rank has the whole bias. Writes into the residual stream, so
  // initial values are smaller.
  void input_split(const std::string& name, int64_t inputs, const StoredRows& stored, Bias bias);

  const ModelSpec& model() const { return model_; }
  int layer() const { return layer_; }
  bool is_first() const { return layer_ == 0; }
  bool is_last() const { return layer_ == model_.layers + 1; }
  std::vector<ParameterSpec> take() { return std::move(list_); }

 private:
  void add(ParameterSpec spec);
  ParameterSpec described(const std::string& name, int64_t rows, StoredRows stored) const;
  ParameterSpec matrix(const std::string& name, int64_t rows, double deviation, StoredRows stored) const;
  ParameterSpec vocabulary_matrix(const std::string& full_name, const std::string& stored) const;
  void add_vector(const std::string& name, int64_t size, double value, StoredRows stored, bool sharded);

  const ModelSpec& model_;
  int layer_;
  int64_t padded_vocabulary_;
  std::vector<ParameterSpec> list_;
};

// Rows [key and value head][its query heads, key, value][head size] of files with three tensors, `stored` +
// q_proj, k_proj and v_proj.
StoredRows separate_qkv(const ModelSpec& model, const std::string& stored);

}  // namespace sailor
