#include "planner/spec/recompute.h"

#include <string>
#include <vector>

#include "planner/spec/field.h"

namespace sailor {
namespace {

const std::vector<std::string>& recompute_names() {
  static const std::vector<std::string> all = {"none", "selective", "full"};
  return all;
}

}  // namespace

const char* to_string(Recompute recompute) {
  return recompute_names()[static_cast<size_t>(recompute)].c_str();
}

Recompute read_recompute(const Field& field) {
  return static_cast<Recompute>(field.choice(recompute_names()));
}

}  // namespace sailor
