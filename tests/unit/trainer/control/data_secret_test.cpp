#include "trainer/control/data_secret.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sailor {
namespace {

TEST(DataSecret, SurvivesTheEnvironmentAndIsNeverTheSame) {
  const std::string text = make_data_secret();
  EXPECT_EQ(text.size(), 64u);
  EXPECT_NE(text, make_data_secret());
  setenv("SAILOR_DATA_SECRET", text.c_str(), 1);
  EXPECT_NE(data_secret_from_environment(), (std::array<unsigned char, 32>{}));
  setenv("SAILOR_DATA_SECRET", "not hexadecimal", 1);
  EXPECT_THROW(data_secret_from_environment(), std::runtime_error);
  unsetenv("SAILOR_DATA_SECRET");
  EXPECT_THROW(data_secret_from_environment(), std::runtime_error);
}

}  // namespace
}  // namespace sailor
