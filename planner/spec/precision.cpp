#include "planner/spec/precision.h"

#include <algorithm>

#include "planner/spec/field.h"

namespace sailor {
namespace {

// A row is found by its place.
static_assert(std::all_of(kPrecisions.begin(), kPrecisions.end(), [](const PrecisionKind& kind) {
  return &kind == &kPrecisions[static_cast<size_t>(kind.precision)];
}));

}  // namespace

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const PrecisionKind& kind : kPrecisions) out.emplace_back(kind.name);
    return out;
  }();
  return names;
}

Precision read_precision(const Field& field) {
  return static_cast<Precision>(field.choice(precision_names()));
}

}  // namespace sailor
