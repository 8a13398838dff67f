// `sailor probe`, as one of its ranks: all ranks walk through the same series (probe_series.h), rank 0 keeps
// the file. After every measurement the file is written anew, atomically, so that an interrupted run leaves
// what was done, and another run measures what is missing or was not precise.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/profile/network_file.h"
#include "profiler/links/probe_series.h"
#include "trainer/comm/communicator.h"

namespace sailor {

struct ProbeRequest {
  std::string file;                      // read on rank 0 only; made if absent, with its directory
  int64_t max_bytes = int64_t{1} << 30;  // largest message; the same on all ranks
  double seconds = 60;                   // the whole run takes about that long at most; the same on all ranks
  bool again = false;                    // measure everything again
  bool collectives = true;               // measure them too; the same on all ranks
  std::string measured;                  // what goes into the file: when, where, with what
};

struct ProbeOutcome {
  int measurements = 0;            // taken in this run
  int imprecise = 0;               // of them, those that time was up for
  std::vector<std::string> notes;  // what was left out, and why
};

// 4 KiB, 16 KiB, ... up to max_bytes; max_bytes alone when it is less.
std::vector<int64_t> probe_sizes(int64_t max_bytes);

// Every rank calls it with cards and request of the same contents. `progress` gets a line per series, and the
// outcome is filled, on rank 0. Throws CommError (a rank was lost); on rank 0 also InputError (the file is
// broken or no network profile) and std::runtime_error (it cannot be written).
ProbeOutcome probe(CommFactory& factory, const std::vector<ProbeRank>& ranks, const ProbeRequest& request,
                   const std::function<void(const std::string&)>& progress);

}  // namespace sailor
