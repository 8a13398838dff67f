// Everything that can go wrong inside NCCL and the CUDA runtime, one thing at a time: an error of every call,
// a hang of every call, an asynchronous error, on one rank of three. Each rank gets at most one error, which
// says what it was in, in time; then the same ranks build the group again under a new name, and it works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "tests/fake_nccl/fake_cuda.h"
#include "tests/fake_nccl/fault_script.h"
#include "tests/unit/nccl/nccl_job.h"
#include "trainer/comm/nccl/cuda_handles.h"

namespace sailor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using fake::Fault;

constexpr int kRanks = 3;
constexpr int kFaulty = 1;  // the rank that has the fault
constexpr auto kDeadline = 600ms;
// What an end may take beyond the deadline: asking the others, an abort, a machine that is busy.
constexpr auto kEnd = 8s;

struct Script {
  std::string name;
  Fault fault;
  std::string says;       // in the faulty rank's error
  bool harmless = false;  // does not cause an error
};

void PrintTo(const Script& script, std::ostream* out) {
  *out << script.name;
}

Fault error(const char* call, int code, int after = 0) {
  return {
      .call = call, .kind = Fault::Kind::error, .code = code, .device = device_of(kFaulty), .after = after};
}
Fault hang(const char* call, int after = 0) {
  return {.call = call, .kind = Fault::Kind::hang, .device = device_of(kFaulty), .after = after};
}
// On threads that have no device, too.
Fault anywhere(Fault fault) {
  fault.device = -1;
  return fault;
}
// Of the rank that draws the ids.
Fault at_first(Fault fault) {
  fault.device = device_of(0);
  return fault;
}
Fault asynchronous(int code, std::chrono::milliseconds delay) {
  return {.call = "asynchronous error",
          .kind = Fault::Kind::late,
          .code = code,
          .device = device_of(kFaulty),
          .delay = delay};
}

