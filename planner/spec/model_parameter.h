// A parameter of a model as a whole: its shape, its initial values, and where model directories of the
// Hugging Face libraries store it. Plain value types.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sailor {

// A run of rows in a stored tensor; group g of the parameter takes rows [first + g * rows, first + (g + 1) *
// rows).
struct StoredPiece {
  std::string tensor;
  int64_t first = 0;
  int64_t rows = 0;  // 0 = all rows of the parameter that are not padding

  bool operator==(const StoredPiece&) const = default;
};

// Where the rows of a parameter stand: `groups` times one run of every piece after the other. One piece and
// one group is a tensor as it is; rows ordered [head][query, key, value] are a group per head of three
// pieces.
struct StoredRows {
  std::vector<StoredPiece> pieces;
  int64_t groups = 1;
  bool transposed = false;  // rows of the parameter are columns of the tensors; of matrices only

  StoredRows() = default;
  StoredRows(std::string tensor) : pieces{{std::move(tensor), 0, 0}} {}  // NOLINT: a name is enough
  StoredRows(std::vector<StoredPiece> p, int64_t g, bool t = false)
      : pieces(std::move(p)), groups(g), transposed(t) {}
  static StoredRows transpose_of(std::string tensor) { return {{{std::move(tensor), 0, 0}}, 1, true}; }
  StoredRows with_suffix(const std::string& suffix) const;  // after every tensor's name
};

struct ParameterSpec {
  std::string name;        // unique in the model, the same in every plan, e.g. `3.qkv.weight`
  int layer = 0;           // whose replicas add up its gradient: an index as in plans, or, for a matrix that
                           // first and last layer share, the number of all layers
  int64_t rows = 0;        // over all ranks of a TP group
  int64_t real_rows = 0;   // the rest is padding: zero, never trained, never stored
  int64_t columns = 0;     // 0 = a vector
  bool sharded = false;    // along dimension 0
  bool decay = false;      // weight decay applies (matrices)
  bool tied_copy = false;  // another layer holds the same parameter, and is its owner
  double mean = 0;         // of initial values
  double deviation = 0;
  StoredRows stored;

  int64_t elements() const { return rows * (columns > 0 ? columns : 1); }
};

}  // namespace sailor
