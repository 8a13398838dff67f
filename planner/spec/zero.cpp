#include "planner/spec/zero.h"

#include <fmt/format.h>

#include <vector>

#include "planner/spec/field.h"

namespace sailor {
namespace {

const std::vector<std::string>& zero_names() {
  static const std::vector<std::string> all = {"none", "optimizer", "gradients", "parameters"};
  return all;
}

}  // namespace

const char* to_string(Zero zero) {
  return zero_names()[static_cast<size_t>(zero)].c_str();
}

std::string short_name(Zero zero) {
  return zero == Zero::none ? "" : fmt::format("zero{}", static_cast<int>(zero));
}

Zero read_zero(const Field& field) {
  return static_cast<Zero>(field.choice(zero_names()));
}

}  // namespace sailor