std::vector<Script> scripts() {
  return {
      {"ErrorOfGetVersion", anywhere(error("ncclGetVersion", ncclSystemError)),
       "ncclGetVersion: unhandled system error"},
      {"ErrorOfGetUniqueId", at_first(error("ncclGetUniqueId", ncclSystemError)), ""},
      {"ErrorOfTheSecondGetUniqueId", at_first(error("ncclGetUniqueId", ncclInternalError, 1)), ""},
      {"HangOfGetUniqueId", at_first(hang("ncclGetUniqueId")), ""},
      {"ErrorOfInit", error("ncclCommInitRankConfig", ncclUnhandledCudaError),
       "ncclCommInitRankConfig: unhandled cuda error (scripted)"},
      {"ErrorOfTheSecondInit", error("ncclCommInitRankConfig", ncclSystemError, 1),
       "ncclCommInitRankConfig: unhandled system error"},
      {"HangOfInit", hang("ncclCommInitRankConfig"), "no answer within 0.6 s"},
      {"HangOfTheSecondInit", hang("ncclCommInitRankConfig", 1), "no answer within 0.6 s"},
      {"ErrorOfGetAsyncErrorInCreation", error("ncclCommGetAsyncError", ncclInternalError),
       "ncclCommGetAsyncError: internal error"},
      {"ErrorOfGetAsyncErrorLater", error("ncclCommGetAsyncError", ncclInternalError, 30),
       "ncclCommGetAsyncError: internal error"},
      {"HangOfGetAsyncErrorInCreation", hang("ncclCommGetAsyncError"), "no answer within 0.6 s"},
      {"HangOfGetAsyncErrorLater", hang("ncclCommGetAsyncError", 30), ""},
      {"AsynchronousErrorInCreation", asynchronous(ncclRemoteError, 0ms),
       "asynchronous error of NCCL: remote process exited"},
      {"AsynchronousErrorLater", asynchronous(ncclRemoteError, 100ms),
       "asynchronous error of NCCL: remote process exited"},
      {"AsynchronousSystemError", asynchronous(ncclSystemError, 50ms),
       "asynchronous error of NCCL: unhandled system error"},
      {"ErrorOfGroupStart", error("ncclGroupStart", ncclInvalidUsage), "ncclGroupStart: invalid usage"},
      {"ErrorOfGroupEnd", error("ncclGroupEnd", ncclUnhandledCudaError),
       "ncclGroupEnd: unhandled cuda error"},
      {"HangOfGroupEnd", hang("ncclGroupEnd"), "no answer within 0.6 s"},
      {"ErrorOfAllReduce", error("ncclAllReduce", ncclInternalError),
       "all_reduce on group: ncclAllReduce: internal error"},
      {"HangOfAllReduce", hang("ncclAllReduce"), "all_reduce on group: "},
      {"ErrorOfReduceScatter", error("ncclReduceScatter", ncclInternalError),
       "reduce_scatter on group: ncclReduceScatter: internal error"},
      {"HangOfReduceScatter", hang("ncclReduceScatter"), "reduce_scatter on group: "},
      {"ErrorOfAllGather", error("ncclAllGather", ncclInternalError),
       "all_gather on group: ncclAllGather: internal error"},
      {"HangOfAllGather", hang("ncclAllGather"), "all_gather on group: "},
      {"ErrorOfReduce", error("ncclReduce", ncclInternalError),
       "reduce_own_block on group: ncclReduce: internal error"},
      {"ErrorInTheMiddleOfAGroup", error("ncclReduce", ncclInternalError, 2),
       "reduce_own_block on group: ncclReduce: internal error"},
      {"HangOfReduce", hang("ncclReduce"), "reduce_own_block on group: "},
      {"ErrorOfBroadcast", error("ncclBroadcast", ncclInternalError, 3),
       "broadcast on group: ncclBroadcast: internal error"},
      {"HangOfBroadcast", hang("ncclBroadcast", 3), "broadcast on group: "},
      {"ErrorOfSend", error("ncclSend", ncclInternalError), "exchange on group: ncclSend: internal error"},
      {"HangOfSend", hang("ncclSend"), "exchange on group: "},
      {"ErrorOfRecv", error("ncclRecv", ncclRemoteError),
       "exchange on group: ncclRecv: remote process exited"},
      {"HangOfRecv", hang("ncclRecv"), "exchange on group: "},
      {"ErrorOfFinalize", error("ncclCommFinalize", ncclInternalError), "", true},
      {"HangOfFinalize", hang("ncclCommFinalize"), "", true},
      {"ErrorOfDestroy", error("ncclCommDestroy", ncclInternalError), "", true},
      {"HangOfDestroy", hang("ncclCommDestroy"), "", true},
      {"ErrorOfStreamCreate", error("cudaStreamCreateWithFlags", cudaErrorMemoryAllocation),
       "create on group: cudaStreamCreateWithFlags: out of memory"},
      {"ErrorOfHostAlloc", error("cudaHostAlloc", cudaErrorMemoryAllocation),
       "create on group: cudaHostAlloc: out of memory"},
      {"ErrorOfSetDevice", error("cudaSetDevice", cudaErrorUnknown), "cudaSetDevice: scripted CUDA error"},
      {"ErrorOfGetDevice", anywhere(error("cudaGetDevice", cudaErrorUnknown)),
       "cudaGetDevice: scripted CUDA error"},
      {"ErrorOfEventCreate", error("cudaEventCreateWithFlags", cudaErrorMemoryAllocation),
       "cudaEventCreateWithFlags: out of memory"},
      {"ErrorOfEventRecord", error("cudaEventRecord", cudaErrorUnknown, 2),
       "cudaEventRecord: scripted CUDA error"},
      {"ErrorOfEventQuery", error("cudaEventQuery", cudaErrorUnknown, 2),
       "cudaEventQuery: scripted CUDA error"},
      {"ErrorOfStreamWaitEvent", error("cudaStreamWaitEvent", cudaErrorUnknown),
       "cudaStreamWaitEvent: scripted CUDA error"},
  };
}

