#include "trainer/model/parameter_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/model/initial_values.h"

namespace sailor {
namespace {

// The name of the embedding's matrix, whichever layer holds it.
constexpr const char* kTokenMatrix = "0.token.weight";

}  // namespace

double residual_deviation(const ModelSpec& model) {
  return kInitialDeviation / std::sqrt(2.0 * model.layers);
}

StoredRows separate_qkv(const ModelSpec& model, const std::string& stored) {
  const int64_t size = model.hidden / model.heads, kv_heads = model.key_value_heads();
  return {{{stored + "q_proj", 0, size * (model.heads / kv_heads)},
           {stored + "k_proj", 0, size},
           {stored + "v_proj", 0, size}},
          kv_heads};
}

ParameterSpec ParameterMaker::described(const std::string& name, int64_t rows, StoredRows stored) const {
  return {.name = fmt::format("{}.{}", layer_, name),
          .layer = layer_,
          .rows = rows,
          .real_rows = rows,
          .stored = std::move(stored)};
}

ParameterSpec ParameterMaker::vocabulary_matrix(const std::string& name, StoredRows stored) const {
  return {.name = name,
          .layer = layer_,
          .rows = context_.padded_vocabulary,
          .real_rows = model().vocabulary,
          .columns = model().hidden,
          .sharded = true,
          .decay = true,
          .deviation = kInitialDeviation,
          .stored = std::move(stored)};
}

at::Tensor ParameterMaker::matrix(const std::string& name, int64_t rows, double deviation,
                                  StoredRows stored) {
  ParameterSpec spec = described(name, rows, std::move(stored));
  spec.columns = model().hidden;
  spec.sharded = true;
  spec.decay = true;
  spec.deviation = deviation;
  return add(std::move(spec));
}

at::Tensor ParameterMaker::whole_matrix(const std::string& name, int64_t rows, double deviation,
                                        StoredRows stored) {
  ParameterSpec spec = described(name, rows, std::move(stored));
  spec.columns = model().hidden;
  spec.decay = true;
  spec.deviation = deviation;
  return add(std::move(spec));
}

at::Tensor ParameterMaker::token_matrix(StoredRows stored) {
  if (model().tied_embeddings) return tied_matrix(std::move(stored), /*copy=*/false);
  return add(vocabulary_matrix(kTokenMatrix, std::move(stored)));
}

at::Tensor ParameterMaker::head_matrix(StoredRows stored, StoredRows stored_tied) {
  if (model().tied_embeddings) return tied_matrix(std::move(stored_tied), /*copy=*/true);
  return add(vocabulary_matrix(fmt::format("{}.head.weight", layer_), std::move(stored)));
}

at::Tensor ParameterMaker::tied_matrix(StoredRows stored, bool copy) {
  if (context_.shared) {
    const auto here = context_.shared->find(kTokenMatrix);
    if (here != context_.shared->end()) return here->second;
  }
  ParameterSpec spec = vocabulary_matrix(kTokenMatrix, std::move(stored));
  spec.layer = model().num_all_layers();
  spec.tied_copy = copy;
  const at::Tensor value = add(std::move(spec));
  if (context_.shared) (*context_.shared)[kTokenMatrix] = value;
  return value;
}

at::Tensor ParameterMaker::vector(const std::string& name, int64_t size, double value, StoredRows stored) {
  ParameterSpec spec = described(name, size, std::move(stored));
  spec.mean = value;
  return add(std::move(spec));
}

at::Tensor ParameterMaker::sharded_vector(const std::string& name, int64_t size, double value,
                                          StoredRows stored) {
  ParameterSpec spec = described(name, size, std::move(stored));
  spec.sharded = true;
  spec.mean = value;
  return add(std::move(spec));
}

at::Tensor ParameterMaker::add(ParameterSpec spec) {
  for (StoredPiece& piece : spec.stored.pieces) {
    if (piece.rows == 0) piece.rows = spec.real_rows;
  }
  if (context_.listing) {
    if (!spec.tied_copy) context_.listing->push_back(std::move(spec));
    return {};
  }
  const int64_t held = spec.sharded ? spec.rows / context_.tp_size() : spec.rows;
  const int64_t first = spec.sharded ? held * context_.tp_rank() : 0;
  const int64_t real = std::clamp<int64_t>(spec.real_rows - first, 0, held);
  const int64_t row = std::max<int64_t>(1, spec.columns);
  at::Tensor value =
      spec.columns > 0 ? at::zeros({held, spec.columns}, context_.dtype) : at::zeros({held}, context_.dtype);
  at::Tensor real_rows = value.narrow(0, 0, real);
  if (real == 0) {
    // Nothing but padding.
  } else if (context_.weights) {
    context_.weights->read(spec, first, real_rows);
  } else if (spec.deviation > 0) {
    real_rows.copy_(normal_values(context_.seed, spec.name, first * row, real * row, spec.mean,
                                  spec.deviation, context_.dtype)
                        .view_as(real_rows));
  } else {
    real_rows.fill_(spec.mean);
  }
  value = value.to(context_.device);
  value.set_requires_grad(true);
  parameters_.push_back({spec.name, spec.layer, spec.sharded, spec.decay, value, spec.tied_copy});
  return value;
}

}  // namespace sailor
