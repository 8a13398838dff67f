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

std::string ParameterMaker::full_name(const std::string& name) const {
  return fmt::format("{}.{}", layer_, name);
}

at::Tensor ParameterMaker::matrix(const std::string& name, int64_t rows, double deviation,
                                  StoredRows stored) {
  return add({.name = full_name(name),
              .layer = layer_,
              .rows = rows,
              .real_rows = rows,
              .columns = model().hidden,
              .sharded = true,
              .decay = true,
              .deviation = deviation,
              .stored = std::move(stored)});
}

at::Tensor ParameterMaker::whole_matrix(const std::string& name, int64_t rows, double deviation,
                                        StoredRows stored) {
  return add({.name = full_name(name),
              .layer = layer_,
              .rows = rows,
              .real_rows = rows,
              .columns = model().hidden,
              .decay = true,
              .deviation = deviation,
              .stored = std::move(stored)});
}

at::Tensor ParameterMaker::token_matrix(StoredRows stored) {
  if (model().tied_embeddings) return tied_matrix(std::move(stored), /*copy=*/false);
  return add({.name = kTokenMatrix,
              .layer = layer_,
              .rows = context_.padded_vocabulary,
              .real_rows = model().vocabulary,
              .columns = model().hidden,
              .sharded = true,
              .decay = true,
              .deviation = kInitialDeviation,
              .stored = std::move(stored)});
}

at::Tensor ParameterMaker::head_matrix(StoredRows stored, StoredRows stored_tied) {
  if (model().tied_embeddings) return tied_matrix(std::move(stored_tied), /*copy=*/true);
  return add({.name = full_name("head.weight"),
              .layer = layer_,
              .rows = context_.padded_vocabulary,
              .real_rows = model().vocabulary,
              .columns = model().hidden,
              .sharded = true,
              .decay = true,
              .deviation = kInitialDeviation,
              .stored = std::move(stored)});
}

at::Tensor ParameterMaker::tied_matrix(StoredRows stored, bool copy) {
  if (context_.shared) {
    const auto here = context_.shared->find(kTokenMatrix);
    if (here != context_.shared->end()) return here->second;
  }
  const at::Tensor value = add({.name = kTokenMatrix,
                                .layer = model().num_all_layers(),
                                .rows = context_.padded_vocabulary,
                                .real_rows = model().vocabulary,
                                .columns = model().hidden,
                                .sharded = true,
                                .decay = true,
                                .tied_copy = copy,
                                .deviation = kInitialDeviation,
                                .stored = std::move(stored)});
  if (context_.shared) (*context_.shared)[kTokenMatrix] = value;
  return value;
}

at::Tensor ParameterMaker::vector(const std::string& name, int64_t size, double value, StoredRows stored) {
  return add({.name = full_name(name),
              .layer = layer_,
              .rows = size,
              .real_rows = size,
              .mean = value,
              .stored = std::move(stored)});
}

at::Tensor ParameterMaker::sharded_vector(const std::string& name, int64_t size, double value,
                                          StoredRows stored) {
  return add({.name = full_name(name),
              .layer = layer_,
              .rows = size,
              .real_rows = size,
              .sharded = true,
              .mean = value,
              .stored = std::move(stored)});
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
  value.set_requires_grad(true);
  parameters_.push_back({spec.name, spec.layer, spec.sharded, spec.decay, value, spec.tied_copy});
  return value;
}

}  // namespace sailor
