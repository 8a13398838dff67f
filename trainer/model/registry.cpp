#include "trainer/model/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "planner/spec/error.h"
#include "trainer/model/gpt2.h"

namespace sailor {
namespace {

// Every family of the program, a line each.
const std::vector<ModelFamily>& families() {
  static const std::vector<ModelFamily> all = {
      {"gpt2", check_gpt2, build_gpt2_layer},
  };
  return all;
}

}  // namespace

std::vector<std::string> model_family_names() {
  std::vector<std::string> names;
  for (const ModelFamily& family : families()) names.push_back(family.name);
  return names;
}

const ModelFamily& model_family(const std::string& name) {
  for (const ModelFamily& family : families()) {
    if (family.name == name) return family;
  }
  throw InputError(fmt::format("model.family: the trainer does not know \"{}\" (known: {})", name,
                               fmt::join(model_family_names(), ", ")));
}

int64_t padded_vocabulary(int vocabulary, const std::vector<int>& tps) {
  int64_t multiple = 1;
  for (const int tp : tps) multiple = std::lcm(multiple, static_cast<int64_t>(tp));
  return (vocabulary + multiple - 1) / multiple * multiple;
}

at::ScalarType scalar_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return at::kFloat;
    case Precision::fp64:
      return at::kDouble;
    case Precision::bf16:
      break;
  }
  throw InputError("training.precision: the trainer cannot train in bf16 yet; use fp32 or fp64");
}

ElementType element_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ElementType::f32;
    case at::kDouble:
      return ElementType::f64;
    case at::kBFloat16:
      return ElementType::bf16;
    case at::kLong:
      return ElementType::i64;
    case at::kByte:
      return ElementType::u8;
    default:
      throw std::logic_error(fmt::format("no communicator moves elements of type {}", at::toString(type)));
  }
}

}  // namespace sailor
