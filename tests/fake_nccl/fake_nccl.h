// An NCCL without GPUs, for ranks that are threads of one process: collectives compute real results in the
// memory that the fake CUDA runtime serves, on its streams. Communicators do not block, creation and the
// first use of a connection stay in progress until the other side is there too, and what does not match waits
// for ever. Sums run in rank order. The script (fault_script.h) says what fails. Thread-safe.
#pragma once

#include "trainer/comm/nccl/nccl_library.h"

namespace sailor::fake {

// The tables that the plane is given; live as long as the process.
const NcclLibrary& nccl();
DeviceLibraries libraries();

// Communicators that were created and neither destroyed nor aborted.
int living_communicators();

}  // namespace sailor::fake
