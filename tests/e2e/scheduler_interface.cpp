// The tests of all schedulers, on a real one: scheduler_interface PARTITION NODE NODE [GTEST OPTIONS]. By
// default what a process outside a job can do; --inside: what one inside can.
#include <chrono>
#include <cstring>
#include <thread>

#include "tests/unit/planner/scheduler/interface_tests.h"

namespace sailor {
namespace {

std::string given_partition;
std::vector<std::string> given_nodes;

class SiteBench final : public SchedulerBench {
 public:
  Scheduler& scheduler() override { return site_scheduler(); }
  std::vector<std::string> nodes() override { return given_nodes; }
  std::string partition() override { return given_partition; }
  bool wait(const std::function<bool()>& done) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    return true;
  }
};

std::unique_ptr<SchedulerBench> site() {
  return std::make_unique<SiteBench>();
}
INSTANTIATE_TEST_SUITE_P(Site, SchedulerInterface, testing::Values(&site));
INSTANTIATE_TEST_SUITE_P(Site, SchedulerInsideAJob, testing::Values(&site));

}  // namespace
}  // namespace sailor

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool inside = argc > 4 && std::strcmp(argv[4], "--inside") == 0;
  if (argc < 4) return 2;
  sailor::given_partition = argv[1];
  sailor::given_nodes = {argv[2], argv[3]};
  if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, inside ? "*InsideAJob*" : "-*InsideAJob*");
  return RUN_ALL_TESTS();
}
