#include "trainer/model/element_types.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

TEST(ElementTypes, EveryPrecisionHasTypesOfItsSizesThatMoveAndAreStored) {
  for (const PrecisionKind& kind : kPrecisions) {
    const at::ScalarType type = scalar_type(kind.precision);
    EXPECT_EQ(c10::elementSize(type), static_cast<size_t>(kind.element_bytes)) << kind.name;
    EXPECT_EQ(element_size(element_type(type)), static_cast<size_t>(kind.element_bytes)) << kind.name;
    EXPECT_STREQ(names_of(type).stored_as, kind.element_type);
    const ElementTypeNames* state = find_stored(kind.state_type);
    ASSERT_NE(state, nullptr) << kind.name;
    EXPECT_EQ(c10::elementSize(state->type), static_cast<size_t>(kind.state_bytes)) << kind.name;
    EXPECT_TRUE(state->moved_as) << kind.name;
  }
}

TEST(ElementTypes, WhatNothingMovesOrNamesIsAnError) {
  EXPECT_THROW(element_type(at::kComplexFloat), std::logic_error);
  EXPECT_EQ(find_stored("I64"), nullptr);
}

}  // namespace
}  // namespace sailor
