// The contract of every plane: every operation, and every way to fail. Included by one file of each test
// binary, which instantiates it with INSTANTIATE_TEST_SUITE_P for its planes.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <bit>
#include <chrono>
#include <future>
#include <limits>
#include <numeric>

#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/comm/narrow_float.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Planes : public ::testing::TestWithParam<TestPlane> {};

TEST_P(Planes, AllReduceSumsInRankOrderOnEveryMemberAndSize) {
  for (const int size : {1, 2, 3, 6}) {
    TestJob job(GetParam(), size);
    job.run([&](CommFactory& factory) {
      const auto comm = factory.create("c", all_ranks(size));
      // The last two are reduced in several pieces, of which a rank's last may be empty.
      for (const std::size_t count : {0, 1, 1000, 100'003, 393'217, 1'000'003}) {
        std::vector<float> data(count), expected(count);
        for (std::size_t i = 0; i < count; ++i) {
          const auto value = [&](int rank) {
            return 0.1f * static_cast<float>(rank + 1) + 1e-4f * static_cast<float>(i % 977);
          };
          data[i] = value(comm->rank());
          expected[i] = value(0);
          for (int rank = 1; rank < size; ++rank) expected[i] += value(rank);  // the promised order, in fp32
        }
        comm->all_reduce(data.data(), count, ElementType::f32, ReduceOp::sum);
        ASSERT_EQ(data, expected) << size << " ranks, " << count << " elements";
      }
    });
  }
}

TEST_P(Planes, AllReduceMaxAndTheOtherTypes) {
  TestJob job(GetParam(), 3);
  job.run([&](CommFactory& factory) {
    const auto comm = factory.create("c", all_ranks(3));
    const int r = comm->rank();
    std::vector<double> doubles = {1.0 * r, -1.0 * r};
    comm->all_reduce(doubles.data(), 2, ElementType::f64, ReduceOp::max);
    EXPECT_THAT(doubles, ::testing::ElementsAre(2.0, 0.0));
    std::vector<int64_t> longs = {int64_t{1} << (40 + r)};
    comm->all_reduce(longs.data(), 1, ElementType::i64, ReduceOp::sum);
    EXPECT_EQ(longs[0], int64_t{7} << 40);
    std::vector<uint8_t> bytes = {static_cast<uint8_t>(r + 1)};
    comm->all_reduce(bytes.data(), 1, ElementType::u8, ReduceOp::sum);
    EXPECT_EQ(bytes[0], 6);
  });
}

TEST_P(Planes, Bf16IsAccumulatedInFp32) {
  if (GetParam().above) GTEST_SKIP() << "rounding is its library's";
  // 256 + 1 + 1 in bf16 steps stays 256 (its spacing there is 2); accumulated in fp32 it is 258.
  TestJob job(GetParam(), 3);
  job.run([&](CommFactory& factory) {
    const auto comm = factory.create("c", all_ranks(3));
    const auto bf16 = [](float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); };
    uint16_t value = bf16(comm->rank() == 0 ? 256.0f : 1.0f);
    comm->all_reduce(&value, 1, ElementType::bf16, ReduceOp::sum);
    EXPECT_EQ(value, bf16(258.0f));
  });
}

TEST_P(Planes, F16IsAccumulatedInFp32AndOverflowsToInfinity) {
  if (GetParam().above) GTEST_SKIP() << "rounding is its library's";
  TestJob job(GetParam(), 3);
  job.run([&](CommFactory& factory) {
    const auto comm = factory.create("c", all_ranks(3));
    const bool first = comm->rank() == 0;
    // The spacing at 2048 is 2. The sum 3 * 30000 is above the largest number, 65504.
    std::array<Fp16, 3> values;
    narrow(first ? 2048.0f : 1.0f, values[0]);
    narrow(30000.0f, values[1]);
    narrow(first ? 60000.0f : -20000.0f, values[2]);
    comm->all_reduce(values.data(), values.size(), ElementType::f16, ReduceOp::sum);
    EXPECT_EQ(widen(values[0]), 2050.0f);
    EXPECT_EQ(widen(values[1]), std::numeric_limits<float>::infinity());
    EXPECT_NEAR(widen(values[2]), 20000.0f, 32.0f);
  });
}

