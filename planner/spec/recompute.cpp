#include "planner/spec/recompute.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "planner/spec/field.h"

namespace sailor {
namespace {

const std::vector<std::string>& recompute_names() {
  static const std::vector<std::string> all = {"none", "selective", "light", "mlp", "full", "offload"};
  return all;
}

}  // namespace

const char* to_string(Recompute recompute) {
  return recompute_names()[static_cast<size_t>(recompute)].c_str();
}

Recompute read_recompute(const Field& field) {
  return static_cast<Recompute>(field.choice(recompute_names()));
}

std::string to_string(const StageRecompute& recompute) {
  if (recompute.deep_blocks() == 0) return to_string(recompute.level());
  std::string text = fmt::format("{} {}", recompute.deep_blocks(), to_string(recompute.deep()));
  if (recompute.level() != Recompute::none) text += std::string(", ") + to_string(recompute.level());
  return text;
}

}  // namespace sailor
