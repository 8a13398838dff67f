// An NCCL without GPUs, for ranks that are threads of one process: collectives compute real results in the
// memory of the fake CUDA runtime, on its streams. Communicators are non-blocking: every operation is
// launched by a thread of its own and is in progress until then, creation and the first use of a connection
// until the other side is there too, and mismatched operations wait forever. Reductions run in rank order.
// The script (fault_script.h) defines failures. Thread-safe.
#pragma once

#include <vector>

#include "trainer/comm/nccl/nccl_library.h"

namespace sailor::fake {

// The tables for the plane; live as long as the process.
const NcclLibrary& nccl();
DeviceLibraries libraries();

// Communicators that were created and neither destroyed nor aborted.
int living_communicators();

// A communicator as one of its ranks created it.
struct Created {
  int device;
  int size;
  int max_ctas;  // 0: NCCL's default
};
// All since the last call.
std::vector<Created> take_created();

// Groups of calls, and calls outside of groups, since the last call: each costs the host a launch.
int take_launches();

}  // namespace sailor::fake
