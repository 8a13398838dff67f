#include "trainer/process/process_identity.h"

#include <gtest/gtest.h>

namespace sailor {
namespace {

TEST(ProcessIdentity, StartTicksStayTheSame) {
  EXPECT_GT(process_start_ticks(), 0);
  EXPECT_EQ(process_start_ticks(), process_start_ticks());
}

}  // namespace
}  // namespace sailor
