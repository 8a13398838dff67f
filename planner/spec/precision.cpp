#include "planner/spec/precision.h"

#include <algorithm>

#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/text.h"

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

Precision parse_precision(const std::string& text, const std::string& option) {
  for (const PrecisionKind& kind : kPrecisions)
    if (text == kind.name) return kind.precision;
  throw InputError(option + ": must be " + alternatives(precision_names()) + ", is " + in_quotes(text));
}

}  // namespace sailor
