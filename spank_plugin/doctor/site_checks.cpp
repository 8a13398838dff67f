#include "spank_plugin/doctor/site_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <set>

#include "planner/profile/layer_profile.h"
#include "planner/profile/network_file.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "spank_plugin/slurm/commands/gres.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

// Nodes by the type that Slurm gives their GPUs; "" = none.
std::map<std::string, int> nodes_by_type(const SlurmView& cluster) {
  std::map<std::string, int> nodes;
  for (const SlurmNode& node : cluster.nodes) {
    std::set<std::string> types;
    for (const Gres& gres : parse_gres(node.gres))
      if (gres.name == "gpu" && gres.count > 0) types.insert(gres.type);
    for (const std::string& type : types) ++nodes[type];
  }
  return nodes;
}

std::string type_of(const Site& site, const std::string& slurm_type) {
  const auto found = site.config.gres.find(slurm_type);
  return found == site.config.gres.end() ? slurm_type : found->second;
}

std::string counted(int count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool concerns(const NetworkFile::Link& link, const std::string& gpu_type) {
  const auto end = [&](const LinkEnd& e) { return e.gpu_type.empty() || e.gpu_type == gpu_type; };
  return link.has_curve() && (end(link.from) || end(link.to));
}

// Were the links of the cluster's GPUs measured over NCCL? Types whose ranks compute on processors use
// sockets.
Finding check_links(const Site& site, const SlurmView& cluster, const std::vector<NetworkFile>& networks) {
  if (networks.empty())
    return warning("links", "no network profile: links are assumed as in the catalog",
                   "`sailor probe --on-nodes` measures one");
  std::vector<std::string> assumed, unnamed;  // GPU types
  for (const auto& [slurm_type, count] : nodes_by_type(cluster)) {
    const auto type = site.catalog.gpu_types.find(type_of(site, slurm_type));
    if (type == site.catalog.gpu_types.end() || type->second.on_processors) continue;
    bool over_nccl = false, over_any = false;
    for (const NetworkFile& network : networks)
      for (const NetworkFile::Link& link : network.links) {
        if (!concerns(link, type->first)) continue;
        over_nccl = over_nccl || link.transport == Transport::nccl;
        over_any = over_any || !link.transport;
      }
    if (!over_nccl) (over_any ? unnamed : assumed).push_back(type->first);
  }
  const char* const remedy =
      "`sailor probe --on-nodes` measures links between GPUs over NCCL, where the trainer was built with "
      "CUDA";
  if (!assumed.empty())
    return warning(
        "links",
        fmt::format("no link between GPUs of {} was measured over NCCL: they are assumed as in the "
                    "catalog",
                    fmt::join(assumed, ", ")),
        remedy);
  if (!unnamed.empty())
    return warning(
        "links",
        fmt::format("the links of {} do not say that they were measured over NCCL (`transport`), and "
                    "are used for GPUs: over sockets they would be too slow",
                    fmt::join(unnamed, ", ")),
        remedy);
  return well("links", counted(static_cast<int>(networks.size()), "network profile"));
}

}  // namespace

std::optional<Site> check_site(const std::string& config_file, Findings& findings) {
  Site site;
  try {
    site.config = load_site_config(config_file);
    site.catalog = load_catalog(site.config.catalog);
  } catch (const std::exception& error) {
    findings.push_back(
        problem("site", error.what(),
                "write it (sailor.yaml(5)), or say where it is with SAILOR_CONFIG or config= in "
                "plugstack.conf"));
    return std::nullopt;
  }
  findings.push_back(well("site", config_file));
  findings.push_back(
      well("catalog", fmt::format("{}, {}", site.catalog.file,
                                  counted(static_cast<int>(site.catalog.gpu_types.size()), "GPU type"))));
  return site;
}

Findings check_gres(const Site& site, const SlurmView& cluster) {
  Findings findings;
  const std::map<std::string, int> nodes = nodes_by_type(cluster);
  if (nodes.empty())
    return {problem("gres", "no node of the cluster has GRES named gpu", "see gres.conf(5)")};
  for (const auto& [slurm_type, count] : nodes) {
    const std::string type = type_of(site, slurm_type);
    if (slurm_type.empty() && !site.config.gres.contains("")) {
      findings.push_back(problem("gres", fmt::format("the GPUs of {} have no type", counted(count, "node")),
                                 "set one: Type= in gres.conf, Gres=gpu:TYPE:N in slurm.conf"));
    } else if (!site.catalog.gpu_types.contains(type)) {
      findings.push_back(problem("gres",
                                 fmt::format("gpu:{} of {} is not a GPU type of {}", slurm_type,
                                             counted(count, "node"), site.catalog.file),
                                 fmt::format("add it to the catalog, or map it in {}: `gres: {{{}: NAME}}`",
                                             site.config.file, slurm_type)));
    } else {
      findings.push_back(
          well("gres", fmt::format("gpu:{} of {} is {}", slurm_type, counted(count, "node"), type)));
    }
  }
  return findings;
}

Findings check_profiles(const Site& site, const SlurmView& cluster) {
  Findings findings;
  std::map<std::string, int> profiles;  // by what was measured
  std::vector<NetworkFile> networks;
  if (site.config.profiles.empty())
    findings.push_back(
        problem("profiles", site.config.file + " has no profile directories", "add `profiles: [DIRECTORY]`"));
  for (const std::string& directory : site.config.profiles) {
    std::error_code error;
    fs::directory_iterator entries(directory, error);
    if (error) {
      findings.push_back(problem("profiles", fmt::format("{}: {}", directory, error.message()),
                                 "create it, readable for everybody"));
      continue;
    }
    for (const fs::directory_entry& entry : entries) {
      if (entry.path().extension() != ".json") continue;
      try {
        if (read_text_file(entry.path()).find("\"sailor_network_profile\"") != std::string::npos) {
          networks.push_back(load_network_file(entry.path()));
        } else {
          ++profiles[load_profile_file(entry.path()).gpu_type];
        }
      } catch (const std::exception& broken) {
        findings.push_back(problem("profiles", broken.what(),
                                   "measure it again, or remove it: plans do without it, except those of "
                                   "its owner, which are refused"));
      }
    }
  }
  std::set<std::string> told;
  for (const auto& [slurm_type, count] : nodes_by_type(cluster)) {
    const auto type = site.catalog.gpu_types.find(type_of(site, slurm_type));
    if (type == site.catalog.gpu_types.end()) continue;
    const std::string& measured = profiled_as(type->first, type->second);
    if (!told.insert(measured).second) continue;
    const auto found = profiles.find(measured);
    if (found == profiles.end()) {
      findings.push_back(warning("profiles", fmt::format("no layer profile for {}", measured),
                                 "`sailor profile --on-nodes JOB.yaml` measures one on every GPU type"));
    } else {
      findings.push_back(
          well("profiles", fmt::format("{} of {}", counted(found->second, "model"), measured)));
    }
  }
  findings.push_back(check_links(site, cluster, networks));
  return findings;
}

}  // namespace sailor
