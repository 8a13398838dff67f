#include "trainer/elastic/job_programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <vector>

#include "planner/process/program_path.h"
#include "planner/process/subprocess.h"
#include "trainer/launch/helper_job.h"

namespace sailor {

namespace {

namespace fs = std::filesystem;

constexpr double kSpread = 0.5;  // of intervals between looks at the cluster

}  // namespace

std::function<pid_t(const std::string&)> agent_starter(const std::string& log) {
  return [log](const std::string& node) {
    return spawn({program_path("sailor-agent"), "remote-shell", node, "true"},
                 {.environment = {}, .output_file = log});
  };
}

Growth::Options growth_options(const ControllerOptions& options, const OwnJob& own_job,
                               const std::string& log) {
  if (options.grow_every_s <= 0) return {};
  const Allocation& allocation = options.allocation;
  Growth::Options growth{
      .every_s = options.grow_every_s, .spread = kSpread, .most_nodes = options.most_nodes};
  if (allocation.end_s) growth.end_s = static_cast<double>(*allocation.end_s);
  for (const AllocatedNode& node : allocation.nodes) growth.own_nodes.insert(node.name);
  // Of an earlier start of the job, which is not asked for what it has seen.
  const std::string seen = fs::path(log).replace_extension(".seen");
  std::error_code absent;
  fs::remove(seen, absent);
  std::vector<std::string> look = {program_path("sailor-cluster"), "--yaml", "--config",
                                   options.replanning.site_config, "--unless-seen=" + seen};
  look.insert(look.end(), options.node_limits.begin(), options.node_limits.end());
  growth.look_command = [look, end_s = allocation.end_s] {
    std::vector<std::string> command = look;
    if (end_s)
      command.push_back(fmt::format("--time={}s", std::max<int64_t>(60, *end_s - std::time(nullptr))));
    return command;
  };
  const HelperRequest request{.main_job = allocation.job_id,
                              .node = "",
                              .partition = "",
                              .end_s = allocation.end_s,
                              .account = own_job.account,
                              .qos = own_job.qos,
                              .reservation = own_job.reservation};
  growth.start_keeper = [request, log](const SnapshotNode& node) {
    HelperRequest one = request;
    one.node = node.name;
    one.partition = node.partition;
    if (node.shared) {
      one.gpus = static_cast<int>(node.free_gpus.size());
      one.gres = node.host.gres;
      one.cpus = node.host.cpus;
      one.memory_mb = node.host.memory_bytes >> 20;
    }
    return spawn(keeper_command(program_path("sailor-agent"), one),
                 {.environment = {{"SAILOR_KEEPER_PARENT", std::to_string(getpid())}}, .output_file = log});
  };
  return growth;
}

}  // namespace sailor
