#include "planner/spec/snapshot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/host_list.h"
#include "planner/spec/price_table.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"
#include "planner/spec/yaml_text.h"

namespace sailor {
namespace {

constexpr int kMaxGpusPerNode = 4096;
constexpr int kMaxGpus = 1'000'000;  // of all nodes: ten times the largest cluster there is
constexpr int kMaxNodes = kMaxGpus;
constexpr int64_t kLatestTime_s = int64_t{1} << 40;
constexpr size_t kLongestPrefix = 190;  // of a numbered name, so that it is a name itself

void all_free(SnapshotNode& node) {
  node.free_gpus.resize(static_cast<size_t>(node.gpus));
  std::iota(node.free_gpus.begin(), node.free_gpus.end(), 0);
}

std::vector<std::string> expand(const std::string& list, const Field& field) {
  try {
    return expand_host_list(list);
  } catch (const InputError& error) {
    field.fail(error.what());
  }
}

// The names of the nodes that an entry is about: a host list, or `count` of them numbered from 1.
std::vector<std::string> names_of(const MapField& map) {
  const Field name = map.required("name");
  std::string list = name.name();
  if (const auto count = map.optional("count")) {
    if (list.find_first_of("[],") != std::string::npos)
      count->fail("numbers the nodes of one name, " + in_quotes(list) +
                  " is a host list: leave one of them out");
    if (list.size() > kLongestPrefix)
      name.fail(fmt::format("too long for nodes that are numbered: {} characters at most", kLongestPrefix));
    list += fmt::format("[1-{}]", count->integer<int>(1, kMostHosts));
  }
  return expand(list, name);
}

HostOffer read_host(const Field& field) {
  constexpr int kMostCpus = 1'000'000;
  MapField map(field, {"gres", "cpus", "memory"});
  HostOffer host;
  if (auto gres = map.optional("gres")) host.gres = gres->text();
  if (auto cpus = map.optional("cpus")) host.cpus = cpus->integer<int>(0, kMostCpus);
  if (auto memory = map.optional("memory")) host.memory_bytes = memory->bytes();
  return host;
}

std::string yaml_host(const HostOffer& host) {
  if (host.gres.empty() && host.cpus == 0 && host.memory_bytes == 0) return "";
  std::string out = ", host: {gres: " + yaml_text(host.gres);
  if (host.cpus > 0) out += fmt::format(", cpus: {}", host.cpus);
  if (host.memory_bytes > 0) out += fmt::format(", memory: {}MiB", host.memory_bytes >> 20);
  return out + "}";
}

// What free and busy nodes have in common, but for the name.
SnapshotNode read_place(const MapField& map) {
  SnapshotNode node;
  if (auto partition = map.optional("partition")) node.partition = partition->text_or_empty();
  node.zone = map.required("zone").name();
  node.region = node.zone;
  if (auto region = map.optional("region")) node.region = region->name();
  node.gpu_type = map.required("gpu_type").name();
  node.gpus = map.required("gpus").integer<int>(0, kMaxGpusPerNode);
  if (auto leaf_switch = map.optional("switch")) node.leaf_switch = leaf_switch->name();
  if (auto price = map.optional("price")) node.spot = price->choice(price_names()) == 1;
  if (auto units = map.optional("billing_units")) node.billing_units = units->positive();
  if (auto shared = map.optional("shared")) node.shared = shared->boolean();
  if (auto host = map.optional("host")) node.host = read_host(*host);
  return node;
}

SnapshotNode read_free(const MapField& map) {
  SnapshotNode node = read_place(map);
  if (auto free = map.optional("free_gpus")) {
    for (const Field& item : free->items()) {
      int gpu = item.integer<int>(0, kMaxGpusPerNode);
      if (gpu >= node.gpus) item.fail(fmt::format("the node has {} GPUs, numbered from 0", node.gpus));
      if (!node.free_gpus.empty() && gpu <= node.free_gpus.back())
        item.fail("GPU indices must ascend, each once");
      node.free_gpus.push_back(gpu);
    }
    if (!map.optional("shared")) node.shared = static_cast<int>(node.free_gpus.size()) < node.gpus;
  } else {
    all_free(node);
  }
  return node;
}

BusyNode read_busy(const MapField& map) {
  BusyNode busy;
  busy.node = read_place(map);
  all_free(busy.node);
  busy.state = map.required("state").text();
  if (auto seconds = map.optional("free_in_s")) busy.free_in_s = seconds->non_negative();
  if (auto seconds = map.optional("jobs_end_in_s")) busy.jobs_end_in_s = seconds->non_negative();
  return busy;
}

WaitingJob read_waiting(const Field& item) {
  const MapField map(item, {"nodes", "names", "partition", "start_in_s", "kept_in_s", "limit_s", "new"});
  WaitingJob job;
  job.nodes = map.required("nodes").integer<int>(1, kMaxNodes);
  if (auto names = map.optional("names")) job.names = expand(names->text(), *names);
  if (auto partition = map.optional("partition")) job.partition = partition->text();
  if (auto seconds = map.optional("start_in_s")) job.start_in_s = seconds->non_negative();
  if (auto seconds = map.optional("kept_in_s")) job.kept_in_s = seconds->non_negative();
  if (auto seconds = map.optional("limit_s")) job.limit_s = seconds->non_negative();
  if (auto is_new = map.optional("new")) job.is_new = is_new->boolean();
  return job;
}

WantedNode read_wanted(const Field& item) {
  const MapField map(item, {"node", "job"});
  return {map.required("node").name(), map.required("job").name()};
}

GpuLimit read_limit(const Field& item) {
  const MapField map(item, {"gpus", "gpu_type", "reason"});
  GpuLimit limit;
  limit.gpus = map.required("gpus").integer<int>(0, kMaxGpus);
  if (auto type = map.optional("gpu_type")) limit.gpu_type = type->name();
  limit.reason = map.required("reason").text();
  return limit;
}

// `name: a1, partition: fast, ...` up to `gpus: 4`.
std::string yaml_place(const SnapshotNode& node) {
  std::string out = fmt::format("name: {}, ", yaml_text(node.name));
  if (!node.partition.empty()) out += fmt::format("partition: {}, ", yaml_text(node.partition));
  return out + fmt::format("zone: {}, region: {}, gpu_type: {}, gpus: {}", yaml_text(node.zone),
                           yaml_text(node.region), yaml_text(node.gpu_type), node.gpus);
}

std::string yaml_switch(const SnapshotNode& node) {
  return node.leaf_switch.empty() ? "" : ", switch: " + yaml_text(node.leaf_switch);
}

std::string yaml_price(const SnapshotNode& node) {
  std::string out = node.spot ? ", price: spot" : "";
  if (node.billing_units > 0) out += fmt::format(", billing_units: {}", node.billing_units);
  if (node.shared != (static_cast<int>(node.free_gpus.size()) < node.gpus))
    out += fmt::format(", shared: {}", node.shared);
  return out + yaml_host(node.host);
}

// Holds of all nodes of a snapshot together.
class NodeRules {
 public:
  void check(const SnapshotNode& node, const Field& item) {
    gpus_ += node.gpus;
    if (gpus_ > kMaxGpus) item.fail(fmt::format("more than {} GPUs in all", kMaxGpus));
    if (seen_.size() == kMaxNodes) item.fail(fmt::format("more than {} nodes in all", kMaxNodes));
    Seen& seen = seen_[node.name];
    if (!seen.types.insert(node.gpu_type).second)
      item.fail("the node " + in_quotes(node.name) + " is listed twice");
    if (!node.free_gpus.empty()) {
      const int first = node.free_gpus.front();
      if (first <= seen.last_gpu)
        item.fail(fmt::format("the node {} is listed twice with GPU {}", in_quotes(node.name), first));
      seen.last_gpu = node.free_gpus.back();
    }
    const std::string& region = region_of_.emplace(node.zone, node.region).first->second;
    if (region != node.region) {
      item.fail(fmt::format("the zone {} is in region {} here and in {} above", in_quotes(node.zone),
                            in_quotes(node.region), in_quotes(region)));
    }
  }

