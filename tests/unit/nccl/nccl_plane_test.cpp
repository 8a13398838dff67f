// What only the NCCL plane has: streams, two directions, other orders on other ranks, aborts of what is in
// flight, and libraries that differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <iostream>
#include <optional>

#include "tests/fake_nccl/fake_cuda.h"
#include "tests/fake_nccl/fault_script.h"
#include "tests/unit/nccl/nccl_job.h"
#include "trainer/comm/narrow_float.h"
#include "trainer/comm/nccl/cuda_handles.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;
using fake::Fault;

constexpr ElementType kF32 = ElementType::f32;
constexpr auto kLate = 8s;  // no machine is that busy

// A stream of the caller's own on the device of a rank.
std::unique_ptr<CudaStream> stream_of(int rank) {
  use_device(fake::cuda(), device_of(rank));
  return std::make_unique<CudaStream>(fake::cuda());
}

class NcclPlane : public ::testing::Test {
 protected:
  NcclPlane() { static_cast<void>(fake::take_violations()); }
  ~NcclPlane() override {
    fake::script().let_go();
    EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
  }

  // Runs `body` as every rank and returns the error of each, if any.
  static std::vector<std::optional<CommError>> errors_of(TestJob& job,
                                                         const std::function<void(CommFactory&)>& body) {
    std::vector<std::optional<CommError>> errors(static_cast<std::size_t>(job.size()));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < job.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(job.factory(rank));
        } catch (const CommError& error) {
          errors[static_cast<std::size_t>(rank)].emplace(error);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  static void expect_rebuilt(TestJob& job) {
    const auto errors = errors_of(job, [&](CommFactory& factory) {
      const auto group = factory.create("again", all_ranks(job.size()));
      float x = 1;
      group->all_reduce(&x, 1, kF32, ReduceOp::sum);
      EXPECT_EQ(x, static_cast<float>(job.size()));
    });
    for (const auto& error : errors) EXPECT_FALSE(error.has_value()) << error->what();
  }
};

TEST_F(NcclPlane, SumsIn16Bits) {
  TestJob job(nccl_over("thread"), 3);
  job.run([](CommFactory& factory) {
    const auto group = factory.create("c", all_ranks(3));
    Bf16 bf16;
    Fp16 fp16;
    narrow(static_cast<float>(factory.rank()) + 0.5f, bf16);
    narrow(static_cast<float>(factory.rank()) + 0.5f, fp16);
    group->all_reduce(&bf16, 1, ElementType::bf16, ReduceOp::sum);
    group->all_reduce(&fp16, 1, ElementType::f16, ReduceOp::sum);
    EXPECT_EQ(widen(bf16), 4.5f);
    EXPECT_EQ(widen(fp16), 4.5f);
  });
}

TEST_F(NcclPlane, AGroupOfOneCopies) {
  TestJob job(nccl_over("thread"), 1);
  job.run([](CommFactory& factory) {
    const auto group = factory.create("c", {0});
    float in = 3, out = 0, got = 0;
    group->reduce_scatter(&in, &out, 1, kF32, ReduceOp::sum);
    EXPECT_EQ(out, 3);
    const Transfer to_oneself[] = {{Transfer::Kind::send, &in, 1, kF32, 0},
                                   {Transfer::Kind::recv, &got, 1, kF32, 0}};
    group->exchange(to_oneself)->wait();
    EXPECT_EQ(got, 3);
  });
}

TEST_F(NcclPlane, CollectivesTakeTheirPlaceOnTheStream) {
  TestJob job(nccl_over("thread"), 2);
  job.run([](CommFactory& factory) {
    const auto group = factory.create("c", {0, 1});
    const auto stream = stream_of(factory.rank());
    std::vector<float> x(1000, 0.0f), after(1000);
    std::promise<void> enqueued;
    bool waited = false;
    fake::enqueue(stream->get(), [&] {
      waited = enqueued.get_future().wait_for(10s) == std::future_status::ready;
      x.assign(x.size(), 2.0f);
    });
    group->all_reduce(x.data(), x.size(), kF32, ReduceOp::sum, stream->get());
    fake::enqueue(stream->get(), [&] { after = x; });
    group->all_reduce(x.data(), x.size(), kF32, ReduceOp::max, stream->get());
    enqueued.set_value();
    group->settle();
    EXPECT_TRUE(waited) << "enqueueing waited for the stream";
    EXPECT_THAT(after, ::testing::Each(4.0f));
    EXPECT_THAT(x, ::testing::Each(4.0f));
  });
}

TEST_F(NcclPlane, MessagesComeAfterWhatIsOnTheStreamAndHoldNothingUp) {
  TestJob job(nccl_over("thread"), 2);
  job.run([](CommFactory& factory) {
    const auto group = factory.create("c", {0, 1});
    const auto stream = stream_of(factory.rank());
    float out = 0, in = 0, seen = 0;
    const int peer = 1 - factory.rank();
    const auto received = group->recv(&in, 1, kF32, peer, stream->get());  // long before it is sent
    fake::enqueue(stream->get(), [&] {
      std::this_thread::sleep_for(50ms);
      out = 7;
    });
    const auto sent = group->send(&out, 1, kF32, peer, stream->get());
    received->wait_on(stream->get());
    fake::enqueue(stream->get(), [&] { seen = in; });
    sent->wait_on(stream->get());
    group->all_reduce(&seen, 1, kF32, ReduceOp::sum, stream->get());
    group->settle();
    EXPECT_EQ(seen, 14);
  });
}

TEST_F(NcclPlane, ReceivesThatWaitDoNotHoldUpTheOtherDirection) {
  // As stages do in 1F1B: each asks for what comes next, then sends, over and over, with several under way.
  TestJob job(nccl_over("socket"), 2);
  job.run([](CommFactory& factory) {
    constexpr int kMicrobatches = 20;
    const auto group = factory.create("link", {0, 1});
    const int peer = 1 - factory.rank();
    std::array<int64_t, kMicrobatches> in{}, out{};
    std::vector<std::unique_ptr<Work>> receives, sends;
    for (std::size_t i = 0; i < kMicrobatches; ++i)
      receives.push_back(group->recv(&in[i], 1, ElementType::i64, peer));
    for (std::size_t i = 0; i < kMicrobatches; ++i) {
      if (factory.rank() == 1) receives[i]->wait();
      out[i] = static_cast<int64_t>(i) * 10 + factory.rank() + in[i];
      sends.push_back(group->send(&out[i], 1, ElementType::i64, peer));
      if (factory.rank() == 0) receives[i]->wait();
      EXPECT_EQ(in[i], static_cast<int64_t>(i) * (factory.rank() == 0 ? 20 : 10) + 1 - factory.rank());
    }
    for (const auto& sent : sends) sent->wait();
  });
}

TEST_F(NcclPlane, DifferentOperationsOnDifferentRanksAreFoundOut) {
  TestJob job(nccl_over("socket"), 3, {400ms});
  const auto start = Clock::now();
  const auto errors = errors_of(job, [](CommFactory& factory) {
    const auto group = factory.create("c", all_ranks(3));
    std::vector<float> x(6, 1.0f), y(2);
    group->barrier();
    if (factory.rank() == 1) {
      group->reduce_scatter(x.data(), y.data(), 2, kF32, ReduceOp::sum);
    } else {
      group->all_reduce(x.data(), x.size(), kF32, ReduceOp::sum);
    }
  });
  EXPECT_LT(Clock::now() - start, kLate);
  ASSERT_TRUE(errors[0] && errors[1] && errors[2]);
  EXPECT_EQ(errors[0]->peer(), 1);
  EXPECT_THAT(errors[0]->what(),
              HasSubstr("this rank is in all_reduce of 6 f32 (collective 3), member 1 is in "
                        "reduce_scatter of 2 f32 (collective 3)"));
  EXPECT_EQ(errors[2]->peer(), 1);
  EXPECT_EQ(errors[1]->peer(), 0);
  EXPECT_THAT(errors[1]->what(), HasSubstr("member 0 is in all_reduce of 6 f32"));
  expect_rebuilt(job);
}

TEST_F(NcclPlane, DifferentSizesOnDifferentRanksAreFoundOut) {
  TestJob job(nccl_over("thread"), 2, {400ms});
  const auto errors = errors_of(job, [](CommFactory& factory) {
    const auto group = factory.create("c", {0, 1});
    std::vector<float> x(6, 1.0f);
    group->all_reduce(x.data(), factory.rank() == 0 ? 6 : 5, kF32, ReduceOp::sum);
  });
  ASSERT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(errors[0]->what(), HasSubstr("member 1 is in all_reduce of 5 f32"));
  EXPECT_THAT(errors[1]->what(), HasSubstr("member 0 is in all_reduce of 6 f32"));
  expect_rebuilt(job);
}

TEST_F(NcclPlane, OtherOrdersOfCreationAreFoundOut) {
  for (const char* below : {"thread", "socket"}) {
    TestJob job(nccl_over(below), 2, {400ms});
    const auto start = Clock::now();
    const auto errors = errors_of(job, [](CommFactory& factory) {
      const auto first = factory.create(factory.rank() == 0 ? "a" : "b", {0, 1});
      const auto second = factory.create(factory.rank() == 0 ? "b" : "a", {0, 1});
    });
    EXPECT_LT(Clock::now() - start, kLate);
    ASSERT_TRUE(errors[0] && errors[1]);
    EXPECT_THAT(errors[0]->what(), HasSubstr("create on a: rank 1"));
    EXPECT_THAT(errors[1]->what(), HasSubstr("create on b: rank 0"));
    expect_rebuilt(job);
  }
}

TEST_F(NcclPlane, OtherOrdersOfUseOfTwoGroupsAreFoundOut) {
  TestJob job(nccl_over("socket"), 2, {400ms});
  const auto errors = errors_of(job, [](CommFactory& factory) {
    const auto a = factory.create("a", {0, 1}), b = factory.create("b", {0, 1});
    float x = 1;
    (factory.rank() == 0 ? a : b)->all_reduce(&x, 1, kF32, ReduceOp::sum);
  });
  ASSERT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(errors[0]->what(), HasSubstr("all_reduce on a: rank 1"));
  EXPECT_THAT(errors[0]->what(), HasSubstr("member 1 is in no operation"));
  EXPECT_THAT(errors[1]->what(), HasSubstr("all_reduce on b: rank 0"));
  expect_rebuilt(job);
}

TEST_F(NcclPlane, WhatNobodyWaitsForEndsAtTheDeadlineAndLetsTheStreamGoOn) {
  TestJob job(nccl_over("socket"), 2, {300ms});
  const auto errors = errors_of(job, [](CommFactory& factory) {
    const auto group = factory.create("c", {0, 1});
    float x = 1;
    group->all_reduce(&x, 1, kF32, ReduceOp::sum);
    if (factory.rank() == 1) return std::this_thread::sleep_for(1500ms);  // computes for too long
    const auto stream = stream_of(0);
    group->all_reduce(&x, 1, kF32, ReduceOp::sum, stream->get());
    // As the host that waits for the device to have computed the loss.
    std::promise<void> reached;
    fake::enqueue(stream->get(), [&] { reached.set_value(); });
    EXPECT_EQ(reached.get_future().wait_for(kLate), std::future_status::ready);
    group->settle();
  });
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_EQ(errors[0]->peer(), 1);
  EXPECT_THAT(errors[0]->what(), HasSubstr("no answer within 0.3 s: this rank is in all_reduce of 1 f32"));
  expect_rebuilt(job);
}

TEST_F(NcclPlane, AnAbortEndsACollectiveInFlight) {
  TestJob job(nccl_over("socket"), 2, {60s});
  std::promise<void> enqueued;
  std::thread aborter([&] {
    enqueued.get_future().wait();
    std::this_thread::sleep_for(50ms);
    job.factory(0).abort();
  });
  const auto start = Clock::now();
  const auto errors = errors_of(job, [&](CommFactory& factory) {
    const auto group = factory.create("c", {0, 1});
    const auto stream = stream_of(factory.rank());
    float x = 1;
    group->barrier();
    if (factory.rank() == 0) {
      group->all_reduce(&x, 1, kF32, ReduceOp::sum, stream->get());
      enqueued.set_value();
      group->settle();
    } else {
      group->recv(&x, 1, kF32, 0)->wait();
    }
  });
  aborter.join();
  EXPECT_LT(Clock::now() - start, kLate);
  ASSERT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(errors[0]->what(), HasSubstr("aborted"));
  EXPECT_EQ(errors[1]->peer(), 0);
  EXPECT_THAT(errors[1]->what(), HasSubstr("is gone: aborted"));
}

TEST_F(NcclPlane, AnAbortEndsACreationInFlight) {
  // The other rank hangs inside NCCL, so that this one has a communicator that is being made.
  TestJob job(nccl_over("socket"), 2, {60s});
  fake::script().set({{.call = "ncclCommInitRankConfig", .kind = Fault::Kind::hang, .device = device_of(1)}});
  std::thread aborter([&] {
    std::this_thread::sleep_for(200ms);
    job.factory(0).abort();
  });
  const auto start = Clock::now();
  const auto errors = errors_of(job, [](CommFactory& factory) { factory.create("c", {0, 1}); });
  aborter.join();
  EXPECT_LT(Clock::now() - start, kLate);
  ASSERT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(errors[0]->what(), HasSubstr("create on c: aborted"));
  EXPECT_THAT(errors[1]->what(), HasSubstr("is gone: aborted"));
}

TEST_F(NcclPlane, AnAbortThatHangsIsOneErrorThatSaysSo) {
  TestJob job(nccl_over("socket"), 2, {300ms});
  fake::script().set({{.call = "ncclCommAbort", .kind = Fault::Kind::hang, .device = device_of(0)}});
  const auto start = Clock::now();
  const auto errors = errors_of(job, [](CommFactory& factory) {
    const auto group = factory.create("c", {0, 1});
    float x = 1;
    group->recv(&x, 1, kF32, 1 - factory.rank())->wait();  // nobody sends
  });
  EXPECT_LT(Clock::now() - start, 12s);
  ASSERT_TRUE(errors[0] && errors[1]);
  EXPECT_THAT(errors[0]->what(), HasSubstr("ncclCommAbort does not return: start this process again"));
  EXPECT_THAT(errors[1]->what(), ::testing::Not(HasSubstr("ncclCommAbort")));
  fake::script().let_go();
  expect_rebuilt(job);
}

TEST_F(NcclPlane, AnAbortDoesNotWaitForTheOtherCommunicatorsOfItsRank) {
  TestJob job(nccl_over("socket"), 2, {300ms});
  std::promise<void> over;
  Clock::duration took{};
  const auto errors = errors_of(job, [&](CommFactory& factory) {
    const auto a = factory.create("a", {0, 1}), b = factory.create("b", {0, 1});
    float x = 1, y = 1;
    if (factory.rank() == 1) {
      b->send(&x, 1, kF32, 0)->wait();
      over.get_future().wait();  // sends no more
      return;
    }
    b->recv(&x, 1, kF32, 1)->wait();
    const auto ahead = b->recv(&y, 1, kF32, 1);  // runs on the device, and nobody waits for it yet
    const auto start = Clock::now();
    try {
      a->recv(&x, 1, kF32, 1)->wait();
    } catch (const CommError&) {
      took = Clock::now() - start;
      over.set_value();
      throw;
    }
  });
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_LT(took, 4s);
  EXPECT_THAT(errors[0]->what(), ::testing::Not(HasSubstr("ncclCommAbort does not return")));
  expect_rebuilt(job);
}

TEST_F(NcclPlane, ARankWhoseCallHangsIsNamedByTheOthers) {
  TestJob job(nccl_over("socket"), 3, {400ms});
  fake::script().set({{.call = "ncclAllReduce", .kind = Fault::Kind::hang, .device = device_of(1)}});
  const auto errors = errors_of(job, [](CommFactory& factory) {
    const auto group = factory.create("c", all_ranks(3));
    float x = 1;
    group->all_reduce(&x, 1, kF32, ReduceOp::sum);
  });
  ASSERT_TRUE(errors[0] && errors[1] && errors[2]);
  EXPECT_EQ(errors[0]->peer(), 1);
  EXPECT_EQ(errors[2]->peer(), 1);
  EXPECT_THAT(errors[0]->what(),
              HasSubstr("member 1 is in all_reduce of 1 f32 (collective 2), inside a call of "
                        "NCCL that does not return"));
  fake::script().let_go();
  expect_rebuilt(job);
}

TEST_F(NcclPlane, ReleasesOfNcclMustBeTheSame) {
  static NcclLibrary older = fake::nccl();
  older.get_version = [](int* version) {
    *version = NCCL_VERSION(2, 20, 5);
    return ncclSuccess;
  };
  const TestPlane mixed("socket",
                        [](CommFactory& below, CommOptions options) -> std::unique_ptr<CommFactory> {
                          return std::make_unique<NcclFactory>(
                              below, device_of(below.rank()), options,
                              below.rank() == 1 ? DeviceLibraries{older, fake::cuda()} : fake::libraries());
                        });
  TestJob job(mixed, 2, {5s});
  const auto errors = errors_of(job, [](CommFactory& factory) { factory.create("c", {0, 1}); });
  ASSERT_TRUE(errors[0].has_value());
  EXPECT_EQ(errors[0]->peer(), 1);
  EXPECT_THAT(errors[0]->what(), HasSubstr("has NCCL 2.20.5, and this rank has "));
}

TEST_F(NcclPlane, AGroupForCollectivesHasOneCommunicatorAndNoMessages) {
  static_cast<void>(fake::take_created());
  TestJob job(nccl_over("socket"), 2);
  job.run([](CommFactory& factory) {
    const auto group = factory.create("c", {0, 1}, CommUse::collectives);
    float x = 1;
    group->all_reduce(&x, 1, kF32, ReduceOp::sum);
    EXPECT_EQ(x, 2);
    EXPECT_THROW(group->send(&x, 1, kF32, 1 - factory.rank()), std::logic_error);
    group->barrier();
  });
  EXPECT_EQ(fake::take_created().size(), 2u);
}

TEST_F(NcclPlane, TheUsersLimitOfMultiprocessorsWins) {
  TestJob job(nccl_over("thread"), 2);
  const auto limits_of = [&](const char* name) {
    static_cast<void>(fake::take_created());
    job.run([&](CommFactory& factory) {
      factory.create(name, {0, 1}, CommUse::background_collectives)->barrier();
    });
    std::vector<int> limits;
    for (const fake::Created& one : fake::take_created()) limits.push_back(one.max_ctas);
    return limits;
  };
  EXPECT_THAT(limits_of("ours"), ::testing::ElementsAre(16, 16));
  setenv("NCCL_MAX_CTAS", "8", 1);
  EXPECT_THAT(limits_of("the user's"), ::testing::ElementsAre(0, 0)) << "NCCL reads it itself";
  unsetenv("NCCL_MAX_CTAS");
}

// The host's share of an operation on a stream: a thread of NCCL, and waiting for it. Prints the figure.
TEST_F(NcclPlane, HostTimeOfACollective) {
  constexpr int kCalls = 300;
  TestJob job(nccl_over("thread"), 2);
  std::array<double, 2> us{};
  job.run([&](CommFactory& factory) {
    const auto group = factory.create("c", {0, 1}, CommUse::collectives);
    const auto stream = stream_of(factory.rank());
    float x = 1;
    group->all_reduce(&x, 1, kF32, ReduceOp::max, stream->get());
    group->settle();
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) group->all_reduce(&x, 1, kF32, ReduceOp::max, stream->get());
    us[static_cast<std::size_t>(factory.rank())] =
        std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kCalls;
    group->settle();
  });
  std::cout << "host time of an all-reduce on a stream: " << us[0] << " us\n";
  EXPECT_LT(us[0], 20e3) << "no sleep of the plane's own";
}

TEST_F(NcclPlane, NothingIsLeftBehind) {
  const int before = fake::living_communicators();
  {
    TestJob job(nccl_over("socket"), 3);
    job.run([](CommFactory& factory) {
      const auto a = factory.create("a", all_ranks(3)), b = factory.create("b", {2, 1, 0});
      a->barrier();
      b->abort();
    });
  }
  EXPECT_EQ(fake::living_communicators(), before);
}

}  // namespace
}  // namespace sailor
