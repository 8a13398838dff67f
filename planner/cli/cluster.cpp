// sailor cluster: the snapshot for a plan, as a table or as YAML for `--cluster`.
#include <fmt/format.h>

#include "planner/cli/cluster_source.h"
#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/spec/error.h"

namespace sailor::cli {
namespace {

std::string snapshot_table(const Snapshot& snapshot) {
  size_t name = 4;
  size_t zone = 4;
  size_t partition = 9;
  size_t type = 8;
  for (const SnapshotNode& node : snapshot.nodes) {
    name = std::max(name, node.name.size());
    zone = std::max(zone, node.zone.size());
    partition = std::max(partition, node.partition.size());
    type = std::max(type, node.gpu_type.size());
  }
  std::string out;
  auto row = [&](const auto&... cells) {
    std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {:>4}  {:>4}\n", cells...);
    out += line;
  };
  row("NODE", name, "ZONE", zone, "PARTITION", partition, "GPU_TYPE", type, "GPUS", "FREE");
  for (const SnapshotNode& node : snapshot.nodes) {
    row(node.name, name, node.zone, zone, node.partition.empty() ? "-" : node.partition, partition,
        node.gpu_type, type, node.gpus, node.free_gpus.size());
  }
  for (const GpuLimit& limit : snapshot.limits) out += "limit: " + limit.reason + "\n";
  for (const std::string& line : snapshot.not_free) out += "not free: " + line + "\n";
  return out;
}

}  // namespace

int run_cluster(const ClusterCommand& command) {
  if (command.format == Format::json) throw InputError("--format: must be table or yaml, is \"json\"");
  Snapshot snapshot = read_cluster(command.cluster, command.config);
  print(command.format == Format::yaml ? to_yaml(snapshot) : snapshot_table(snapshot));
  return kDone;
}

}  // namespace sailor::cli
