#include "profiler/links/probe_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "planner/process/subprocess.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/catalog.h"
#include "planner/spec/error.h"
#include "planner/spec/site_config.h"
#include "profiler/live_cluster.h"
#include "trainer/launch/launcher.h"

namespace sailor {
namespace {

constexpr const char* kKinds = "SAILOR_NODE_KINDS";  // NODE=TYPE@ZONE, comma between nodes
constexpr size_t kNodesOfAKind = 2;                  // enough for links between and within them
constexpr int kRanksOnProcessors = 2;

std::string self() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

std::vector<std::string> rank_program(const std::vector<std::string>& arguments) {
  std::vector<std::string> program = {self()};
  program.insert(program.end(), arguments.begin(), arguments.end());
  return program;
}

}  // namespace

bool is_launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "SAILOR_RENDEZVOUS"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

void become_ranks_here(int ranks, const std::vector<std::string>& arguments) {
  become_program(local_command(static_cast<size_t>(ranks), rank_program(arguments)));
}

void become_ranks_of_job(int per_node, const std::vector<std::string>& arguments) {
  const Allocation job = site_scheduler().own_allocation();
  const Snapshot cluster = read_live_cluster(/*busy_too=*/true);
  std::vector<HostRanks> hosts;
  const Catalog catalog = load_catalog(load_site_config(site_config_path()).catalog);
  const auto ranks_on = [&](const SnapshotNode& node) {
    if (per_node > 0) return per_node;
    const auto type = catalog.gpu_types.find(node.gpu_type);
    const bool gpus = type != catalog.gpu_types.end() && !type->second.on_processors;
    return gpus ? std::max(1, node.gpus) : kRanksOnProcessors;
  };
  std::string kinds;
  for (const AllocatedNode& node : job.nodes) {
    const SnapshotNode* known = cluster.find(node.name);
    if (known == nullptr)
      throw InputError(
          fmt::format("node {} of job {} has no GPU type in the site's catalog: see `sailor cluster`",
                      node.name, job.job_id));
    hosts.push_back({node.name, ranks_on(*known)});
    kinds += fmt::format("{}{}={}@{}", kinds.empty() ? "" : ",", node.name, known->gpu_type, known->zone);
  }
  setenv(kKinds, kinds.c_str(), 1);
  setenv("SAILOR_NODES", to_text(job.nodes).c_str(), 1);
  setenv("SAILOR_NO_AGENTS", "1", 1);  // ranks stay in their steps, and end with them
  site_scheduler().forget_step_defaults();
  become_program(job_command(hosts, rank_program(arguments)));
}

void become_allocation(std::vector<std::string> arguments) {
  std::erase(arguments, "--on-nodes");
  const Snapshot cluster = read_live_cluster();
  std::map<std::pair<std::string, std::string>, size_t> taken;            // by GPU type and zone
  std::map<std::pair<std::string, int>, std::vector<std::string>> alike;  // by partition and number of GPUs
  std::set<std::string> seen;  // a node with GPUs of several types counts as one of the first
  for (const SnapshotNode& node : cluster.nodes) {
    if (!seen.insert(node.name).second) continue;
    if (taken[{node.gpu_type, node.zone}]++ < kNodesOfAKind)
      alike[{node.partition, node.gpus}].push_back(node.name);
  }
  if (alike.empty()) throw std::runtime_error("no node with GPUs is free");
  std::vector<JobPart> parts;
  for (const auto& [key, nodes] : alike) parts.push_back({key.first, nodes, key.second});
  become_program(site_scheduler().job_command("sailor-probe", parts, rank_program(arguments)));
}

std::optional<NodeKind> kind_of_node(const std::string& node) {
  const char* kinds = std::getenv(kKinds);
  std::istringstream entries(kinds == nullptr ? "" : kinds);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const size_t equals = entry.find('='), at = entry.find('@', equals);
    if (entry.substr(0, equals) != node || at == std::string::npos) continue;
    return NodeKind{entry.substr(equals + 1, at - equals - 1), entry.substr(at + 1)};
  }
  return std::nullopt;
}

}  // namespace sailor
