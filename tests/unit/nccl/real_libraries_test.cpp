// The libraries that are installed: without a GPU as far as they go, and with one a group of one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

#include "trainer/comm/nccl/cuda_handles.h"
#include "trainer/comm/nccl/nccl_library.h"
#include "trainer/comm/nccl/nccl_plane.h"
#include "trainer/comm/nccl/shared_library.h"
#include "trainer/comm/thread_plane.h"

namespace sailor {
namespace {

TEST(RealLibraries, HaveEveryFunctionAndDrawUniqueIds) {
  try {
    const NcclLibrary& nccl = nccl_library();
    static_cast<void>(cuda_library());
    int version = 0;
    ASSERT_EQ(nccl.get_version(&version), ncclSuccess);
    RecordProperty("nccl_version", version);
    EXPECT_GE(version, NCCL_VERSION(2, 14, 0));
    std::set<std::string> ids;
    for (int i = 0; i < 2; ++i) {
      ncclUniqueId id;
      ASSERT_EQ(nccl.get_unique_id(&id), ncclSuccess) << nccl.get_last_error(nullptr);
      ids.emplace(id.internal, sizeof id.internal);
    }
    EXPECT_EQ(ids.size(), 2u);
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << "skipped: no libnccl or no libcudart: " << error.what();
  }
}

TEST(RealLibraries, OneRankOnAGpuCommunicatesAbortsAndRebuilds) {
  std::unique_ptr<DeviceLibraries> libraries;
  try {
    libraries = std::make_unique<DeviceLibraries>(DeviceLibraries{nccl_library(), cuda_library()});
    check(libraries->cuda, libraries->cuda.set_device(0), "cudaSetDevice");
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << "skipped: no GPU: " << error.what();
  }
  const CommOptions options{std::chrono::seconds(60)};
  ThreadHub hub(1, options);
  const auto below = hub.factory(0);
  NcclFactory factory(*below, 0, options);
  CudaStream stream(libraries->cuda);
  constexpr std::size_t kCount = 1 << 20;
  const PinnedBuffer in(libraries->cuda, kCount * sizeof(float)),
      out(libraries->cuda, kCount * sizeof(float));
  auto* const from = static_cast<float*>(in.get());
  auto* const to = static_cast<float*>(out.get());
  for (const char* name : {"first", "second"}) {
    const auto group = factory.create(name, {0});
    for (const ElementType type :
         {ElementType::f32, ElementType::bf16, ElementType::f16, ElementType::f64, ElementType::i64}) {
      std::fill_n(from, kCount, 1.5f);
      std::fill_n(to, kCount, 0.0f);
      const std::size_t count = kCount * sizeof(float) / element_size(type);
      group->reduce_scatter(from, to, count, type, ReduceOp::sum, stream.get());
      group->settle();
      EXPECT_EQ(std::count(to, to + kCount, 1.5f), static_cast<std::ptrdiff_t>(kCount)) << to_string(type);
    }
    std::fill_n(to, kCount, 0.0f);
    const Transfer to_oneself[] = {{Transfer::Kind::send, from, kCount, ElementType::f32, 0},
                                   {Transfer::Kind::recv, to, kCount, ElementType::f32, 0}};
    const auto work = group->exchange(to_oneself, stream.get());
    work->wait_on(stream.get());
    group->settle();
    EXPECT_EQ(std::count(to, to + kCount, 1.5f), static_cast<std::ptrdiff_t>(kCount));
    group->abort();
    EXPECT_THROW(group->all_gather(from, to, kCount, ElementType::f32), CommError);
  }
}

TEST(RealLibraries, OneThatIsMissingIsNamedWithTheWayOut) {
  try {
    SharedLibrary("libnothing.so.7");
    ADD_FAILURE() << "loaded";
  } catch (const std::runtime_error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("libnothing.so.7"), std::string::npos) << text;
    EXPECT_NE(text.find("LD_LIBRARY_PATH"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace sailor
