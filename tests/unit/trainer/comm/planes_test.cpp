#include "tests/unit/trainer/comm/planes_suite.h"

namespace sailor {
namespace {

INSTANTIATE_TEST_SUITE_P(, Planes, ::testing::Values("thread", "socket", "encrypted"),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace sailor
