#include "planner/spec/catalog.h"

#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

// `unknown GPU type "x", did you mean "y"?`
std::string unknown_type(const Catalog& catalog, const std::string& gpu_type) {
  std::vector<std::string> names;
  for (const auto& entry : catalog.gpu_types) names.push_back(entry.first);
  return "unknown GPU type " + in_quotes(gpu_type) + did_you_mean(gpu_type, names);
}

Emulation read_emulation(const Field& field) {
  MapField map(field, {"profile", "slowdown"});
  Emulation emulation;
  emulation.profile = map.required("profile").name();
  if (auto slowdown = map.optional("slowdown")) emulation.slowdown = slowdown->positive();
  return emulation;
}

GpuEfficiency read_efficiency(const Field& field) {
  MapField map(field, {"gemm", "gemm_half_depth", "memory", "unaligned", "attention"});
  GpuEfficiency efficiency;
  const auto read = [&](const char* key, double& value) {
    if (auto given = map.optional(key)) value = given->positive();
  };
  read("gemm", efficiency.gemm);
  read("gemm_half_depth", efficiency.gemm_half_depth);
  read("memory", efficiency.memory);
  read("unaligned", efficiency.unaligned);
  read("attention", efficiency.attention);
  return efficiency;
}

GpuType read_gpu_type(const std::string& name, const Field& field) {
  MapField map(field, {"memory", "peak_flops", "memory_bandwidth", "compute_units", "base_memory",
                       "efficiency", "usd_per_hour", "watts", "emulate"});
  GpuType type;
  type.name = name;
  Field memory = map.required("memory");
  type.memory_bytes = memory.bytes();
  if (type.memory_bytes <= 0) memory.fail("must be above 0");
  if (auto flops = map.optional("peak_flops")) {
    for (const auto& [precision, value] : flops->entries()) type.peak_flops[precision] = value.positive();
  }
  if (auto bandwidth = map.optional("memory_bandwidth"))
    type.memory_bandwidth_bytes_per_s = bandwidth->bytes_per_s();
  if (auto units = map.optional("compute_units")) type.compute_units = units->integer<int>(1, 1 << 20);
  if (auto base = map.optional("base_memory")) type.base_memory_bytes = base->bytes();
  if (auto efficiency = map.optional("efficiency")) type.efficiency = read_efficiency(*efficiency);
  if (auto price = map.optional("usd_per_hour")) type.usd_per_hour = price->usd();
  if (auto watts = map.optional("watts")) type.power = read_power(*watts);
  if (auto emulate = map.optional("emulate")) type.emulation = read_emulation(*emulate);
  return type;
}

AssumedLink read_assumed_link(const Field& field, const Catalog& catalog) {
  MapField map(field, {"scope", "from", "to", "latency", "rate", "node_rate"});
  AssumedLink link;
  link.scope = static_cast<AssumedLink::Scope>(
      map.required("scope").choice({"intra_node", "inter_node", "inter_zone", "inter_region"}));
  const auto read_type = [&](const char* key, std::string& type) {
    const auto given = map.optional(key);
    if (!given) return;
    type = given->name();
    if (!catalog.gpu_types.contains(type)) given->fail(unknown_type(catalog, type));
  };
  read_type("from", link.from);
  read_type("to", link.to);
  if (auto latency = map.optional("latency")) link.latency_s = latency->duration_s();
  const auto read_rate = [&](const Field& rate) {
    const double bytes_per_s = rate.bytes_per_s();
    if (bytes_per_s <= 0) rate.fail("must be above 0");
    return bytes_per_s;
  };
  link.bytes_per_s = read_rate(map.required("rate"));
  if (auto rate = map.optional("node_rate")) link.node_bytes_per_s = read_rate(*rate);
  return link;
}

}  // namespace

const GpuType& Catalog::at(const std::string& gpu_type) const {
  auto it = gpu_types.find(gpu_type);
  if (it != gpu_types.end()) return it->second;
  throw InputError(unknown_type(*this, gpu_type) + " (types: " + file + ")");
}

GpuPower read_power(const Field& field) {
  MapField map(field, {"idle", "busy"});
  const GpuPower power{map.required("idle").positive(), map.required("busy").positive()};
  if (power.busy_watts < power.idle_watts) field.fail("busy must be at least idle");
  return power;
}

Catalog parse_catalog(const std::string& yaml, const std::string& file_name) {
  Document document = parse_yaml(yaml, file_name);
  MapField map(Field(document), {"sailor_catalog", "gpu_types", "links"});
  require_version(map, "sailor_catalog", 1);
  Catalog catalog;
  catalog.file = file_name;
  Field types = map.required("gpu_types");
  for (const auto& [name, field] : types.entries()) {
    if (name.empty() || name.find_first_of(" ,=\t\n") != std::string::npos) {
      field.fail("the name of a GPU type holds no spaces, \",\" or \"=\"");
    }
    catalog.gpu_types.emplace(name, read_gpu_type(name, field));
  }
  if (catalog.gpu_types.empty()) types.fail("a catalog needs at least one GPU type");
  if (auto links = map.optional("links"))
    for (const Field& link : links->items()) catalog.links.push_back(read_assumed_link(link, catalog));
  return catalog;
}

Catalog load_catalog(const std::string& path) {
  return parse_catalog(read_text_file(path), path);
}

}  // namespace sailor
