// MPI as a rendezvous and nothing else: every rank hands in a few bytes and gets everybody's, and all get one
// secret; then MPI is finalized, so that ranks no longer depend on the launcher or on each other. No training
// traffic goes over MPI.
#pragma once

#include <string>
#include <vector>

#include "trainer/comm/socket_plane.h"

namespace sailor {

struct BootstrapResult {
  int rank = 0;
  int size = 1;
  std::vector<std::string> cards;  // by rank: what each handed in
  JobSecret secret{};              // drawn by rank 0
};

// MPI_Init, exchange, MPI_Finalize. At most once in a process (MPI cannot be started again). Throws
// std::runtime_error with MPI's own text. Any size of card up to 1 MiB.
BootstrapResult mpi_bootstrap(const std::string& card);

// What a trainer rank usually hands in, as one line of text.
struct RankCard {
  Endpoint endpoint;
  std::string node;  // the cluster's name of the node
  int pid = 0;
};
std::string to_text(const RankCard& card);
RankCard parse_rank_card(const std::string& text);  // throws std::runtime_error

}  // namespace sailor
