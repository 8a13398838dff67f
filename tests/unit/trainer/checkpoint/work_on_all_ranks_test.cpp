// Work that every rank does on its own: failures that all of them see, and ranks that take their time.
#include "trainer/checkpoint/work_on_all_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "planner/spec/error.h"
#include "tests/unit/trainer/comm/ranks.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;

TEST(WorkOnAllRanks, TheGravestFailureIsEverybodys) {
  TestJob job("thread", 4);
  job.run([](CommFactory& factory) {
    const auto world = factory.create("world", all_ranks(4));
    EXPECT_EQ(on_all_ranks(*world, [] {}).failure, Outcome::Failure::none);
    const Outcome outcome = on_all_ranks(*world, [&] {
      if (world->rank() == 1) throw InputError("one");
      if (world->rank() >= 2) throw std::runtime_error("rank " + std::to_string(world->rank()));
    });
    EXPECT_EQ(outcome.failure, Outcome::Failure::other);
    EXPECT_EQ(outcome.text, "rank 2");
    EXPECT_THROW(require(outcome), std::runtime_error);
    EXPECT_EQ(on_all_ranks(*world, [] {}).failure, Outcome::Failure::none) << "nothing is left of it";
  });
}

TEST(WorkOnAllRanks, MayTakeLongerThanTheCommunicatorsDeadline) {
  for (const char* plane : {"thread", "socket"}) {
    TestJob job(plane, 3, {600ms});
    job.run([](CommFactory& factory) {
      const auto world = factory.create("world", all_ranks(3));
      const Outcome outcome = on_all_ranks(*world, [&] {
        if (world->rank() == 1) std::this_thread::sleep_for(1500ms);
      });
      EXPECT_EQ(outcome.failure, Outcome::Failure::none);
    });
  }
}

TEST(WorkOnAllRanks, ARankThatHangsAltogetherIsFound) {
  TestJob job("thread", 2, {400ms});
  std::promise<void> found;
  std::thread silent([&] {
    const auto world = job.factory(1).create("world", {0, 1});
    found.get_future().wait();
  });
  const auto world = job.factory(0).create("world", {0, 1});
  try {
    on_all_ranks(*world, [] {});
    ADD_FAILURE() << "nobody is missed";
  } catch (const CommError& error) {
    EXPECT_EQ(error.peer(), 1);
  }
  found.set_value();
  silent.join();
}

}  // namespace
}  // namespace sailor
