#include "planner/profile/platform.h"

#include <map>

#include "planner/spec/field.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

// The numbers of a platform by their keys.
std::map<std::string, double*> numbers_of(Platform& platform) {
  return {{"base_memory_bytes", &platform.base_memory_bytes},
          {"iteration_overhead_s", &platform.overheads.iteration_overhead_s},
          {"node_sync_s", &platform.overheads.node_sync_s},
          {"message_start_s", &platform.overheads.message_start_s},
          {"message_slowdown", &platform.overheads.message_slowdown},
          {"sync_slowdown", &platform.overheads.sync_slowdown},
          {"jitter", &platform.overheads.jitter},
          {"host_block_s", &platform.host.block_s},
          {"host_tp_block_s", &platform.host.tp_block_s},
          {"host_tp_rank_s", &platform.host.tp_rank_s},
          {"host_pipelined_rank_s", &platform.host_pipelined_rank_s},
          {"collective_start_s", &platform.collective_start_s}};
}

LinkEnd type_at(const std::optional<Field>& field) {
  LinkEnd end{"", "", 0};
  if (field) end.gpu_type = field->name();
  return end;
}

PlatformLink read_platform_link(const Field& field) {
  MapField map(field, {"name", "from", "to", "scope", "latency_s", "bytes_per_s", "node_bytes_per_s"});
  PlatformLink link;
  link.name = map.required("name").name();
  link.from = type_at(map.optional("from"));
  link.to = type_at(map.optional("to"));
  link.scope =
      static_cast<NetworkProfile::Scope>(map.required("scope").choice({"any", "intra_node", "inter_node"}));
  link.bytes_per_s = map.required("bytes_per_s").positive();
  if (const auto latency = map.optional("latency_s")) link.latency_s = latency->non_negative();
  if (const auto node = map.optional("node_bytes_per_s")) link.node_bytes_per_s = node->positive();
  return link;
}

}  // namespace

NetworkProfile Platform::network() const {
  NetworkProfile network;
  network.file = file;
  for (const PlatformLink& link : links)
    network.add({link.from, link.to, link.scope,
                 LinkCurve::from_rates(link.latency_s, link.bytes_per_s, link.node_bytes_per_s)});
  return network;
}

double* Platform::find(const std::string& key) {
  const std::map<std::string, double*> numbers = numbers_of(*this);
  if (const auto it = numbers.find(key); it != numbers.end()) return it->second;
  for (PlatformLink& link : links) {
    const std::string prefix = "links." + link.name + ".";
    if (key == prefix + "latency_s") return &link.latency_s;
    if (key == prefix + "bytes_per_s") return &link.bytes_per_s;
    if (key == prefix + "node_bytes_per_s") return &link.node_bytes_per_s;
  }
  return nullptr;
}

Platform parse_platform(const std::string& yaml, const std::string& file_name) {
  const Document document = parse_yaml(yaml, file_name);
  Platform platform;
  std::map<std::string, double*> numbers = numbers_of(platform);
  std::vector<std::string> known{"sailor_platform", "name", "gpus_per_node", "links"};
  for (const auto& [key, number] : numbers) known.push_back(key);
  MapField map(Field(document), known);
  require_version(map, "sailor_platform", 1);
  platform.file = file_name;
  platform.name = map.required("name").name();
  platform.gpus_per_node = map.required("gpus_per_node").integer<int>(1, 4096);
  for (const Field& link : map.required("links").items()) platform.links.push_back(read_platform_link(link));
  for (const auto& [key, number] : numbers)
    if (const auto field = map.optional(key)) *number = field->number(0, 1e15);
  return platform;
}

Platform load_platform(const std::string& path) {
  return parse_platform(read_text_file(path), path);
}

}  // namespace sailor
