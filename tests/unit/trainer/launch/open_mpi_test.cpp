// What differs between releases of Open MPI.
#include "trainer/launch/open_mpi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sailor {
namespace {

using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

TEST(OpenMpi, ItsReleaseIsInTheVersionText) {
  EXPECT_EQ(open_mpi_release("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n", "mpirun"), 4);
  EXPECT_EQ(open_mpi_release("mpirun.openmpi (OpenRTE) 4.1.4\n", "mpirun.openmpi"), 4);
  EXPECT_EQ(open_mpi_release("mpirun (Open MPI) 5.0.7\n", "mpirun"), 5);
  EXPECT_EQ(open_mpi_release("mpirun (Open MPI) 6.0.0rc2\n", "mpirun"), 6);
  EXPECT_THROW(open_mpi_release("HYDRA build details:\n    Version: 4.0.2\n", "/x/mpirun"),
               std::runtime_error);
  EXPECT_THROW(open_mpi_release("", "/x/mpirun"), std::runtime_error);
}

TEST(OpenMpi, DaemonsAreStartedByTheRemoteShell) {
  EXPECT_THAT(daemon_options(4, "/x/agent remote-shell"),
              IsSupersetOf(
                  {"--mca", "rsh", "plm_rsh_agent", "/x/agent remote-shell", "orte_leave_session_attached"}));
  for (const int release : {5, 6}) {
    const auto options = daemon_options(release, "/x/agent remote-shell");
    EXPECT_THAT(options, IsSupersetOf({"--prtemca", "ssh", "plm_ssh_agent", "/x/agent remote-shell",
                                       "--leave-session-attached"}));
    // PRRTE refuses to start when it is told to use a component that it does not have.
    EXPECT_THAT(options, Not(Contains("rsh")));
    EXPECT_THAT(options, Not(Contains(StartsWith("orte_"))));
    EXPECT_THAT(options, Not(Contains("--mca")));
  }
}

TEST(OpenMpi, OnThisMachineThereAreNoDaemons) {
  EXPECT_THAT(daemon_options(4, ""), Contains("isolated"));
  EXPECT_THAT(daemon_options(5, ""), IsSupersetOf({"plm_ssh_agent", "/bin/false"}));
  EXPECT_THAT(daemon_options(5, ""), Not(Contains("isolated")));
}

TEST(OpenMpi, ADaemonTakesItsNodesNameFromSlurm) {
  EXPECT_EQ(with_node_name_of_slurm("prted --prtemca ess \"env\" --prtemca ess_base_vpid 1"),
            "prted --prtemca ess \"slurm\" --prtemca ess_base_vpid 1");
  EXPECT_EQ(with_node_name_of_slurm("orted -mca ess \"env\""), "orted -mca ess \"env\"");
}

}  // namespace
}  // namespace sailor
