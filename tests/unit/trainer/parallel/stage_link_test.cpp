#include "trainer/parallel/stage_link.h"

#include <gtest/gtest.h>

#include <numeric>

#include "planner/spec/framework_style.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/model/tensor_parallel.h"

namespace sailor {
namespace {

TEST(StageMessages, EveryReceiverGetsEachElementOnceOrItsEqualPart) {
  for (int a = 1; a <= 6; ++a) {
    for (int b = 1; b <= 6; ++b) {
      for (const int64_t elements : {60, 60 * 1000, 60 * 1000 + 1}) {
        const MessagePlan plan = plan_messages(elements, 4, a, b);
        std::vector<int64_t> received(static_cast<std::size_t>(b), 0);
        std::vector<int64_t> next(static_cast<std::size_t>(b), -1);
        for (const StageMessage& m : plan.messages) {
          ASSERT_TRUE(m.sender >= 0 && m.sender < a && m.receiver >= 0 && m.receiver < b);
          const auto r = static_cast<std::size_t>(m.receiver);
          if (next[r] < 0) next[r] = plan.gather ? m.receiver * (elements / b) : 0;
          ASSERT_EQ(m.first, next[r]) << "gap or overlap";
          next[r] += m.count;
          received[r] += m.count;
        }
        for (const int64_t count : received) ASSERT_EQ(count, plan.gather ? elements / b : elements);
      }
    }
  }
}

TEST(StageMessages, LargeTensorsTravelOnceAndSmallOnesWhole) {
  const int64_t large = 12 * 100'000;
  int64_t sent = 0;
  for (const StageMessage& m : plan_messages(large, 4, 4, 3).messages) sent += m.count;
  EXPECT_EQ(sent, large);
  EXPECT_EQ(plan_messages(large, 4, 4, 1).messages.size(), 4u)
      << "four senders share the way to one receiver";
  EXPECT_FALSE(plan_messages(large, 4, 4, 1).gather);
  EXPECT_FALSE(plan_messages(12, 4, 1, 3).gather);
  EXPECT_EQ(plan_messages(12, 4, 1, 3).messages.size(), 3u);
}

TEST(StageMessages, ThePlannerKnowsWhichOnesAreSmall) {
  for (const Ranks ranks : {Ranks::processors, Ranks::gpus})
    EXPECT_EQ(own_framework(ranks).whole_message_bytes, kSmallActivationBytes);
}

TEST(StageMessages, SharesOfTokensTravelOnceToWhereTheyAreWanted) {
  std::vector<ReplicaShape> shapes;
  for (int cp = 1; cp <= 3; ++cp)
    for (int tp = 1; tp <= 6 / cp; ++tp) shapes.push_back({tp, cp});
  for (const ReplicaShape& a : shapes) {
    for (const ReplicaShape& b : shapes) {
      for (const int64_t tokens : {1, 4, 9, 60, 61}) {
        std::vector<int> sent(static_cast<std::size_t>(tokens * 3), 0);
        for (const StageMessage& m : plan_share_messages(tokens, 3, a, b).messages) {
          const BlockRange from = token_share(tokens, a, m.sender), to = token_share(tokens, b, m.receiver);
          for (int64_t i = m.first; i < m.first + m.count; ++i) {
            const auto token = static_cast<std::size_t>(i / 3);
            ASSERT_TRUE(token >= from.first && token < from.first + from.count);
            ASSERT_TRUE(token >= to.first && token < to.first + to.count);
            ++sent[static_cast<std::size_t>(i)];
          }
        }
        for (const int times : sent) ASSERT_EQ(times, 1);
      }
    }
  }
}

class StageLinks : public ::testing::TestWithParam<std::tuple<std::string, int, int, int>> {};
INSTANTIATE_TEST_SUITE_P(, StageLinks,
                         ::testing::Combine(::testing::Values("thread", "socket"), ::testing::Values(1, 2, 3),
                                            ::testing::Values(1, 2, 4), ::testing::Values(6, 30'000)));

TEST_P(StageLinks, TheWholeTensorArrivesOnEveryRankInBothDirections) {
  const auto& [plane, lower, upper, rows] = GetParam();
  const int lower_tp = lower, upper_tp = upper;
  const int64_t size = rows;
  TestJob job(plane, lower_tp + upper_tp);
  const auto value = [size](double offset) {
    return at::arange(size * 2, at::kFloat).view({size, 2}) + offset;
  };
  job.run([&](CommFactory& factory) {
    const bool low = factory.rank() < lower_tp;
    std::vector<int> mine(static_cast<std::size_t>(low ? lower_tp : upper_tp));
    std::iota(mine.begin(), mine.end(), low ? 0 : lower_tp);
    const auto tp = mine.size() > 1 ? factory.create(low ? "tp/low" : "tp/up", mine) : nullptr;
    StageLink link(factory.create("link", all_ranks(lower_tp + upper_tp)), tp.get(), ReplicaShape{lower_tp},
                   ReplicaShape{upper_tp});
    for (int i = 0; i < 3; ++i) {
      if (low) {
        PendingSend send = link.send(value(i), {size, 2});
        EXPECT_TRUE(at::equal(link.receive({size, 2}, at::kFloat).take(), value(-i)));
        send.wait();
      } else {
        EXPECT_TRUE(at::equal(link.receive({size, 2}, at::kFloat).take(), value(i)));
        PendingSend send = link.send(value(-i), {size, 2});
        send.wait();
      }
    }
  });
}

TEST_P(StageLinks, SharesOfTokensArriveInBothDirections) {
  const auto& [plane, lower, upper, rows] = GetParam();
  const int lower_tp = lower, upper_tp = upper;
  const std::vector<int64_t> shape = {1, rows - 1, 2};
  TestJob job(plane, lower_tp + upper_tp);
  const auto value = [&](int size, int rank, double offset) {
    const at::Tensor whole = at::arange(shape[1] * 2, at::kFloat).view(shape) + offset;
    if (size == 1) return whole;
    const BlockRange mine = block_of(static_cast<std::size_t>(shape[1]), size, rank);
    return whole[0].narrow(0, static_cast<int64_t>(mine.first), static_cast<int64_t>(mine.count));
  };
  job.run([&](CommFactory& factory) {
    const bool low = factory.rank() < lower_tp;
    const int size = low ? lower_tp : upper_tp, rank = factory.rank() - (low ? 0 : lower_tp);
    StageLink link(factory.create("link", all_ranks(lower_tp + upper_tp)), nullptr, ReplicaShape{lower_tp},
                   ReplicaShape{upper_tp}, at::kCPU, /*split_tokens=*/true);
    for (int i = 0; i < 3; ++i) {
      PendingReceive receive = link.receive(shape, at::kFloat);
      PendingSend send = link.send(value(size, rank, low ? i : -i), shape);
      EXPECT_TRUE(at::equal(receive.take(), value(size, rank, low ? -i : i)));
      send.wait();
    }
  });
}

}  // namespace
}  // namespace sailor
