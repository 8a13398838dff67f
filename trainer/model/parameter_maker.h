// Makes the parameters of one layer of one rank, in the order in which it is asked: draws them, reads them
// from a model directory, or only lists them (LayerContext). Lives while the layer's constructor runs.
#pragma once

#include <string>
#include <vector>

#include "trainer/model/layer.h"

namespace sailor {

// Of initial weights, as GPT-2.
constexpr double kInitialDeviation = 0.02;
// Of weights that write into the residual stream: smaller, by the number of writers.
double residual_deviation(const ModelSpec& model);

// Of rows [key and value head][its query heads, key, value][head size] in files that hold three tensors,
// `stored` + q_proj, k_proj and v_proj.
StoredRows separate_qkv(const ModelSpec& model, const std::string& stored);

class ParameterMaker {
 public:
  // `parameters` is the layer's list.
  ParameterMaker(const LayerContext& context, int layer, std::vector<Parameter>& parameters)
      : context_(context), layer_(layer), parameters_(parameters) {}

  // Names are within the layer. [rows, hidden], by rows over the TP group.
  at::Tensor matrix(const std::string& name, int64_t rows, double deviation, StoredRows stored);
  // [rows, hidden], whole on every rank.
  at::Tensor whole_matrix(const std::string& name, int64_t rows, double deviation, StoredRows stored);
  // The embedding's matrix, [padded vocabulary, hidden], by rows; the head has the same one when they are
  // tied.
  at::Tensor token_matrix(StoredRows stored);
  at::Tensor head_matrix(StoredRows stored, StoredRows stored_tied);
  // [size], whole on every rank, and in parts.
  at::Tensor vector(const std::string& name, int64_t size, double value, StoredRows stored);
  at::Tensor sharded_vector(const std::string& name, int64_t size, double value, StoredRows stored);

  const LayerContext& context() const { return context_; }
  int layer() const { return layer_; }
  const ModelSpec& model() const { return context_.model; }

 private:
  // What all parameters, and what all matrices over the vocabulary, have in common.
  ParameterSpec described(const std::string& name, int64_t rows, StoredRows stored) const;
  ParameterSpec vocabulary_matrix(const std::string& name, StoredRows stored) const;
  at::Tensor add(ParameterSpec spec);
  at::Tensor tied_matrix(StoredRows stored, bool copy);

  const LayerContext& context_;
  int layer_;
  std::vector<Parameter>& parameters_;
};

}  // namespace sailor
