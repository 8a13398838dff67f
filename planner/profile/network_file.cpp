#include "planner/profile/network_file.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "planner/profile/profile_reader.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

using Json = nlohmann::ordered_json;
using Scope = NetworkProfile::Scope;

const std::vector<std::string> kScopes = {"any", "intra_node", "inter_node"};
const std::vector<std::string> kTransports = {"nccl", "sockets"};
const std::vector<std::string> kOperations = {"all_reduce", "all_gather", "reduce_scatter", "broadcast"};
constexpr int kMostRanks = 1'000'000;
// Of one message; sums and extrapolations stay in range.
constexpr int64_t kMostBytes = int64_t{1} << 42;
constexpr double kMost_s = 1e6, kLeastBytes_per_s = 1, kMostBytes_per_s = 1e18;

double seconds_of(const Field& field) {
  field.number(0, kMost_s);
  return field.positive();
}

bool same(const LinkEnd& a, const LinkEnd& b) {
  return a.gpu_type == b.gpu_type && a.zone == b.zone && a.gpus == b.gpus;
}

LinkEnd read_end(const std::optional<Field>& field) {
  LinkEnd end{.gpu_type = "", .zone = "", .gpus = 0};
  if (!field) return end;
  MapField map(*field, {"gpu_type", "zone", "gpus"});
  if (auto type = map.optional("gpu_type")) end.gpu_type = type->name();
  if (auto zone = map.optional("zone")) end.zone = zone->name();
  if (auto gpus = map.optional("gpus")) end.gpus = gpus->integer<int>(1, 4096);
  return end;
}

std::optional<Transport> read_transport(MapField& map) {
  if (auto word = map.optional("transport")) return static_cast<Transport>(word->choice(kTransports));
  return std::nullopt;
}

std::vector<std::pair<double, double>> read_points(const Field& field) {
  std::vector<std::pair<double, double>> points;
  for (const Field& item : field.items()) {
    std::vector<Field> pair = item.items();
    if (pair.size() != 2) item.fail("must be [BYTES, SECONDS]");
    points.emplace_back(pair[0].number(1, kMostBytes), seconds_of(pair[1]));
    if (points.size() > 1 && points.back().first <= points[points.size() - 2].first) {
      item.fail("bytes must ascend from point to point");
    }
  }
  if (points.empty()) field.fail("a link needs at least one point");
  return points;
}

