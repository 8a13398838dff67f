// `sailor probe` on ranks with GPUs, over the NCCL plane: the fake libraries, ranks as threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "profiler/links/probe.h"
#include "tests/fake_nccl/fake_cuda.h"
#include "tests/fake_nccl/fault_script.h"
#include "tests/unit/nccl/nccl_job.h"
#include "trainer/comm/nccl/cuda_device.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using Scope = NetworkProfile::Scope;

class ProbeOnGpus : public testing::Test {
 protected:
  ProbeOnGpus() {
    fs::remove_all(directory_);
    request_.file = directory_ + "/network.json";
    request_.max_bytes = 64 << 10;
    request_.seconds = 10;
    static_cast<void>(fake::take_violations());
    static_cast<void>(fake::take_created());
  }
  ~ProbeOnGpus() override {
    fs::remove_all(directory_);
    fake::script().let_go();
  }

  // Two nodes with two GPUs each.
  ProbeOutcome run(CommOptions options = {std::chrono::seconds(20)}) {
    const std::vector<ProbeRank> ranks = {
        {"a", "X", "", true}, {"a", "X", "", true}, {"b", "X", "", true}, {"b", "X", "", true}};
    ProbeOutcome outcome;
    TestJob job("thread", 4, options);
    job.run([&](CommFactory& factory) {
      CudaDevice device(device_of(factory.rank()), fake::cuda());
      NcclFactory nccl(factory, device.index(), options, fake::libraries());
      const ProbeOutcome own = probe(factory, ranks, request_, nullptr, DevicePlane{device, nccl});
      if (factory.rank() == 0) outcome = own;
    });
    return outcome;
  }

  std::string directory_ = testing::TempDir() + "probe_on_gpus." + std::to_string(getpid());
  ProbeRequest request_;
  const int living_ = fake::living_communicators();  // of other tests
};

TEST_F(ProbeOnGpus, LinksAndCollectivesAreMeasuredOverNcclAndMessagesOverSocketsToo) {
  const ProbeOutcome outcome = run();
  const NetworkFile network = load_network_file(request_.file);
  ASSERT_EQ(network.links.size(), 4u);  // within and between nodes, over both
  for (const Transport transport : {Transport::nccl, Transport::sockets})
    for (const Scope scope : {Scope::intra_node, Scope::inter_node}) {
      const auto link = std::find_if(network.links.begin(), network.links.end(), [&](const auto& l) {
        return l.transport == transport && l.scope == scope;
      });
      ASSERT_NE(link, network.links.end());
      EXPECT_TRUE(link->has_curve());
      EXPECT_EQ(link->node_bytes_per_s > 0, scope == Scope::inter_node) << "two pairs between nodes at once";
      for (const NetworkMeasurement& m : link->messages) EXPECT_LT(m.seconds, 1);
      // Three sizes of the all-reduce, unless a busy machine had no time for one.
      const auto missing =
          std::count_if(outcome.notes.begin(), outcome.notes.end(),
                        [](const std::string& note) { return note.starts_with("all_reduce"); });
      if (missing == 0) {
        EXPECT_EQ(link->step_bytes_per_s > 0, transport == Transport::nccl);
      }
    }
  for (const auto& collective : network.collectives) EXPECT_EQ(collective.transport, Transport::nccl);
  EXPECT_EQ(network.collectives.size(), 12u);
  EXPECT_THAT(fake::take_violations(), IsEmpty());
  for (const fake::Created& communicator : fake::take_created())
    EXPECT_TRUE(communicator.max_ctas == 0 || communicator.max_ctas == 16);
  EXPECT_LE(fake::living_communicators(), living_) << "none is left behind";
}

TEST_F(ProbeOnGpus, TheMemoryOfTheGpuLimitsMessagesBetweenGpusOnly) {
  request_.gpu_bytes = 16 << 10;
  request_.collectives = false;
  int64_t over_nccl = 0, over_sockets = 0;
  // On a busy machine the time ends before the largest message: then there is more of it.
  const auto missing = [&] { return over_nccl < request_.gpu_bytes || over_sockets < request_.max_bytes; };
  for (; missing() && request_.seconds < 300; request_.seconds *= 3) {
    run();
    for (const auto& link : load_network_file(request_.file).links)
      for (const NetworkMeasurement& m : link.messages) {
        int64_t& largest = link.transport == Transport::nccl ? over_nccl : over_sockets;
        largest = std::max(largest, m.bytes);
      }
  }
  EXPECT_EQ(over_nccl, 16 << 10);
  EXPECT_EQ(over_sockets, 64 << 10);
}

// A launch takes its time on the host; the device runs what is enqueued one after the other.
TEST_F(ProbeOnGpus, TheHostsTimeToEnqueueDoesNotCount) {
  CudaDevice device(device_of(0), fake::cuda());
  const auto seconds = [&](bool hold) {
    std::shared_ptr<void> held = hold ? device.hold(device.compute()) : nullptr;
    const auto begin = device.mark();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // a slow host
    const auto end = device.mark();
    held.reset();
    return device.seconds_between(*begin, *end);
  };
  // Other programs may take the processor before either mark, but not every time.
  constexpr double kHost_s = 0.09;
  double most_s = 0, least_s = kHost_s;
  for (int turn = 0; turn < 20 && most_s < kHost_s; ++turn) most_s = std::max(most_s, seconds(false));
  for (int turn = 0; turn < 20 && least_s >= kHost_s / 2; ++turn) least_s = std::min(least_s, seconds(true));
  EXPECT_GE(most_s, kHost_s);
  EXPECT_LT(least_s, kHost_s / 2);
}

TEST_F(ProbeOnGpus, AFailureOfNcclEndsTheProbeAndKeepsWhatWasMeasured) {
  fake::script().set({{.call = "ncclAllReduce", .code = 3, .device = device_of(2), .after = 40}});
  EXPECT_THROW(run({std::chrono::seconds(5)}), std::runtime_error);
  const NetworkFile network = load_network_file(request_.file);
  EXPECT_FALSE(network.links.empty());
}

TEST_F(ProbeOnGpus, MemoryThatIsNotThereIsAFailureOfTheDevice) {
  fake::script().set({{.call = "cudaMalloc", .code = cudaErrorMemoryAllocation, .device = device_of(1)}});
  try {
    run({std::chrono::seconds(5)});
    FAIL() << "no error";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), testing::AnyOf(HasSubstr("cudaMalloc: out of memory"), HasSubstr("aborted")));
  }
}

}  // namespace
}  // namespace sailor
