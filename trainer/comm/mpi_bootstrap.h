// The rendezvous of bootstrap.h over MPI, which is finalized at once, so that ranks no longer depend on the
// launcher or on each other.
#pragma once

#include <string>

#include "trainer/comm/bootstrap.h"

namespace sailor {

// MPI_Init, exchange, MPI_Finalize. At most once in a process (MPI cannot be started again). Throws
// std::runtime_error with MPI's own text.
BootstrapResult mpi_bootstrap(const std::string& card);

}  // namespace sailor
