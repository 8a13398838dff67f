// A rank of `sailor probe`: all ranks run the same series (probe_series.h), rank 0 writes the file. The file
// is rewritten atomically after every measurement, so that an interrupted run keeps its results, and the next
// run measures what is missing or imprecise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/profile/network_file.h"
#include "profiler/links/probe_series.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"

namespace sailor {

struct ProbeRequest {
  std::string file;                      // read on rank 0 only; created if missing, with its directory
  int64_t max_bytes = int64_t{1} << 30;  // largest message; the same on all ranks, as all below
  std::optional<int64_t> gpu_bytes;      // the same between GPUs, if their memory limits it
  std::optional<Transport> only;         // measure nothing over the other one
  double seconds = 60;                   // approximate maximum for the whole run; the same on all ranks
  bool again = false;                    // measure everything again
  bool collectives = true;               // also measure collectives
  std::string measured;                  // for the file: when, where, with what
};

struct ProbeOutcome {
  int measurements = 0;            // taken in this run
  int imprecise = 0;               // of these, stopped because time was up
  std::vector<std::string> notes;  // skipped measurements, with the reason
};

// 4 KiB, 16 KiB, ... up to max_bytes; only max_bytes if it is less.
std::vector<int64_t> probe_sizes(int64_t max_bytes);

// All ranks call it with equal `ranks` and `request`; those with a GPU pass it, and `factory` is in host
// memory. On rank 0 `progress` gets a line per series, and the
// outcome is filled. Throws CommError (a rank was lost), DeviceFailure; on rank 0 also InputError (the file
// is broken or not a network profile) and std::runtime_error (it cannot be written).
ProbeOutcome probe(CommFactory& factory, const std::vector<ProbeRank>& ranks, const ProbeRequest& request,
                   const std::function<void(const std::string&)>& progress,
                   const std::optional<DevicePlane>& gpu = std::nullopt);

}  // namespace sailor
