#include "trainer/checkpoint/stored_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "planner/spec/error.h"
#include "planner/spec/text.h"
#include "trainer/model/element_types.h"

namespace sailor {
namespace {

int64_t rows_per_group(const StoredRows& stored) {
  int64_t rows = 0;
  for (const StoredPiece& piece : stored.pieces) rows += piece.rows;
  return rows;
}

}  // namespace

std::vector<std::string> stored_names(const ParameterSpec& parameter) {
  std::vector<std::string> names;
  for (const StoredPiece& piece : parameter.stored.pieces) {
    if (std::find(names.begin(), names.end(), piece.tensor) == names.end()) names.push_back(piece.tensor);
  }
  return names;
}

std::vector<int64_t> stored_shape(const ParameterSpec& parameter, const std::string& tensor) {
  int64_t rows = 0;
  for (const StoredPiece& piece : parameter.stored.pieces) {
    if (piece.tensor == tensor) rows += parameter.stored.groups * piece.rows;
  }
  if (parameter.columns == 0) return {rows};
  if (parameter.stored.transposed) return {parameter.columns, rows};
  return {rows, parameter.columns};
}

std::vector<std::pair<std::string, at::Tensor>> stored_tensors(const ParameterSpec& parameter,
                                                               const at::Tensor& whole) {
  const StoredRows& stored = parameter.stored;
  const int64_t columns = std::max<int64_t>(1, parameter.columns), per_group = rows_per_group(stored);
  if (stored.groups * per_group != parameter.real_rows)
    throw std::logic_error(fmt::format("{}: its stored rows do not make it up", parameter.name));
  const at::Tensor groups =
      whole.detach().narrow(0, 0, parameter.real_rows).reshape({stored.groups, per_group, columns});
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const std::string& name : stored_names(parameter)) {
    const std::vector<int64_t> shape = stored_shape(parameter, name);
    at::Tensor rows = at::empty({stored.transposed ? shape[1] : shape[0], columns}, whole.scalar_type());
    int64_t offset = 0;
    for (const StoredPiece& piece : stored.pieces) {
      if (piece.tensor == name) {
        rows.narrow(0, piece.first, stored.groups * piece.rows)
            .copy_(groups.narrow(1, offset, piece.rows).reshape({-1, columns}));
      }
      offset += piece.rows;
    }
    tensors.emplace_back(name, (stored.transposed ? rows.t() : rows).reshape(shape).contiguous());
  }
  return tensors;
}

at::ScalarType stored_scalar_type(const std::string& dtype, const std::string& file) {
  if (const ElementTypeNames* known = find_stored(dtype)) return known->type;
  throw InputError(
      {file, 0},
      fmt::format("holds weights of type {}; the trainer reads F64, F32, F16 and BF16", in_quotes(dtype)));
}

std::string stored_dtype(at::ScalarType type) {
  if (const char* name = names_of(type).stored_as) return name;
  throw std::logic_error(fmt::format("weights of type {} cannot be stored", at::toString(type)));
}

}  // namespace sailor
