// The rendezvous of the ranks of a launch: every rank contributes a few bytes and gets those of all, and all
// get one secret. Over MPI if mpirun or srun starts them (mpi_bootstrap.h); through a directory if the
// environment gives the rank (directory_bootstrap.h). It carries no training traffic.
#pragma once

#include <string>
#include <vector>

#include "trainer/comm/socket_plane.h"

namespace sailor {

struct BootstrapResult {
  int rank = 0;
  int size = 1;
  std::vector<std::string> cards;  // by rank: its contribution
  JobSecret secret{};              // drawn by rank 0
};

constexpr std::size_t kMaxCardBytes = std::size_t{1} << 20;

// At most once in a process. Throws std::runtime_error: MPI's own text, or the problem with the directory;
// also if the environment names no directory and this was built without MPI.
BootstrapResult bootstrap(const std::string& card);

// The usual contribution of a trainer rank, as one line of text.
struct RankCard {
  Endpoint endpoint;
  std::string node;  // the scheduler's name of the node
  int pid = 0;
};
std::string to_text(const RankCard& card);
RankCard parse_rank_card(const std::string& text);  // throws std::runtime_error

}  // namespace sailor
