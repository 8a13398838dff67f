#include "planner/spec/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <set>
#include <utility>

#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/installed_catalog.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"
#include "planner/spec/yaml_text.h"

namespace sailor {
namespace {

constexpr int64_t kLeastMemory_bytes = 1 << 20;                  // of a GPU; below, a unit was forgotten
constexpr double kLinkLatency_s = 2e-6, kCardLatency_s = 10e-6;  // of NVLink; of InfiniBand

// `unknown GPU type "x", did you mean "y"?`
std::string unknown_type(const Catalog& catalog, const std::string& gpu_type) {
  std::vector<std::string> names;
  for (const auto& entry : catalog.gpu_types) names.push_back(entry.first);
  return "unknown GPU type " + in_quotes(gpu_type) + did_you_mean(gpu_type, names);
}

double read_rate(const Field& rate) {
  const double bytes_per_s = rate.bytes_per_s();
  if (bytes_per_s <= 0) rate.fail("must be above 0");
  return bytes_per_s;
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

TypicalNode read_typical_node(const Field& field) {
  MapField map(field, {"link", "link_latency", "cards", "card", "card_latency", "host"});
  TypicalNode node{0, kLinkLatency_s, 0, 0, kCardLatency_s};
  if (auto link = map.optional("link")) node.link_bytes_per_s = read_rate(*link);
  if (auto latency = map.optional("link_latency")) node.link_latency_s = latency->duration_s();
  if (auto cards = map.optional("cards")) {
    node.cards = cards->integer<int>(1, 64);
    node.card_bytes_per_s = read_rate(map.required("card"));
  } else if (auto card = map.optional("card")) {
    card->fail("is the rate of one card: say with `cards` how many a node has");
  }
  if (auto latency = map.optional("card_latency")) node.card_latency_s = latency->duration_s();
  if (auto host = map.optional("host")) node.host_bytes_per_s = read_rate(*host);
  return node;
}

GpuType read_gpu_type(const std::string& name, const Field& field) {
  MapField map(field,
               {"memory", "peak_flops", "memory_bandwidth", "compute_units", "base_memory", "efficiency",
                "usd_per_hour", "spot_usd_per_hour", "watts", "emulate", "device", "node"});
  GpuType type;
  type.name = name;
  Field memory = map.required("memory");
  type.memory_bytes = memory.bytes();
  if (type.memory_bytes <= 0) memory.fail("must be above 0");
  if (type.memory_bytes < kLeastMemory_bytes)
    memory.fail(fmt::format("is {} bytes; with a unit: {}GiB", type.memory_bytes, memory.text()));
  if (auto flops = map.optional("peak_flops")) {
    for (const auto& [precision, value] : flops->entries()) type.peak_flops[precision] = value.positive();
  }
  if (auto bandwidth = map.optional("memory_bandwidth"))
    type.memory_bandwidth_bytes_per_s = bandwidth->bytes_per_s();
  if (auto units = map.optional("compute_units")) type.compute_units = units->integer<int>(1, 1 << 20);
  if (auto base = map.optional("base_memory")) type.base_memory_bytes = base->bytes();
  if (auto efficiency = map.optional("efficiency")) type.efficiency = read_efficiency(*efficiency);
  if (auto price = map.optional("usd_per_hour")) type.usd_per_hour = price->usd();
  if (auto price = map.optional("spot_usd_per_hour")) type.spot_usd_per_hour = price->usd();
  if (auto watts = map.optional("watts")) type.power = read_power(*watts);
  if (auto emulate = map.optional("emulate")) type.emulation = read_emulation(*emulate);
  type.on_processors = type.emulation.has_value();
  if (auto device = map.optional("device")) {
    const bool cpu = device->choice({"gpu", "cpu"}) == 1;
    if (type.emulation && !cpu) device->fail("must be cpu: ranks of an emulated type compute on processors");
    type.on_processors = cpu;
  }
  if (auto node = map.optional("node")) type.node = read_typical_node(*node);
  return type;
}

const char* const kScopes[] = {"intra_node", "inter_node", "inter_zone", "inter_region"};

AssumedLink read_assumed_link(const Field& field, const Catalog& catalog) {
  MapField map(field, {"scope", "from", "to", "latency", "rate", "node_rate"});
  AssumedLink link;
  link.scope =
      static_cast<AssumedLink::Scope>(map.required("scope").choice({std::begin(kScopes), std::end(kScopes)}));
  const auto read_type = [&](const char* key, std::string& type) {
    const auto given = map.optional(key);
    if (!given) return;
    type = given->name();
    if (!catalog.gpu_types.contains(type)) given->fail(unknown_type(catalog, type));
  };
  read_type("from", link.from);
  read_type("to", link.to);
  if (auto latency = map.optional("latency")) link.latency_s = latency->duration_s();
  link.bytes_per_s = read_rate(map.required("rate"));
  if (auto rate = map.optional("node_rate")) link.node_bytes_per_s = read_rate(*rate);
  return link;
}

// What a site's catalog says replaces what is installed.
Catalog added(Catalog catalog, Catalog site) {
  std::set<AssumedLink::Scope> described;
  for (const AssumedLink& link : site.links) described.insert(link.scope);
  std::erase_if(catalog.links, [&](const AssumedLink& link) { return described.contains(link.scope); });
  for (auto& [name, type] : catalog.gpu_types) {
    if (described.contains(AssumedLink::Scope::intra_node)) type.node.link_bytes_per_s = 0;
    if (described.contains(AssumedLink::Scope::inter_node)) type.node.cards = 0;
  }
  for (auto& [name, type] : site.gpu_types) catalog.gpu_types[name] = std::move(type);
  catalog.links.insert(catalog.links.end(), site.links.begin(), site.links.end());
  catalog.file = site.file;
  return catalog;
}

std::string type_yaml(const GpuType& type) {
  std::string out = fmt::format("memory: {}", type.memory_bytes);
  const auto add = [&out](const char* key, const auto& value) { out += fmt::format(", {}: {}", key, value); };
  if (!type.peak_flops.empty()) {
    std::vector<std::string> rates;
    for (const auto& [precision, flops] : type.peak_flops)
      rates.push_back(fmt::format("{}: {}", precision, flops));
    add("peak_flops", fmt::format("{{{}}}", fmt::join(rates, ", ")));
  }
  if (type.memory_bandwidth_bytes_per_s > 0)
    add("memory_bandwidth", fmt::format("{}B/s", type.memory_bandwidth_bytes_per_s));
  if (type.compute_units > 0) add("compute_units", type.compute_units);
  if (type.base_memory_bytes > 0) add("base_memory", type.base_memory_bytes);
  const GpuEfficiency& e = type.efficiency;
  add("efficiency", fmt::format("{{gemm: {}, gemm_half_depth: {}, memory: {}, unaligned: {}, attention: {}}}",
                                e.gemm, e.gemm_half_depth, e.memory, e.unaligned, e.attention));
  if (type.usd_per_hour) add("usd_per_hour", *type.usd_per_hour);
  if (type.spot_usd_per_hour) add("spot_usd_per_hour", *type.spot_usd_per_hour);
  if (type.power)
    add("watts", fmt::format("{{idle: {}, busy: {}}}", type.power->idle_watts, type.power->busy_watts));
  if (type.emulation)
    add("emulate", fmt::format("{{profile: {}, slowdown: {}}}", yaml_text(type.emulation->profile),
                               type.emulation->slowdown));
  else if (type.on_processors)
    add("device", "cpu");
  std::vector<std::string> node;
  if (type.node.link_bytes_per_s > 0)
    node.push_back(
        fmt::format("link: {}B/s, link_latency: {}s", type.node.link_bytes_per_s, type.node.link_latency_s));
  if (type.node.cards > 0)
    node.push_back(fmt::format("cards: {}, card: {}B/s, card_latency: {}s", type.node.cards,
                               type.node.card_bytes_per_s, type.node.card_latency_s));
  if (type.node.host_bytes_per_s > 0) node.push_back(fmt::format("host: {}B/s", type.node.host_bytes_per_s));
  if (!node.empty()) add("node", fmt::format("{{{}}}", fmt::join(node, ", ")));
  return out;
}

}  // namespace

std::optional<double> GpuType::flops(Precision precision) const {
  for (const char* key : {kind_of(precision).peak_flops_key, precision == Precision::fp16 ? "bf16" : ""})
    if (const auto known = peak_flops.find(key); known != peak_flops.end()) return known->second;
  return std::nullopt;
}

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
  static const Catalog installed = parse_catalog(kInstalledCatalog, "the installed catalog");
  return path.empty() ? installed : added(installed, parse_catalog(read_text_file(path), path));
}

std::string to_yaml(const Catalog& catalog) {
  std::string out = "sailor_catalog: 1\ngpu_types:\n";
  for (const auto& [name, type] : catalog.gpu_types)
    out += fmt::format("  {}: {{{}}}\n", yaml_text(name), type_yaml(type));
  if (!catalog.links.empty()) out += "links:\n";
  for (const AssumedLink& link : catalog.links) {
    out += fmt::format("  - {{scope: {}", kScopes[static_cast<size_t>(link.scope)]);
    if (!link.from.empty()) out += ", from: " + yaml_text(link.from);
    if (!link.to.empty()) out += ", to: " + yaml_text(link.to);
    out += fmt::format(", latency: {}s, rate: {}B/s", link.latency_s, link.bytes_per_s);
    if (link.node_bytes_per_s > 0) out += fmt::format(", node_rate: {}B/s", link.node_bytes_per_s);
    out += "}\n";
  }
  return out;
}

}  // namespace sailor