TEST_P(Planes, ReduceScatterAllGatherAndBroadcast) {
  TestJob job(GetParam(), 4);
  job.run([&](CommFactory& factory) {
    const auto comm =
        factory.create("c", {2, 0, 3, 1});  // ranks of the communicator are positions in the list
    const int me = comm->rank();
    EXPECT_EQ(comm->ranks()[static_cast<std::size_t>(me)], factory.rank());
    constexpr std::size_t kBlock = 5000;
    std::vector<float> in(4 * kBlock), block(kBlock), all(4 * kBlock);
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = static_cast<float>(i / kBlock * 10 + static_cast<std::size_t>(me));
    comm->reduce_scatter(in.data(), block.data(), kBlock, ElementType::f32, ReduceOp::sum);
    EXPECT_THAT(block, ::testing::Each(static_cast<float>(me * 40 + 6)));
    comm->all_gather(block.data(), all.data(), kBlock, ElementType::f32);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<float>(i / kBlock * 40 + 6));
    std::vector<int64_t> told = {me == 3 ? int64_t{42} : int64_t{0}};
    comm->broadcast(told.data(), 1, ElementType::i64, 3);
    EXPECT_EQ(told[0], 42);
    comm->barrier();
  });
}

TEST_P(Planes, TheHalvesOfAnAllReduceGiveItsBits) {
  for (const int size : {1, 2, 3, 5}) {
    TestJob job(GetParam(), size);
    job.run([&](CommFactory& factory) {
      const auto comm = factory.create("c", all_ranks(size));
      for (const std::size_t count : {0, 1, 4, 1003, 50'001, 393'217, 1'000'003}) {
        std::vector<float> whole(count);
        for (std::size_t i = 0; i < count; ++i)
          whole[i] = 0.1f * static_cast<float>(comm->rank() + 1) + 1e-4f * static_cast<float>(i % 977);
        std::vector<float> halves = whole;
        const std::vector<float> before = whole;
        comm->all_reduce(whole.data(), count, ElementType::f32, ReduceOp::sum);
        comm->reduce_own_block(halves.data(), count, ElementType::f32, ReduceOp::sum);
        const BlockRange own = block_of(count, size, comm->rank());
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(halves[i], i >= own.first && i < own.first + own.count ? whole[i] : before[i]);
        comm->gather_blocks(halves.data(), count, ElementType::f32);
        ASSERT_EQ(halves, whole) << size << " ranks, " << count << " elements";
      }
    });
  }
}

TEST_P(Planes, AHandleTellsWhetherItIsDone) {
  TestJob job(GetParam(), 2);
  std::promise<void> asked;
  job.run([&](CommFactory& factory) {
    const auto comm = factory.create("c", all_ranks(2));
    int value = comm->rank();
    if (comm->rank() == 0) {
      const auto receive = comm->recv(&value, sizeof value, ElementType::u8, 1);
      EXPECT_FALSE(receive->done());
      asked.set_value();
      while (!receive->done()) std::this_thread::yield();
      receive->wait();
      EXPECT_EQ(value, 1);
    } else {
      asked.get_future().wait();
      comm->send(&value, sizeof value, ElementType::u8, 0)->wait();
    }
  });
}

