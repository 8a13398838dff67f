// The libraries that are installed, as far as they go without a GPU.
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

#include "trainer/comm/nccl/nccl_library.h"
#include "trainer/comm/nccl/shared_library.h"

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
