// The types of a tensor's elements, one row each: what libtorch, communicators and files call them. Which of
// them a precision uses is in planner/spec/precision.h.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "planner/spec/precision.h"
#include "trainer/comm/communicator.h"

namespace sailor {

struct ElementTypeNames {
  at::ScalarType type;
  std::optional<ElementType> moved_as;  // by communicators; nothing: they do not
  const char* stored_as;                // in safetensors; null: weights and states are never of this type
  const char* config_name;              // in a model directory's config.json; null as well
};
// Throws std::logic_error for a type without a row.
const ElementTypeNames& names_of(at::ScalarType type);
// Of a type that weights can be stored in; null where there is none.
const ElementTypeNames* find_stored(const std::string& stored_as);

at::ScalarType scalar_type(Precision precision);  // of parameters, activations and messages
bool has_16_bits(at::ScalarType type);            // a floating-point type in which sums lose too much
at::ScalarType sum_type(at::ScalarType type);     // fp32 for one that has, else the type itself
ElementType element_type(at::ScalarType type);    // throws std::logic_error where they do not move

}  // namespace sailor
