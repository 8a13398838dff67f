// The site config (`sailor.yaml`), which the admin of a cluster writes. Value type; immutable after loading.
//
//     sailor_site: 1
//     catalog: catalog.yaml                 # adds to the installed one; paths are relative to this file
//     profiles: [profiles]                  # directories with layer and network profiles
//     framework: framework.yaml             # framework description; absent = Sailor's own trainer
//     profile_max_age_days: 180             # note about older profiles; 0 = never
//     gres: {a100: NAME}                    # GRES type in Slurm -> GPU type; absent = the same name
//     default_zone: {zone: z1, region: r1}
//     zones:
//       - {zone: z2, region: r1, partitions: [fast], features: [rack7], price: spot}    # first match decides
//     umbrella_partition: all               # a partition over all GPU nodes, if there is one
//     # What jobs ask for: whole nodes, or only what their ranks need; then processors and memory of a rank.
//     request: {whole_nodes: false, cpus_per_rank: 8, memory_per_rank: 16GiB}
//     usd_per_hour: {NAME: {z1: 3.5}}
//     spot_usd_per_hour: {NAME: {z1: 1.5}}
//     billing: {usd_per_unit_hour: 0.2}     # price of nodes by Slurm's billing weights, instead
//     egress_usd_per_gb: {z1: {z2: 0.01}}
//     watts: {NAME: {idle: 60, busy: 400}}  # overrides the catalog, for --objective=energy
//     planner: {time_limit: 10s, effort: 1}
//     # May running jobs ask for more nodes? How long may training pause for planning?
//     # And in which partition and QOS do they wait for these?
//     elastic: {grow: true, yield: false, time_limit: 0.3s, grow_partition: scavenge, grow_qos: low}
//     defaults: {objective: throughput}
//     policy: {planning: true}              # site_policy.h
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/catalog.h"
#include "planner/spec/site_policy.h"

namespace sailor {

struct ZoneRule {
  std::string zone;
  std::string region;
  std::vector<std::string> partitions;
  std::vector<std::string> features;
  bool spot = false;  // spot prices apply
};

struct SiteConfig {
  std::string file;
  std::string catalog;                // absolute path; empty = the installed catalog alone
  std::vector<std::string> profiles;  // absolute paths
  std::string framework;              // absolute path; empty = our own trainer's
  // Absolute paths of calibration files (simulator/assumptions.h), of which the last one wins.
  std::vector<std::string> calibrations;
  int profile_max_age_days = 180;  // 0 = any age
  std::map<std::string, std::string> gres;
  ZoneRule default_zone{"default", "default", {}, {}, false};
  std::vector<ZoneRule> zones;
  std::string umbrella_partition;
  bool whole_nodes = false;  // jobs take whole nodes, else only what their ranks need
  // Of one rank; nothing = its GPU's share of the node's processors, and the memory that planner/simulator/
  // host_memory.h estimates.
  std::optional<int> cpus_per_rank;
  std::optional<int64_t> memory_per_rank_bytes;
  std::map<std::string, std::map<std::string, double>> usd_per_hour, spot_usd_per_hour;
  std::optional<double> usd_per_unit_hour;  // of a billing unit; nothing = GPUs have prices
  std::map<std::string, std::map<std::string, double>> egress_usd_per_gb;
  std::map<std::string, GpuPower> power;  // by GPU type
  double planner_time_limit_s = 10.0;
  double planner_effort = 1;
  bool jobs_may_grow = true;
  bool jobs_yield = false;               // all elastic jobs do (ElasticSpec::yield)
  std::string grow_partition, grow_qos;  // of helper jobs; empty = those of the job
  double elastic_time_limit_s = 0.3;
  bool encrypt_data = false;      // what ranks send each other over sockets
  std::string default_objective;  // empty = none
  std::optional<SitePolicy> policy;
};

SiteConfig load_site_config(const std::string& path);
SiteConfig parse_site_config(const std::string& yaml, const std::string& file_name);
// Reading it back gives the same site without its policy, which is for submissions; paths are written
// unchanged.
std::string to_yaml(const SiteConfig& site);
// $SAILOR_CONFIG, else that of the installation.
std::string site_config_path();
std::string installed_site_config_path();  // /etc/sailor/sailor.yaml
// The site for the submission of a user: `file`, or, when the administrators' config exists and has a policy,
// theirs with the profile directories of `file` before its own, and the calibrations of `file` after.
SiteConfig load_site_under(const std::string& administrators, const std::string& file);

}  // namespace sailor