std::vector<NetworkMeasurement> read_measurements(const Field& field) {
  std::vector<NetworkMeasurement> measurements;
  std::set<std::pair<int64_t, int>> seen;
  for (const Field& item : field.items()) {
    MapField map(item, {"bytes", "seconds", "samples", "error", "outliers", "pairs", "ended"});
    NetworkMeasurement m;
    m.bytes = map.required("bytes").integer<int64_t>(1, kMostBytes);
    m.seconds = seconds_of(map.required("seconds"));
    m.samples = map.required("samples").integer<int>(1, 1'000'000'000);
    m.error = map.required("error").non_negative();
    if (auto outliers = map.optional("outliers")) m.outliers = outliers->integer<int>(0, 1'000'000'000);
    if (auto pairs = map.optional("pairs")) m.pairs = pairs->integer<int>(1, kMostRanks);
    if (auto ended = map.optional("ended")) m.precise = ended->choice({"precise", "time_up"}) == 0;
    if (!seen.insert({m.bytes, m.pairs}).second) item.fail("this (bytes, pairs) is listed twice");
    measurements.push_back(m);
  }
  return measurements;
}

NetworkFile::Link read_link(const Field& item) {
  MapField map(item, {"from", "to", "scope", "transport", "points", "latency_s", "bytes_per_s",
                      "node_bytes_per_s", "step_latency_s", "step_bytes_per_s", "measured", "messages"});
  NetworkFile::Link link;
  link.from = read_end(map.optional("from"));
  link.to = read_end(map.optional("to"));
  if (auto word = map.optional("scope")) link.scope = static_cast<Scope>(word->choice(kScopes));
  link.transport = read_transport(map);
  if (auto points = map.optional("points")) link.points = read_points(*points);
  if (auto latency = map.optional("latency_s")) link.latency_s = latency->number(0, kMost_s);
  if (auto rate = map.optional("bytes_per_s"))
    link.bytes_per_s = rate->number(kLeastBytes_per_s, kMostBytes_per_s);
  if (auto rate = map.optional("node_bytes_per_s"))
    link.node_bytes_per_s = rate->number(kLeastBytes_per_s, kMostBytes_per_s);
  if (auto latency = map.optional("step_latency_s")) link.step_latency_s = latency->number(0, kMost_s);
  if (auto rate = map.optional("step_bytes_per_s"))
    link.step_bytes_per_s = rate->number(kLeastBytes_per_s, kMostBytes_per_s);
  if (link.step_latency_s > 0 && !(link.step_bytes_per_s > 0))
    map.fail("\"step_latency_s\" needs \"step_bytes_per_s\"");
  if (auto text = map.optional("measured")) link.measured = text->text_or_empty();
  if (auto messages = map.optional("messages")) link.messages = read_measurements(*messages);
  if (!link.has_curve()) {
    if (link.latency_s || link.node_bytes_per_s > 0 || link.step_bytes_per_s > 0)
      map.fail(
          "\"latency_s\", \"node_bytes_per_s\" and \"step_bytes_per_s\" need \"bytes_per_s\" or \"points\"");
    if (link.messages.empty()) map.required("points");  // says that it is missing
  } else if (link.latency_s && !link.points.empty() && *link.latency_s > link.points.front().second) {
    map.required("latency_s").fail("must not be above the time of the first point");
  }
  return link;
}

NetworkFile::Collective read_collective(const Field& item) {
  MapField map(item, {"operation", "members", "ranks", "nodes", "transport", "measured", "measurements"});
  NetworkFile::Collective collective;
  collective.operation = kOperations[map.required("operation").choice(kOperations)];
  for (const Field& member : map.required("members").items()) collective.members.push_back(member.text());
  collective.ranks = map.required("ranks").integer<int>(1, kMostRanks);
  collective.nodes = map.required("nodes").integer<int>(1, kMostRanks);
  collective.transport = read_transport(map);
  if (auto text = map.optional("measured")) collective.measured = text->text_or_empty();
  collective.measurements = read_measurements(map.required("measurements"));
  return collective;
}

Json end_json(const LinkEnd& end) {
  Json json = Json::object();
  if (!end.gpu_type.empty()) json["gpu_type"] = end.gpu_type;
  if (!end.zone.empty()) json["zone"] = end.zone;
  if (end.gpus > 0) json["gpus"] = end.gpus;
  return json;
}

// A list with one item per line, for human readers.
std::string lines(const std::vector<std::string>& items, const std::string& indent) {
  if (items.empty()) return "[]";
  std::string text = "[";
  for (const std::string& item : items) text += (text.size() > 1 ? ",\n" : "\n") + indent + item;
  return text + "]";
}

std::string measurements_text(const std::vector<NetworkMeasurement>& measurements) {
  std::vector<std::string> items;
  for (const NetworkMeasurement& m : measurements) {
    Json json = {{"bytes", m.bytes}, {"seconds", m.seconds},   {"samples", m.samples},
                 {"error", m.error}, {"outliers", m.outliers}, {"pairs", m.pairs}};
    json["ended"] = m.precise ? "precise" : "time_up";
    items.push_back(json.dump());
  }
  return lines(items, "      ");
}

// `head` without its closing brace, then a list under `key`.
std::string with_list(const Json& head, const char* key, const std::string& list) {
  std::string text = head.dump();
  text.pop_back();
  return text + (head.empty() ? "" : ", ") + "\"" + key + "\": " + list + "}";
}

std::string link_text(const NetworkFile::Link& link) {
  Json json = {{"from", end_json(link.from)}, {"to", end_json(link.to)}, {"scope", to_string(link.scope)}};
  if (link.transport) json["transport"] = to_string(*link.transport);
  if (!link.measured.empty()) json["measured"] = link.measured;
  if (link.latency_s) json["latency_s"] = *link.latency_s;
  if (link.bytes_per_s > 0) json["bytes_per_s"] = link.bytes_per_s;
  if (link.node_bytes_per_s > 0) json["node_bytes_per_s"] = link.node_bytes_per_s;
  if (link.step_bytes_per_s > 0) {
    json["step_latency_s"] = link.step_latency_s;
    json["step_bytes_per_s"] = link.step_bytes_per_s;
  }
  if (!link.points.empty()) {
    Json points = Json::array();
    for (const auto& [bytes, seconds] : link.points) {
      const Json size = bytes == std::floor(bytes) ? Json(static_cast<int64_t>(bytes)) : Json(bytes);
      points.push_back({size, seconds});
    }
    json["points"] = points;
  }
  if (link.messages.empty()) return json.dump();
  return with_list(json, "messages", measurements_text(link.messages));
}

std::string collective_text(const NetworkFile::Collective& collective) {
  Json json = {{"operation", collective.operation},
               {"members", collective.members},
               {"ranks", collective.ranks},
               {"nodes", collective.nodes}};
  if (collective.transport) json["transport"] = to_string(*collective.transport);
  if (!collective.measured.empty()) json["measured"] = collective.measured;
  return with_list(json, "measurements", measurements_text(collective.measurements));
}

}  // namespace

const char* to_string(Scope scope) {
  return kScopes[static_cast<size_t>(scope)].c_str();
}

LinkCurve NetworkFile::Link::curve() const {
  LinkCurve curve = points.empty()
                        ? LinkCurve::from_rates(latency_s.value_or(0), bytes_per_s, node_bytes_per_s)
                        : LinkCurve::from_points(points, latency_s, bytes_per_s, node_bytes_per_s);
  if (step_bytes_per_s > 0) curve.set_steps(step_latency_s, step_bytes_per_s);
  return curve;
}

NetworkFile::Link& NetworkFile::link(const LinkEnd& from, const LinkEnd& to, Scope scope,
                                     std::optional<Transport> transport) {
  for (Link& link : links) {
    if (same(link.from, from) && same(link.to, to) && link.scope == scope && link.transport == transport)
      return link;
  }
  links.push_back({.from = from,
                   .to = to,
                   .scope = scope,
                   .transport = transport,
                   .points = {},
                   .latency_s = {},
                   .measured = "",
                   .messages = {}});
  return links.back();
}

NetworkFile::Collective& NetworkFile::collective(const std::string& operation,
                                                 const std::vector<std::string>& members, int ranks,
                                                 int nodes, std::optional<Transport> transport) {
  for (Collective& c : collectives) {
    if (std::tie(c.operation, c.members, c.ranks, c.nodes, c.transport) ==
        std::tie(operation, members, ranks, nodes, transport))
      return c;
  }
  collectives.push_back({operation, members, ranks, nodes, transport, "", {}});
  return collectives.back();
}

NetworkFile read_network_file(const Document& document) {
  MapField map(Field(document), {"sailor_network_profile", "measured", "links", "collectives"});
  require_version(map, "sailor_network_profile", 1);
  NetworkFile network;
  network.file = document.file;
  if (auto measured = map.optional("measured")) network.measured = measured->text_or_empty();
  for (const Field& item : map.required("links").items()) network.links.push_back(read_link(item));
  if (auto collectives = map.optional("collectives")) {
    for (const Field& item : collectives->items()) network.collectives.push_back(read_collective(item));
  }
  return network;
}

NetworkFile parse_network_file(const std::string& json, const std::string& file_name) {
  return read_network_file(parse_json(json, file_name));
}

NetworkFile load_network_file(const std::string& path) {
  return parse_network_file(read_text_file(path), path);
}

std::string to_json(const NetworkFile& network) {
  std::vector<std::string> links, collectives;
  for (const NetworkFile::Link& link : network.links) links.push_back(link_text(link));
  for (const NetworkFile::Collective& c : network.collectives) collectives.push_back(collective_text(c));
  std::string text = "{\n  \"sailor_network_profile\": 1,\n  \"measured\": " + Json(network.measured).dump() +
                     ",\n  \"links\": " + lines(links, "    ");
  if (!collectives.empty()) text += ",\n  \"collectives\": " + lines(collectives, "    ");
  return text + "\n}\n";
}

void save_network_file(const NetworkFile& network, const std::string& path) {
  write_file_atomically(path, to_json(network));
}

NetworkProfile to_profile(const NetworkFile& network) {
  NetworkProfile profile;
  profile.file = network.file;
  for (const NetworkFile::Link& link : network.links) {
    if (link.has_curve()) profile.add({link.from, link.to, link.scope, link.curve()});
  }
  return profile;
}

NetworkProfile to_profile(const NetworkFile& network, Transport transport) {
  NetworkFile applicable = network;
  std::erase_if(applicable.links,
                [&](const auto& link) { return link.transport.value_or(transport) != transport; });
  std::stable_partition(applicable.links.begin(), applicable.links.end(),
                        [](const auto& link) { return link.transport.has_value(); });
  return to_profile(applicable);
}

}  // namespace sailor