TEST_P(Planes, TwoThreadsOfARankWaitOnTwoCommunicators) {
  // One thread reduces large blocks while the other sends small messages around; each completes what the
  // other waits for.
  constexpr int kSize = 3, kRounds = 60;
  TestJob job(GetParam(), kSize);
  job.run([&](CommFactory& factory) {
    const auto sums = factory.create("sums", all_ranks(kSize));
    const auto ring = factory.create("ring", all_ranks(kSize));
    std::vector<float> data(200'000, 1.0f);
    std::thread adder([&] {
      for (int i = 0; i < 8; ++i) sums->all_reduce(data.data(), data.size(), ElementType::f32, ReduceOp::sum);
    });
    int64_t token = 0;
    for (int i = 0; i < kRounds; ++i) {
      const int64_t sent = token + ring->rank();
      const Transfer transfers[] = {
          {Transfer::Kind::send, const_cast<int64_t*>(&sent), 1, ElementType::i64,
           (ring->rank() + 1) % kSize},
          {Transfer::Kind::recv, &token, 1, ElementType::i64, (ring->rank() + kSize - 1) % kSize}};
      ring->exchange(transfers)->wait();
    }
    adder.join();
    EXPECT_EQ(data[0], 6561.0f);  // 3^8
    // Every round adds the sender's rank to a token that moves on: after a multiple of three rounds all are
    // equal.
    EXPECT_EQ(token, kRounds / kSize * 3);
  });
}

TEST_P(Planes, MessagesKeepTheirOrderAndLargeExchangesDoNotDeadlock) {
  constexpr std::size_t kCount = 3'000'000;  // far beyond what a socket buffers
  TestJob job(GetParam(), 2);
  job.run([&](CommFactory& factory) {
    const auto comm = factory.create("c", {0, 1});
    const int peer = 1 - comm->rank();
    std::vector<int64_t> out(kCount, comm->rank() + 7), in(kCount), second_in(1);
    const int64_t second_out = 100 + comm->rank();
    const auto first = comm->send(out.data(), kCount, ElementType::i64, peer);
    const auto second = comm->send(&second_out, 1, ElementType::i64, peer);
    comm->recv(in.data(), kCount, ElementType::i64, peer)->wait();
    comm->recv(second_in.data(), 1, ElementType::i64, peer)->wait();
    first->wait();
    second->wait();
    EXPECT_EQ(std::count(in.begin(), in.end(), peer + 7), static_cast<std::ptrdiff_t>(kCount));
    EXPECT_EQ(second_in[0], 100 + peer);
  });
}

TEST_P(Planes, AWaitOnOneCommunicatorMovesTheOthers) {
  // 0 sends a large message to 1 on `a` and then waits for 1 on `b`; 1 answers on `b` only after it has the
  // whole message.
  TestJob job(GetParam(), 2);
  job.run([&](CommFactory& factory) {
    const auto a = factory.create("a", {0, 1});
    const auto b = factory.create("b", {0, 1});
    std::vector<uint8_t> large(20'000'000, 3);
    uint8_t answer = 0;
    if (factory.rank() == 0) {
      const auto sent = a->send(large.data(), large.size(), ElementType::u8, 1);
      b->recv(&answer, 1, ElementType::u8, 1)->wait();
      EXPECT_EQ(answer, 9);
      sent->wait();
    } else {
      a->recv(large.data(), large.size(), ElementType::u8, 0)->wait();
      answer = 9;
      b->send(&answer, 1, ElementType::u8, 0)->wait();
    }
  });
}

TEST_P(Planes, AMessageTravelsWhileItsSenderComputes) {
  TestJob job(GetParam(), 2);
  job.run([&](CommFactory& factory) {
    const auto comm = factory.create("c", {0, 1});
    std::vector<uint8_t> large(20'000'000, 3);
    comm->barrier();
    const auto start = Clock::now();
    if (factory.rank() == 0) {
      const auto sent = comm->send(large.data(), large.size(), ElementType::u8, 1);
      std::this_thread::sleep_for(3s);
      sent->wait();
    } else {
      comm->recv(large.data(), large.size(), ElementType::u8, 0)->wait();
      EXPECT_LT(Clock::now() - start, 2s) << "the message waited for its sender to wait";
    }
  });
}

TEST_P(Planes, AbortFromAnotherThreadEndsAWaitAndReachesThePeers) {
  TestJob job(GetParam(), 3);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  const auto start = Clock::now();
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto comm = job.factory(rank).create("c", all_ranks(3));
      float x = 0;
      if (rank == 2) {  // hangs elsewhere, and is aborted by its own supervisor
        EXPECT_THROW(
            {
              comm->recv(&x, 1, ElementType::f32, 0)->wait();  // may get what belongs to the sum
              comm->recv(&x, 1, ElementType::f32, 0)->wait();
            },
            CommError);
        ++failed;
      } else {
        EXPECT_THROW(comm->all_reduce(&x, 1, ElementType::f32, ReduceOp::sum), CommError);
        ++failed;
      }
      EXPECT_THROW(comm->barrier(), CommError) << "a failed communicator stays failed";
    });
  }
  std::this_thread::sleep_for(200ms);
  job.factory(2).abort();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 3);
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_THROW(job.factory(2).create("d", {2}), CommError);
}

