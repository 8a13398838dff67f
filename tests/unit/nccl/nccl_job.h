// The NCCL plane over the fake libraries, as a plane under test.
#pragma once

#include <memory>

#include "tests/fake_nccl/fake_nccl.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/comm/nccl/nccl_plane.h"

namespace sailor {

// The fault script identifies ranks by it.
inline int device_of(int rank) {
  return rank + 1;
}

inline std::unique_ptr<CommFactory> make_nccl_factory(CommFactory& below, CommOptions options) {
  return std::make_unique<NcclFactory>(below, device_of(below.rank()), options, fake::libraries());
}

inline TestPlane nccl_over(const char* below) {
  return {below, make_nccl_factory};
}

}  // namespace sailor
