// A platform of published runs, or of a cluster without measurements: GPUs per node, links, and overheads.
// Data from a file (etc/platforms). Value type.
//
//     sailor_platform: 1
//     name: NAME
//     gpus_per_node: 8
//     links:
//       - {name: nvlink, scope: intra_node, latency_s: 1.4e-6, bytes_per_s: 212e9}
//       - {name: network, scope: inter_node, latency_s: 1e-5, bytes_per_s: 12.5e9, node_bytes_per_s: 100e9}
//     collective_start_s: 44e-6
//     host_block_s: 1.1e-3
//     base_memory_bytes: 1e9
//
// Links may name the GPU types of their ends (`from`, `to`); see profile/network_profile.h.
#pragma once

#include <string>
#include <vector>

#include "planner/profile/analytic_profile.h"
#include "planner/profile/layer_profile.h"
#include "planner/profile/network_profile.h"

namespace sailor {

struct PlatformLink {
  std::string name;
  LinkEnd from{"", "", 0}, to{"", "", 0};
  NetworkProfile::Scope scope = NetworkProfile::Scope::any;
  double latency_s = 0, bytes_per_s = 0, node_bytes_per_s = 0;
};

struct Platform {
  std::string name;
  std::string file;
  int gpus_per_node = 1;
  std::vector<PlatformLink> links;
  PlatformOverheads overheads;  // all but its base memory, which may be calibrated:
  double base_memory_bytes = 0;
  HostTimes host;
  double host_pipelined_rank_s =
      0;  // increment per block, pass and further TP rank in pipelines over several nodes
  double collective_start_s = 0;

  NetworkProfile network() const;
  // A constant of this platform by the name of its key, or `links.NAME.KEY`; nullptr if there is none.
  double* find(const std::string& key);
};

Platform load_platform(const std::string& path);
Platform parse_platform(const std::string& yaml, const std::string& file_name);

}  // namespace sailor
