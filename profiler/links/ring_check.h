// What the planner's ring arithmetic says of measured collectives, from the links of the same file. Pure.
#pragma once

#include <optional>

#include "planner/profile/network_file.h"

namespace sailor {

// Predicted seconds of a collective of `bytes` (the whole tensor) over NCCL. Nothing for one over sockets,
// which the planner does not predict with rings, for a broadcast, or if a link is missing.
std::optional<double> ring_time_s(const NetworkFile& network, const NetworkFile::Collective& collective,
                                  double bytes);

// Sets latency and rate of collectives' steps on the links over NCCL between GPUs of one kind, from the
// all-reduce with most ranks: of one node, or of one rank per node. Between GPUs of a node they differ most
// from those of messages. Links without such an all-reduce of at least three sizes keep those of messages.
void fit_steps(NetworkFile& network);

}  // namespace sailor
