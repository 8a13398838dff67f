#include "planner/spec/model_parameter.h"

namespace sailor {

StoredRows StoredRows::with_suffix(const std::string& suffix) const {
  StoredRows result = *this;
  for (StoredPiece& piece : result.pieces) piece.tensor += suffix;
  return result;
}

}  // namespace sailor