// Once through everything; throws what the communicator throws.
void use(Communicator& group, cudaStream_t stream) {
  constexpr ElementType f32 = ElementType::f32;
  const int rank = group.rank(), next = (rank + 1) % kRanks, before = (rank + kRanks - 1) % kRanks;
  std::vector<float> data(7, static_cast<float>(rank + 1)), all(3 * kRanks), block(3);
  group.all_reduce(data.data(), data.size(), f32, ReduceOp::sum);
  EXPECT_THAT(data, ::testing::Each(6.0f));
  std::vector<float> blocks(3 * kRanks, 1.0f);
  group.reduce_scatter(blocks.data(), block.data(), 3, f32, ReduceOp::sum);
  EXPECT_THAT(block, ::testing::Each(3.0f));
  group.all_gather(block.data(), all.data(), 3, f32);
  EXPECT_THAT(all, ::testing::Each(3.0f));
  group.reduce_own_block(data.data(), data.size(), f32, ReduceOp::sum);
  group.gather_blocks(data.data(), data.size(), f32);
  EXPECT_THAT(data, ::testing::Each(18.0f));
  group.broadcast(data.data(), data.size(), f32, 2);
  int64_t sent = rank, got = -1;
  const Transfer ring[] = {{Transfer::Kind::send, &sent, 1, ElementType::i64, next},
                           {Transfer::Kind::recv, &got, 1, ElementType::i64, before}};
  const auto exchanged = group.exchange(ring, stream);
  exchanged->wait_on(stream);
  group.settle();
  EXPECT_EQ(got, before);
  group.all_reduce(data.data(), data.size(), f32, ReduceOp::max, stream);
  group.settle();
  group.barrier();
}

class FaultScripts : public ::testing::TestWithParam<Script> {
 protected:
  void SetUp() override { static_cast<void>(fake::take_violations()); }
  void TearDown() override { fake::script().let_go(); }
};
INSTANTIATE_TEST_SUITE_P(, FaultScripts, ::testing::ValuesIn(scripts()),
                         [](const auto& info) { return info.param.name; });

TEST_P(FaultScripts, EndInOneErrorEachInTimeAndTheGroupIsRebuilt) {
  const Script& script = GetParam();
  TestJob job(nccl_over("socket"), kRanks, {kDeadline});
  std::vector<std::unique_ptr<CudaStream>> streams;
  for (int rank = 0; rank < kRanks; ++rank) {
    use_device(fake::cuda(), device_of(rank));
    streams.push_back(std::make_unique<CudaStream>(fake::cuda()));
  }
  std::vector<std::optional<CommError>> errors(kRanks);
  std::vector<Clock::duration> took(kRanks);
  std::vector<std::thread> threads;
  const auto every_rank = [&](const std::function<void(int)>& body) {
    for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(body, rank);
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  };

  fake::script().set({script.fault});
  every_rank([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const auto start = Clock::now();
    std::unique_ptr<Communicator> group;
    try {
      group = job.factory(rank).create("group", all_ranks(kRanks));
      use(*group, streams[at]->get());
      if (script.fault.kind == Fault::Kind::late || script.fault.after >= 30) {
        std::this_thread::sleep_for(300ms);  // without any call, and it is detected
        use(*group, streams[at]->get());
      }
    } catch (const CommError& error) {
      errors[at].emplace(error);
      if (group) {
        EXPECT_THROW(group->barrier(), CommError) << "a failed communicator stays failed";
      }
    }
    group.reset();
    took[at] = Clock::now() - start;
  });

  for (int rank = 0; rank < kRanks; ++rank) {
    const std::optional<CommError>& error = errors[static_cast<std::size_t>(rank)];
    EXPECT_EQ(error.has_value(), !script.harmless)
        << "rank " << rank << ": " << (error ? error->what() : "no error");
    EXPECT_LT(took[static_cast<std::size_t>(rank)], kDeadline + kEnd) << "rank " << rank;
    if (error && rank == kFaulty) {
      EXPECT_THAT(error->what(), ::testing::HasSubstr(script.says));
    }
  }

  fake::script().let_go();
  every_rank([&](int rank) {
    const auto group = job.factory(rank).create("group again", all_ranks(kRanks));
    use(*group, streams[static_cast<std::size_t>(rank)]->get());
  });
  EXPECT_THAT(fake::take_violations(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace sailor
