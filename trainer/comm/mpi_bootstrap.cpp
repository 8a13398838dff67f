#include "trainer/comm/mpi_bootstrap.h"

#include <fmt/format.h>
#include <mpi.h>

#include <numeric>
#include <stdexcept>

namespace sailor {
namespace {

void check(int rc, const char* call) {
  if (rc == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(rc, text, &length);
  throw std::runtime_error(
      fmt::format("MPI bootstrap: {}: {}", call, std::string(text, static_cast<std::size_t>(length))));
}

}  // namespace

BootstrapResult mpi_bootstrap(const std::string& card) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized) throw std::logic_error("mpi_bootstrap: called twice");
  check(MPI_Init(nullptr, nullptr), "MPI_Init");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

  BootstrapResult result;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &result.rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &result.size), "MPI_Comm_size");

  const int length = static_cast<int>(card.size());
  std::vector<int> lengths(static_cast<std::size_t>(result.size));
  check(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
  std::vector<int> starts(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), 0);
  std::string all(static_cast<std::size_t>(starts.back() + lengths.back()), '\0');
  check(MPI_Allgatherv(card.data(), length, MPI_BYTE, all.data(), lengths.data(), starts.data(), MPI_BYTE,
                       MPI_COMM_WORLD),
        "MPI_Allgatherv");
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    result.cards.push_back(
        all.substr(static_cast<std::size_t>(starts[rank]), static_cast<std::size_t>(lengths[rank])));
  }

  if (result.rank == 0) result.secret = make_job_secret();
  check(MPI_Bcast(result.secret.data(), static_cast<int>(result.secret.size()), MPI_BYTE, 0, MPI_COMM_WORLD),
        "MPI_Bcast");
  check(MPI_Finalize(), "MPI_Finalize");
  return result;
}

}  // namespace sailor
