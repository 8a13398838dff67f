#include "trainer/comm/work_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <vector>

namespace sailor {
namespace {

TEST(WorkQueue, RunsInOrderOnAThreadOfItsOwn) {
  WorkQueue queue;
  std::vector<int> done;
  std::thread::id worker;
  for (int i = 0; i < 100; ++i) {
    queue.push([&, i] {
      done.push_back(i);
      worker = std::this_thread::get_id();
    });
  }
  queue.wait();
  ASSERT_EQ(done.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
  EXPECT_NE(worker, std::this_thread::get_id());
  EXPECT_TRUE(queue.idle());
}

TEST(WorkQueue, WaitsForWhatWasPushedUntilAPoint) {
  WorkQueue queue;
  std::promise<void> may_end;
  bool first = false, second = false;
  queue.push([&] { first = true; });
  const int64_t pushes = queue.pushed();
  queue.push([&, future = may_end.get_future().share()] {
    future.wait();
    second = true;
  });
  queue.wait(pushes);
  EXPECT_TRUE(first);
  EXPECT_FALSE(queue.idle());
  may_end.set_value();
  queue.wait();
  EXPECT_TRUE(second);
}

TEST(WorkQueue, AFailureEndsEveryWait) {
  WorkQueue queue;
  queue.push([] { throw std::runtime_error("first"); });
  queue.push([] {});
  const int64_t pushes = queue.pushed();
  queue.push([] {});
  EXPECT_THROW(queue.wait(pushes), std::runtime_error);
  queue.wait();
  EXPECT_TRUE(queue.idle());
}

TEST(WorkQueue, TheFirstExceptionEndsWhatFollowsUntilItWasSeen) {
  WorkQueue queue;
  bool ran = false;
  queue.push([] { throw std::runtime_error("first"); });
  queue.push([&] { ran = true; });
  try {
    queue.wait();
    FAIL() << "the exception is lost";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_FALSE(ran);
  queue.push([&] { ran = true; });
  queue.wait();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace sailor
