#include "tests/unit/nccl/nccl_job.h"
#include "tests/unit/trainer/comm/planes_suite.h"

namespace sailor {
namespace {

INSTANTIATE_TEST_SUITE_P(Nccl, Planes, ::testing::Values(nccl_over("thread"), nccl_over("socket")),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace sailor
