#include "profiler/live_cluster.h"

#include <string>
#include <vector>

#include "planner/process/program_path.h"
#include "planner/process/subprocess.h"

namespace sailor {

Snapshot read_live_cluster(bool busy_too) {
  // Measurements take whole nodes.
  std::vector<std::string> command = {program_path("sailor-cluster"), "--yaml", "--exclusive=exclusive"};
  if (busy_too) command.push_back("--busy");
  return parse_snapshot(run_and_read(command), "sailor-cluster");
}

}  // namespace sailor
