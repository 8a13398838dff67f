// The rendezvous of bootstrap.h without a launcher: a directory that all ranks see, one file per rank. For
// machines without MPI, and for ranks that another program starts.
//
//     SAILOR_RENDEZVOUS=DIR SAILOR_RANKS=2 SAILOR_RANK=0 PROGRAM &
//     SAILOR_RENDEZVOUS=DIR SAILOR_RANKS=2 SAILOR_RANK=1 PROGRAM
//
// The ranks' secret is in the directory, which must be accessible to its owner only (chmod 700). It is used
// for one start: a rank that finds its own file there fails.
#pragma once

#include <optional>
#include <string>

#include "trainer/comm/bootstrap.h"

namespace sailor {

struct Rendezvous {
  std::string directory;
  int rank = 0;
  int ranks = 1;
  double deadline_s = 60;  // until all ranks must be there
};

// Nothing if SAILOR_RENDEZVOUS is not set. Throws std::runtime_error if SAILOR_RANK and SAILOR_RANKS are
// missing or invalid.
std::optional<Rendezvous> rendezvous_from_environment();

// Returns when all ranks are there. Throws std::runtime_error: the directory cannot be used, was used before,
// or a rank is missing (which).
BootstrapResult directory_bootstrap(const Rendezvous& rendezvous, const std::string& card);

}  // namespace sailor