TEST_P(Planes, APeerThatLeavesIsAnErrorOnlyForWhoNeedsIt) {
  TestJob job(GetParam(), 3);
  std::promise<void> gone;
  std::barrier got_along(2);
  const std::shared_future<void> left = gone.get_future().share();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      auto comm = job.factory(rank).create("c", all_ranks(3));
      float x = static_cast<float>(rank);
      if (rank == 2) {
        comm->send(&x, 1, ElementType::f32, 0)->wait();
        comm.reset();
        gone.set_value();
        return;
      }
      // The thread plane's send ends when it is taken, so take it first.
      if (rank == 0) {
        comm->recv(&x, 1, ElementType::f32, 2)->wait();
        EXPECT_EQ(x, 2.0f);
      }
      left.wait();
      const Transfer pair[] = {{Transfer::Kind::send, &x, 1, ElementType::f32, 1 - rank}};
      float y = 0;
      const auto sent = comm->exchange(pair);
      comm->recv(&y, 1, ElementType::f32, 1 - rank)->wait();  // 0 and 1 get along without 2
      sent->wait();
      got_along.arrive_and_wait();  // a failure reaches the other one, too
      try {
        comm->recv(&y, 1, ElementType::f32, 2)->wait();
        ADD_FAILURE() << "received from a rank that left";
      } catch (const CommError& error) {
        EXPECT_TRUE(error.peer() == 2 || error.peer() == 1 - rank) << error.what();  // whoever noticed first
        EXPECT_EQ(error.operation(), "recv");
        EXPECT_FALSE(error.host().empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(Planes, TheDeadlineNamesTheSilentRank) {
  TestJob job(GetParam(), 2, {300ms});
  std::promise<void> done;
  std::thread silent([&] {
    const auto comm = job.factory(1).create("c", {0, 1});
    done.get_future().wait();
  });
  const auto comm = job.factory(0).create("c", {0, 1});
  float x = 0;
  const auto start = Clock::now();
  try {
    comm->all_reduce(&x, 1, ElementType::f32, ReduceOp::sum);
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_EQ(error.peer(), 1);
    EXPECT_EQ(error.operation(), "all_reduce");
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no answer within 0.3 s"));
  }
  EXPECT_GE(Clock::now() - start, 290ms);
  EXPECT_LT(Clock::now() - start, 3s);
  done.set_value();
  silent.join();
}

TEST_P(Planes, AMemberThatNeverJoinsIsNamed) {
  TestJob job(GetParam(), 2, {300ms});
  try {
    job.factory(0).create("c", {0, 1});
    ADD_FAILURE() << "no error";
  } catch (const CommError& error) {
    EXPECT_EQ(error.peer(), 1);
    EXPECT_EQ(error.operation(), "create");
  }
}

TEST_P(Planes, AbortEndsACreationInProgress) {
  TestJob job(GetParam(), 2);
  std::thread aborter([&] {
    std::this_thread::sleep_for(200ms);
    job.factory(0).abort();
  });
  const auto start = Clock::now();
  EXPECT_THROW(job.factory(0).create("c", {0, 1}), CommError);
  EXPECT_LT(Clock::now() - start, 5s);
  aborter.join();
}

TEST_P(Planes, AnAbandonedHandleIsNeverWrittenTo) {
  TestJob job(GetParam(), 2);
  std::promise<void> created;
  job.run([&](CommFactory& factory) {
    const auto comm = factory.create("c", {0, 1});
    if (factory.rank() == 0) {
      auto buffer = std::make_unique<std::vector<uint8_t>>(1'000'000);
      created.get_future().wait();  // or the other one's create() would fail
      { const auto dropped = comm->recv(buffer->data(), buffer->size(), ElementType::u8, 1); }
      buffer.reset();  // a late message must not land here (the sanitizer watches)
      uint8_t x = 0;
      EXPECT_THROW(comm->recv(&x, 1, ElementType::u8, 1)->wait(), CommError);
    } else {
      created.set_value();
      std::vector<uint8_t> data(1'000'000);
      try {
        comm->send(data.data(), data.size(), ElementType::u8, 0)->wait();
      } catch (const CommError&) {
      }
    }
  });
}

}  // namespace
}  // namespace sailor
