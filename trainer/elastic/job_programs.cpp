#include "trainer/elastic/job_programs.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <vector>

#include "planner/process/program_path.h"
#include "planner/process/subprocess.h"
#include "planner/spec/host_list.h"
#include "trainer/launch/helper_job.h"

namespace sailor {

namespace {

namespace fs = std::filesystem;

constexpr double kSpread = 0.5;  // of intervals between looks at the cluster

// The value of an option of the submission; empty if it was not given.
std::string limit_of(const ControllerOptions& options, const std::string& name) {
  const std::string prefix = "--" + name + "=";
  for (const std::string& limit : options.node_limits)
    if (limit.starts_with(prefix)) return limit.substr(prefix.size());
  return "";
}

// What is the same for all helper jobs.
HelperRequest helper_request(const ControllerOptions& options, const OwnJob& own_job,
                             const std::string& log) {
  HelperRequest request{.main_job = options.allocation.job_id};
  request.end_s = options.allocation.end_s;
  request.account = own_job.account;
  request.qos = options.grow_qos.empty() ? own_job.qos : options.grow_qos;
  request.reservation = own_job.reservation;
  request.feature = limit_of(options, "constraint");
  if (const std::string excluded = limit_of(options, "exclude"); !excluded.empty())
    request.excluded_nodes = expand_host_list(excluded);
  request.after_others = options.yields;
  request.output_file = log;
  return request;
}

HelperRequest filled(HelperRequest request, const Growth::Wish& wish, bool by_name) {
  const SnapshotNode& node = wish.node;
  request.partition = node.partition;
  request.least_s = static_cast<int>(wish.least_s);
  if (wish.in_turn) request.after_others = false;
  request.gres = node.host.gres;
  request.whole_node = !node.shared;
  if (node.shared) {
    request.gpus = static_cast<int>(node.free_gpus.size());
    request.cpus = node.host.cpus;
    request.memory_mb = node.host.memory_bytes >> 20;
  } else if (!wish.by_name) {
    request.gpus = node.gpus;
  }
  if (by_name || wish.by_name) request.node = node.name;
  if (request.node.empty())
    request.excluded_nodes.insert(request.excluded_nodes.end(), wish.not_on.begin(), wish.not_on.end());
  return request;
}

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
  Growth::Options growth{.every_s = options.grow_every_s,
                         .yields = options.yields,
                         .spread = kSpread,
                         .most_nodes = options.most_nodes,
                         .queued = options.queued};
  if (allocation.end_s) growth.end_s = static_cast<double>(*allocation.end_s);
  for (const AllocatedNode& node : allocation.nodes) growth.own_nodes.insert(node.name);
  // Of an earlier start of the job, which is not asked for what it has seen.
  const std::string seen = fs::path(log).replace_extension(".seen");
  std::error_code absent;
  fs::remove(seen, absent);
  std::vector<std::string> look = {program_path("sailor-cluster"), "--yaml", "--config",
                                   options.replanning.site_config, "--unless-seen=" + seen};
  look.insert(look.end(), options.node_limits.begin(), options.node_limits.end());
  if (options.yields) look.push_back("--wanted-of=" + allocation.job_id);
  // The last ones count.
  if (!options.grow_partition.empty()) look.push_back("--partition=" + options.grow_partition);
  if (!options.grow_qos.empty()) look.push_back("--qos=" + options.grow_qos);
  // Another partition may allow less time than the job has left; then its helper jobs get that.
  const bool any_time = !options.grow_partition.empty();
  growth.look_command = [look, any_time, end_s = allocation.end_s] {
    std::vector<std::string> command = look;
    const int64_t left_s = end_s ? std::max<int64_t>(60, *end_s - std::time(nullptr)) : 0;
    if (end_s)
      command.push_back(fmt::format("--time={}s", any_time ? std::min<int64_t>(300, left_s) : left_s));
    return command;
  };
  growth.end_keeper = [](pid_t keeper) { kill(keeper, kEndHelperJob); };
  growth.clock_s = [] { return static_cast<double>(std::time(nullptr)); };
  const HelperRequest request = helper_request(options, own_job, log);
  const bool by_name = !limit_of(options, "nodelist").empty();
  growth.start_keeper = [request, by_name, log](const Growth::Wish& wish) {
    const HelperRequest one = filled(request, wish, by_name);
    return spawn(keeper_command(program_path("sailor-agent"), one),
                 {.environment = {{"SAILOR_KEEPER_PARENT", std::to_string(getpid())}}, .output_file = log});
  };
  return growth;
}

}  // namespace sailor
