// Measures the `socket` data plane between ranks on this machine (threads of this process, TCP over the
// loopback interface): single messages and TP collectives.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "profiler/samples.h"
#include "trainer/comm/communicator.h"

namespace sailor {

// Runs `body` as every rank of a group of threads that are connected by the socket plane. Rethrows the first
// error.
void run_ranks(int ranks, const std::function<void(Communicator& all)>& body);
// The same for bodies that create their own communicators.
void run_ranks(int ranks, const std::function<void(Communicator& all, CommFactory& factory)>& body);

// Seconds of one message between two ranks by its size: half of a round trip, median. Throws CommError.
std::vector<std::pair<double, double>> measure_messages(const std::vector<int64_t>& sizes_bytes,
                                                        const MeasuringOptions& options);

// Seconds of one all-reduce among `ranks` ranks by its size in bytes, median. Throws CommError.
std::map<int64_t, double> measure_all_reduce(int ranks, const std::vector<int64_t>& sizes_bytes,
                                             const MeasuringOptions& options);

}  // namespace sailor
