// An unsharded parameter of a model: its shape, its initial values, and where Hugging Face model directories
// store it. Plain value types.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sailor {

// A range of rows in a stored tensor; group g of the parameter takes rows [first + g * rows, first + (g + 1)
// * rows).
struct StoredPiece {
  std::string tensor;
  int64_t first = 0;
  int64_t rows = 0;  // 0 = all rows of the parameter without padding

  bool operator==(const StoredPiece&) const = default;
};

// Where the rows of a parameter are stored: `groups` times one range of every piece in turn. One piece and
// one group is the tensor itself; rows ordered [head][query, key, value] are one group per head with three
// pieces.
struct StoredRows {
  std::vector<StoredPiece> pieces;
  int64_t groups = 1;
  bool transposed = false;  // rows of the parameter are columns of the tensors; matrices only

  StoredRows() = default;
  StoredRows(std::string tensor) : pieces{{std::move(tensor), 0, 0}} {}  // NOLINT: a name is enough
  StoredRows(std::vector<StoredPiece> p, int64_t g, bool t = false)
      : pieces(std::move(p)), groups(g), transposed(t) {}
  static StoredRows transpose_of(std::string tensor) { return {{{std::move(tensor), 0, 0}}, 1, true}; }
  StoredRows with_suffix(const std::string& suffix) const;  // after every tensor's name
};

struct ParameterSpec {
  std::string name;  // unique in the model, the same in every plan, e.g. `3.qkv.weight`
  // Layer whose replicas reduce its gradient, an index as in plans; the number of all layers for a matrix
  // that the first and the last layer share.
  int layer = 0;
  int64_t rows = 0;              // over all ranks of a TP group
  int64_t real_rows = 0;         // the rest is padding: zero, not trained, not stored
  int64_t columns = 0;           // 0 = the parameter is a vector
  bool sharded = false;          // along dimension 0
  bool decay = false;            // weight decay applies (matrices)
  bool tied_copy = false;        // another layer owns this parameter
  bool rows_are_inputs = false;  // of a linear layer's weight: it is sharded by inputs
  bool adapter = false;          // of LoRA (lora_parameters.h): not part of the model's directory
  double mean = 0;               // of initial values
  double deviation = 0;
  StoredRows stored;

  int64_t elements() const { return rows * (columns > 0 ? columns : 1); }
};

}  // namespace sailor
