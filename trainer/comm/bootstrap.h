// How the ranks of a launch meet: every rank hands in a few bytes and gets everybody's, and all get one
// secret. Over MPI where mpirun or srun starts them (mpi_bootstrap.h); through a directory where the
// environment says which rank this is (directory_bootstrap.h). It is a rendezvous and nothing else: no
// training traffic goes this way.
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

constexpr std::size_t kMaxCardBytes = std::size_t{1} << 20;

// At most once in a process. Throws std::runtime_error: MPI's own text, or what is wrong with the directory;
// and when the environment names none and this was built without MPI.
BootstrapResult bootstrap(const std::string& card);

// What a trainer rank usually hands in, as one line of text.
struct RankCard {
  Endpoint endpoint;
  std::string node;  // the cluster's name of the node
  int pid = 0;
};
std::string to_text(const RankCard& card);
RankCard parse_rank_card(const std::string& text);  // throws std::runtime_error

}  // namespace sailor