 private:
  // The entries of a node: one for each type of its GPUs, in the order of their indices.
  struct Seen {
    std::set<std::string> types;
    int last_gpu = -1;
  };
  std::map<std::string, Seen> seen_;
  std::map<std::string, std::string> region_of_;
  int gpus_ = 0;
};

}  // namespace

const SnapshotNode* Snapshot::find(const std::string& node) const {
  auto it = std::find_if(nodes.begin(), nodes.end(), [&](const SnapshotNode& n) { return n.name == node; });
  return it == nodes.end() ? nullptr : &*it;
}

const SnapshotNode* Snapshot::find(const std::string& node, const std::string& gpu_type) const {
  auto it = std::find_if(nodes.begin(), nodes.end(),
                         [&](const SnapshotNode& n) { return n.name == node && n.gpu_type == gpu_type; });
  return it == nodes.end() ? nullptr : &*it;
}

std::map<std::pair<std::string, std::string>, int> Snapshot::free_by_zone_and_type() const {
  std::map<std::pair<std::string, std::string>, int> free;
  for (const SnapshotNode& node : nodes)
    free[{node.zone, node.gpu_type}] += static_cast<int>(node.free_gpus.size());
  return free;
}

const GpuLimit* Snapshot::limit_on(const std::string& gpu_type) const {
  const GpuLimit* least = nullptr;
  for (const GpuLimit& limit : limits)
    if (limit.gpu_type == gpu_type && (least == nullptr || limit.gpus < least->gpus)) least = &limit;
  return least;
}

Snapshot parse_snapshot(const std::string& yaml, const std::string& file_name) {
  Document document = parse_yaml(yaml, file_name);
  MapField map(Field(document),
               {"sailor_snapshot", "nodes", "busy", "queue", "limits", "wanted", "time", "usd_per_hour",
                "spot_usd_per_hour", "billing", "egress_usd_per_gb", "not_free"});
  require_version(map, "sailor_snapshot", 1);
  Snapshot snapshot;
  snapshot.file = file_name;
  NodeRules rules;
  for (const Field& item : map.required("nodes").items()) {
    const MapField entry(item, {"name", "count", "partition", "zone", "region", "gpu_type", "gpus",
                                "free_gpus", "switch", "price", "billing_units", "shared", "host"});
    SnapshotNode node = read_free(entry);
    for (std::string& name : names_of(entry)) {
      node.name = std::move(name);
      rules.check(node, item);
      snapshot.nodes.push_back(node);
    }
  }
  if (auto busy_nodes = map.optional("busy")) {
    for (const Field& item : busy_nodes->items()) {
      const MapField entry(
          item, {"name", "count", "partition", "zone", "region", "gpu_type", "gpus", "switch", "price",
                 "billing_units", "shared", "host", "state", "free_in_s", "jobs_end_in_s"});
      BusyNode busy = read_busy(entry);
      for (std::string& name : names_of(entry)) {
        busy.node.name = std::move(name);
        rules.check(busy.node, item);
        snapshot.busy.push_back(busy);
      }
    }
  }
  if (auto jobs = map.optional("queue"))
    for (const Field& item : jobs->items()) snapshot.queue.push_back(read_waiting(item));
  if (auto limits = map.optional("limits"))
    for (const Field& item : limits->items()) snapshot.limits.push_back(read_limit(item));
  if (auto nodes = map.optional("wanted"))
    for (const Field& item : nodes->items()) snapshot.wanted.push_back(read_wanted(item));
  if (auto time = map.optional("time")) snapshot.time_s = time->integer<int64_t>(0, kLatestTime_s);
  if (auto prices = map.optional("usd_per_hour")) snapshot.usd_per_hour = read_price_table(*prices);
  if (auto prices = map.optional("spot_usd_per_hour")) snapshot.spot_usd_per_hour = read_price_table(*prices);
  if (auto billing = map.optional("billing")) snapshot.usd_per_unit_hour = read_unit_price(*billing);
  if (auto prices = map.optional("egress_usd_per_gb")) snapshot.egress_usd_per_gb = read_price_table(*prices);
  if (auto lines = map.optional("not_free")) {
    for (const Field& item : lines->items()) snapshot.not_free.push_back(item.text());
  }
  return snapshot;
}

Snapshot load_snapshot(const std::string& path) {
  return parse_snapshot(read_text_file(path), path);
}

std::string to_yaml(const Snapshot& snapshot) {
  std::string out = "sailor_snapshot: 1\nnodes:";
  out += snapshot.nodes.empty() ? " []\n" : "\n";
  for (const SnapshotNode& node : snapshot.nodes) {
    out += fmt::format("  - {{{}, free_gpus: [{}]{}{}}}\n", yaml_place(node), fmt::join(node.free_gpus, ", "),
                       yaml_switch(node), yaml_price(node));
  }
  if (!snapshot.busy.empty()) out += "busy:\n";
  for (const BusyNode& busy : snapshot.busy) {
    out += fmt::format("  - {{{}{}{}, state: {}{}}}\n", yaml_place(busy.node), yaml_switch(busy.node),
                       yaml_price(busy.node), yaml_text(busy.state),
                       busy.free_in_s       ? fmt::format(", free_in_s: {:.0f}", *busy.free_in_s)
                       : busy.jobs_end_in_s ? fmt::format(", jobs_end_in_s: {:.0f}", *busy.jobs_end_in_s)
                                            : "");
  }
  if (!snapshot.queue.empty()) out += "queue:\n";
  for (const WaitingJob& job : snapshot.queue) {
    out += fmt::format("  - {{nodes: {}", job.nodes);
    if (!job.names.empty()) out += ", names: " + yaml_text(fmt::format("{}", fmt::join(job.names, ",")));
    if (!job.partition.empty()) out += ", partition: " + yaml_text(job.partition);
    if (job.start_in_s) out += fmt::format(", start_in_s: {:.0f}", *job.start_in_s);
    if (job.kept_in_s) out += fmt::format(", kept_in_s: {:.0f}", *job.kept_in_s);
    if (job.limit_s) out += fmt::format(", limit_s: {:.0f}", *job.limit_s);
    if (job.is_new) out += ", new: true";
    out += "}\n";
  }
  if (!snapshot.limits.empty()) out += "limits:\n";
  for (const GpuLimit& limit : snapshot.limits)
    out += fmt::format("  - {{gpus: {}{}, reason: {}}}\n", limit.gpus,
                       limit.gpu_type.empty() ? "" : ", gpu_type: " + yaml_text(limit.gpu_type),
                       yaml_text(limit.reason));
  if (!snapshot.wanted.empty()) out += "wanted:\n";
  for (const WantedNode& wanted : snapshot.wanted)
    out += fmt::format("  - {{node: {}, job: {}}}\n", yaml_text(wanted.node), yaml_text(wanted.job));
  if (snapshot.time_s) out += fmt::format("time: {}\n", *snapshot.time_s);
  out += yaml_table("usd_per_hour", snapshot.usd_per_hour);
  out += yaml_table("spot_usd_per_hour", snapshot.spot_usd_per_hour);
  out += yaml_unit_price(snapshot.usd_per_unit_hour);
  out += yaml_table("egress_usd_per_gb", snapshot.egress_usd_per_gb);
  if (!snapshot.not_free.empty()) out += "not_free:\n";
  for (const std::string& line : snapshot.not_free) out += "  - " + yaml_text(line) + "\n";
  return out;
}

}  // namespace sailor
