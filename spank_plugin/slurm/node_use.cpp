#include "spank_plugin/slurm/node_use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <slurm/slurm.h>

#include <algorithm>

#include "spank_plugin/slurm/commands/gres.h"

namespace sailor {
namespace {

// "1 of 4 GPUs in use", of the types that lack GPUs.
std::string gpus_in_use(const std::vector<NodeGpus>& all, const std::map<std::string, int>& needed) {
  int count = 0, used = 0;
  for (const NodeGpus& gpus : all) {
    const bool lacks = needed.empty() || std::any_of(needed.begin(), needed.end(), [&](const auto& need) {
                         return names_gpus(need.first, gpus) && gpus.free() < need.second;
                       });
    if (lacks) count += gpus.count;
    if (lacks) used += gpus.used;
  }
  return fmt::format("{} of {} GPUs in use", used, count);
}

bool has_gpus(const std::vector<NodeGpus>& all, const std::map<std::string, int>& needed) {
  if (needed.empty())
    return std::any_of(all.begin(), all.end(), [](const NodeGpus& gpus) { return gpus.free() > 0; });
  return std::all_of(needed.begin(), needed.end(), [&](const auto& need) {
    return std::any_of(all.begin(), all.end(), [&](const NodeGpus& gpus) {
      return names_gpus(need.first, gpus) && gpus.free() >= need.second;
    });
  });
}

// Why a job that shares the node cannot have its part.
std::optional<std::string> use_of_part(const SlurmNode& node, const NodeNeeds& needs) {
  const std::vector<NodeGpus> gpus = gpus_of(node);
  if (node.of_another_user) return "runs jobs of a user who shares it with nobody";
  if (!gpus.empty() && !has_gpus(gpus, needs.gpus)) return gpus_in_use(gpus, needs.gpus);
  if (node.cpus > 0 && node.cpus - node.allocated_cpus < needs.cpus)
    return fmt::format("{} of {} CPUs in use", node.allocated_cpus, node.cpus);
  if (node.memory_mb - node.allocated_memory_mb < needs.memory_mb)
    return fmt::format("{} of {} MB of memory in use", node.allocated_memory_mb, node.memory_mb);
  return std::nullopt;
}

// Without indices, which change when jobs end.
std::string without(const std::string& gres_used, const std::string& gres) {
  std::vector<std::string> left;
  for (Gres used : parse_gres(gres_used)) {
    for (const Gres& part : parse_gres(gres))
      if (part.name == used.name && part.type == used.type) used.count -= part.count;
    if (used.count > 0)
      left.push_back(
          fmt::format("{}{}{}:{}", used.name, used.type.empty() ? "" : ":", used.type, used.count));
  }
  return fmt::format("{}", fmt::join(left, ","));
}

}  // namespace

std::vector<NodeGpus> gpus_of(const SlurmNode& node) {
  std::vector<NodeGpus> result;
  for (const Gres& gres : parse_gres(node.gres)) {
    if (gres.name == "gpu" && gres.count > 0) result.push_back({gres.type, gres.count, 0});
  }
  for (const Gres& used : parse_gres(node.gres_used)) {
    for (NodeGpus& gpus : result) {
      if (used.name == "gpu" && used.type == gpus.type) gpus.used += used.count;
    }
  }
  return result;
}

std::string gres_name(const NodeGpus& gpus) {
  return gpus.type.empty() ? "gpu" : "gpu:" + gpus.type;
}

bool names_gpus(const std::string& request, const NodeGpus& gpus) {
  return request == "gpu" || request == gres_name(gpus);
}

std::optional<std::string> use_by_running_jobs(const SlurmNode& node, const NodeNeeds& needs) {
  if (node.state & NODE_STATE_COMPLETING) return "completing a job";
  if (!needs.whole) return use_of_part(node, needs);
  for (const NodeGpus& gpus : gpus_of(node)) {
    if (gpus.used > 0) return fmt::format("{} of {} GPUs in use", gpus.used, gpus.count);
  }
  const uint32_t base = node.state & NODE_STATE_BASE;
  if (node.allocated_cpus > 0 || base != NODE_STATE_IDLE) return "runs another job";
  return std::nullopt;
}

std::optional<std::string> use_by_others(const SlurmNode& node, const NodeNeeds& needs) {
  if (node.state & NODE_STATE_PLANNED) return "planned for another job";
  if (std::optional<std::string> use = use_by_running_jobs(node, needs)) return use;
  if (node.promised_to != 0) return fmt::format("job {} waits for it", node.promised_to);
  return std::nullopt;
}

std::string free_parts(const std::vector<SlurmNode>& nodes) {
  std::string text;
  for (const SlurmNode& node : nodes) {
    if (use_by_running_jobs(node, NodeNeeds{.whole = false, .gpus = {}})) continue;
    text += fmt::format("{}:{:x}:{}:{}:{} ", node.name, node.state, node.gres_used, node.allocated_cpus,
                        node.allocated_memory_mb);
  }
  return text + "\n";
}

void forget_planned(std::vector<SlurmNode>& nodes, const std::set<std::string>& names) {
  for (SlurmNode& node : nodes) {
    if (names.contains(node.name)) node.state &= ~static_cast<uint32_t>(NODE_STATE_PLANNED);
  }
}

void forget_job(std::vector<SlurmNode>& nodes, const std::map<std::string, JobShare>& shares) {
  for (SlurmNode& node : nodes) {
    const auto share = shares.find(node.name);
    if (share == shares.end()) continue;
    node.state &= ~static_cast<uint32_t>(NODE_STATE_COMPLETING);
    node.allocated_cpus = std::max(0, node.allocated_cpus - share->second.cpus);
    node.allocated_memory_mb = std::max<int64_t>(0, node.allocated_memory_mb - share->second.memory_mb);
    node.gres_used = without(node.gres_used, share->second.gres);
    const uint32_t base = node.state & NODE_STATE_BASE;
    if (node.allocated_cpus > 0 || (base != NODE_STATE_ALLOCATED && base != NODE_STATE_MIXED)) continue;
    node.state = (node.state & ~static_cast<uint32_t>(NODE_STATE_BASE)) | NODE_STATE_IDLE;
    node.jobs_end.reset();
  }
}

}  // namespace sailor
