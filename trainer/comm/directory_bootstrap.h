// The rendezvous of bootstrap.h without a launcher: a directory that all ranks see, one file per rank. For
// machines without MPI, and for ranks that something else starts.
//
//     SAILOR_RENDEZVOUS=DIR SAILOR_RANKS=2 SAILOR_RANK=0 PROGRAM &
//     SAILOR_RENDEZVOUS=DIR SAILOR_RANKS=2 SAILOR_RANK=1 PROGRAM
//
// The ranks' secret lies in the directory: it must be open to its owner alone (chmod 700). It serves one
// start: a rank that finds its own file there refuses.
#pragma once

#include <optional>
#include <string>

#include "trainer/comm/bootstrap.h"

namespace sailor {

struct Rendezvous {
  std::string directory;
  int rank = 0;
  int ranks = 1;
  double deadline_s = 60;  // for all ranks to come
};

// Nothing when SAILOR_RENDEZVOUS is not set. Throws std::runtime_error when SAILOR_RANK and SAILOR_RANKS do
// not say which rank of how many this is.
std::optional<Rendezvous> rendezvous_from_environment();

// Returns when all ranks have come. Throws std::runtime_error: the directory cannot be used, was used before,
// or a rank did not come (which).
BootstrapResult directory_bootstrap(const Rendezvous& rendezvous, const std::string& card);

}  // namespace sailor
