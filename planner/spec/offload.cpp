#include "planner/spec/offload.h"

#include <vector>

#include "planner/spec/field.h"

namespace sailor {
namespace {

const std::vector<std::string>& offload_names() {
  static const std::vector<std::string> all = {"none", "optimizer"};
  return all;
}

}  // namespace

const char* to_string(Offload offload) {
  return offload_names()[static_cast<size_t>(offload)].c_str();
}

Offload read_offload(const Field& field) {
  return static_cast<Offload>(field.choice(offload_names()));
}

}  // namespace sailor
