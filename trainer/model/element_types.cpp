#include "trainer/model/element_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace sailor {
namespace {

constexpr ElementTypeNames kTypes[] = {
    {at::kFloat, ElementType::f32, "F32", "float32"},       {at::kDouble, ElementType::f64, "F64", "float64"},
    {at::kBFloat16, ElementType::bf16, "BF16", "bfloat16"}, {at::kHalf, ElementType::f16, "F16", "float16"},
    {at::kLong, ElementType::i64, nullptr, nullptr},        {at::kByte, ElementType::u8, nullptr, nullptr},
};

}  // namespace

const ElementTypeNames& names_of(at::ScalarType type) {
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const auto& known) { return known.type == type; });
  if (row == std::end(kTypes))
    throw std::logic_error(fmt::format("elements of type {} have no names", at::toString(type)));
  return *row;
}

const ElementTypeNames* find_stored(const std::string& stored_as) {
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& known) {
    return known.stored_as != nullptr && stored_as == known.stored_as;
  });
  return row == std::end(kTypes) ? nullptr : row;
}

at::ScalarType scalar_type(Precision precision) {
  return find_stored(kind_of(precision).element_type)->type;
}

bool has_16_bits(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

at::ScalarType sum_type(at::ScalarType type) {
  return has_16_bits(type) ? at::kFloat : type;
}

ElementType element_type(at::ScalarType type) {
  const ElementTypeNames& names = names_of(type);
  if (!names.moved_as)
    throw std::logic_error(fmt::format("no communicator moves elements of type {}", at::toString(type)));
  return *names.moved_as;
}

}  // namespace sailor
