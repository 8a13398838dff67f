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
  const Zero zero = static_cast<Zero>(field.choice(zero_names()));
  if (zero > Zero::gradients)
    field.fail(fmt::format("{} is not supported yet by planner and trainer: use none, optimizer or gradients",
                           to_string(zero)));
  return zero;
}

}  // namespace sailor
