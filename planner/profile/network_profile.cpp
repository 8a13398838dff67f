#include "planner/profile/network_profile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "planner/profile/profile_reader.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

// Bits of a mask, least telling first: of combinations with equally many bits the larger mask is tried first.
enum : unsigned {
  kToType = 1,
  kFromType = 2,
  kToZone = 4,
  kFromZone = 8,
  kToGpus = 16,
  kFromGpus = 32,
  kScope = 64,
};

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdULL;
}

uint64_t hash_of(unsigned mask, const LinkEnd& from, const LinkEnd& to, NetworkProfile::Scope scope) {
  std::hash<std::string> text;
  uint64_t hash = mask;
  if (mask & kFromType) hash = mix(hash, text(from.gpu_type));
  if (mask & kFromZone) hash = mix(hash, text(from.zone));
  if (mask & kFromGpus) hash = mix(hash, static_cast<uint64_t>(from.gpus));
  if (mask & kToType) hash = mix(hash, text(to.gpu_type));
  if (mask & kToZone) hash = mix(hash, text(to.zone));
  if (mask & kToGpus) hash = mix(hash, static_cast<uint64_t>(to.gpus));
  if (mask & kScope) hash = mix(hash, static_cast<uint64_t>(scope));
  return hash;
}

unsigned mask_of(const NetworkProfile::Link& link) {
  unsigned mask = 0;
  if (!link.from.gpu_type.empty()) mask |= kFromType;
  if (!link.from.zone.empty()) mask |= kFromZone;
  if (link.from.gpus != 0) mask |= kFromGpus;
  if (!link.to.gpu_type.empty()) mask |= kToType;
  if (!link.to.zone.empty()) mask |= kToZone;
  if (link.to.gpus != 0) mask |= kToGpus;
  if (link.scope != NetworkProfile::Scope::any) mask |= kScope;
  return mask;
}

bool same_end(const LinkEnd& given, const LinkEnd& asked) {
  return (given.gpu_type.empty() || given.gpu_type == asked.gpu_type) &&
         (given.zone.empty() || given.zone == asked.zone) && (given.gpus == 0 || given.gpus == asked.gpus);
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

LinkCurve read_points(const Field& field) {
  std::vector<std::pair<double, double>> points;
  for (const Field& item : field.items()) {
    std::vector<Field> pair = item.items();
    if (pair.size() != 2) item.fail("must be [BYTES, SECONDS]");
    points.emplace_back(pair[0].positive(), pair[1].positive());
    if (points.size() > 1 && points.back().first <= points[points.size() - 2].first) {
      item.fail("bytes must ascend from point to point");
    }
  }
  if (points.empty()) field.fail("a link needs at least one point");
  return LinkCurve::from_points(std::move(points));
}

LinkCurve read_curve(const MapField& link) {
  const auto rate = link.optional("bytes_per_s"), latency = link.optional("latency_s"),
             node_rate = link.optional("node_bytes_per_s");
  if (!rate) {
    if (latency || node_rate)
      link.fail("\"latency_s\" and \"node_bytes_per_s\" need \"bytes_per_s\" beside them");
    return read_points(link.required("points"));
  }
  if (const auto points = link.optional("points"))
    points->fail("either \"points\" or \"bytes_per_s\", not both");
  return LinkCurve::from_rates(latency ? latency->non_negative() : 0, rate->positive(),
                               node_rate ? node_rate->positive() : 0);
}

}  // namespace

LinkCurve LinkCurve::from_points(std::vector<std::pair<double, double>> bytes_and_s) {
  if (bytes_and_s.empty()) throw std::invalid_argument("LinkCurve: no points");
  LinkCurve curve;
  curve.points_ = std::move(bytes_and_s);
  return curve;
}

LinkCurve LinkCurve::from_fit(std::array<double, 3> coefficients, int gpus) {
  LinkCurve curve;
  curve.fit_gpus_ = gpus;
  curve.fit_ = coefficients;
  return curve;
}

LinkCurve LinkCurve::from_rates(double latency_s, double bytes_per_s, double node_bytes_per_s) {
  if (!(latency_s >= 0) || !(bytes_per_s > 0) || !(node_bytes_per_s >= 0))
    throw std::invalid_argument("LinkCurve: a rate is not positive or the latency is negative");
  LinkCurve curve;
  curve.latency_s_ = latency_s;
  curve.bytes_per_s_ = bytes_per_s;
  curve.node_bytes_per_s_ = node_bytes_per_s;
  return curve;
}

double LinkCurve::fit_gb_per_s(double bytes) const {
  const auto rate = [&](double size) {
    const double m = std::log2(size / 1e6);
    return fit_[0] * m * m + fit_[1] * m + fit_[2];
  };
  const double at_size = rate(bytes);
  return at_size > 0 ? at_size : rate(65536);
}

double LinkCurve::published_time_s(double bytes) const {
  if (!(bytes > 0)) return 0;
  return points_.empty() && !(bytes_per_s_ > 0) ? bytes / 1e9 / fit_gb_per_s(bytes) : time_s(bytes);
}

double LinkCurve::latency_s() const {
  if (bytes_per_s_ > 0) return latency_s_;
  if (points_.size() < 2) return 0;
  // Where the line through the first two points meets a message of no bytes.
  const auto [bytes_0, seconds_0] = points_[0];
  const auto [bytes_1, seconds_1] = points_[1];
  return std::max(0.0, seconds_0 - bytes_0 * (seconds_1 - seconds_0) / (bytes_1 - bytes_0));
}

double LinkCurve::time_s(double bytes, double senders) const {
  if (!(bytes > 0)) return 0;
  if (bytes_per_s_ > 0) {
    double rate = bytes_per_s_;
    if (node_bytes_per_s_ > 0) rate = std::min(rate, node_bytes_per_s_ / senders);
    return latency_s_ + bytes / rate;
  }
  if (points_.empty()) return bytes * fit_gpus_ / 1e9 / fit_gb_per_s(bytes);
  auto above = std::lower_bound(points_.begin(), points_.end(), bytes,
                                [](const auto& point, double size) { return point.first < size; });
  if (above == points_.begin()) return points_.front().second;
  if (points_.size() == 1) return points_[0].second * bytes / points_[0].first;
  if (above == points_.end()) {
    // At the bandwidth of the last two points; noise must not make a larger message faster.
    auto [bytes_0, seconds_0] = points_[points_.size() - 2];
    auto [bytes_1, seconds_1] = points_.back();
    double slope = (seconds_1 - seconds_0) / (bytes_1 - bytes_0);
    if (!(slope > 0)) slope = seconds_1 / bytes_1;
    return seconds_1 + slope * (bytes - bytes_1);
  }
  auto [bytes_0, seconds_0] = *(above - 1);
  auto [bytes_1, seconds_1] = *above;
  return seconds_0 + (seconds_1 - seconds_0) * (bytes - bytes_0) / (bytes_1 - bytes_0);
}

const NetworkProfile::Link* NetworkProfile::find(unsigned mask, const LinkEnd& from, const LinkEnd& to,
                                                 Scope scope) const {
  // Equal keys keep the order of insertion among themselves only loosely, so the smallest position is taken.
  const Link* best = nullptr;
  auto [begin, end] = index_.equal_range(hash_of(mask, from, to, scope));
  for (auto it = begin; it != end; ++it) {
    const Link& link = links_[it->second];
    bool fits = mask_of(link) == mask && same_end(link.from, from) && same_end(link.to, to) &&
                (link.scope == Scope::any || link.scope == scope);
    if (fits && (best == nullptr || &link < best)) best = &link;
  }
  return best;
}

const LinkCurve* NetworkProfile::find(const LinkEnd& from, const LinkEnd& to, bool same_node) const {
  Scope scope = same_node ? Scope::intra_node : Scope::inter_node;
  // Combinations with equally many properties together: the direction as given first, then the other one.
  for (auto group = masks_.begin(); group != masks_.end();) {
    auto end = std::find_if(group, masks_.end(),
                            [&](unsigned mask) { return std::popcount(mask) != std::popcount(*group); });
    for (auto mask = group; mask != end; ++mask) {
      if (const Link* link = find(*mask, from, to, scope)) return &link->curve;
    }
    for (auto mask = group; mask != end; ++mask) {
      if (const Link* link = find(*mask, to, from, scope)) return &link->curve;
    }
    group = end;
  }
  return nullptr;
}

void NetworkProfile::add(Link link) {
  unsigned mask = mask_of(link);
  if (std::find(masks_.begin(), masks_.end(), mask) == masks_.end()) {
    masks_.push_back(mask);
    std::sort(masks_.begin(), masks_.end(), [](unsigned a, unsigned b) {
      return std::pair(std::popcount(a), a) > std::pair(std::popcount(b), b);
    });
  }
  index_.emplace(hash_of(mask, link.from, link.to, link.scope), links_.size());
  links_.push_back(std::move(link));
}

void NetworkProfile::add(const NetworkProfile& other) {
  for (const Link& link : other.links_) add(link);
}

NetworkProfile read_network_profile(const Document& document) {
  MapField map(Field(document), {"sailor_network_profile", "measured", "links"});
  require_version(map, "sailor_network_profile", 1);
  if (auto measured = map.optional("measured")) measured->text_or_empty();
  NetworkProfile profile;
  profile.file = document.file;
  for (const Field& item : map.required("links").items()) {
    MapField link(item, {"from", "to", "scope", "points", "latency_s", "bytes_per_s", "node_bytes_per_s"});
    NetworkProfile::Scope scope = NetworkProfile::Scope::any;
    if (auto word = link.optional("scope")) {
      scope = static_cast<NetworkProfile::Scope>(word->choice({"any", "intra_node", "inter_node"}));
    }
    profile.add({read_end(link.optional("from")), read_end(link.optional("to")), scope, read_curve(link)});
  }
  return profile;
}

NetworkProfile parse_network_profile(const std::string& json, const std::string& file_name) {
  return read_network_profile(parse_json(json, file_name));
}

NetworkProfile load_network_profile(const std::string& path) {
  return parse_network_profile(read_text_file(path), path);
}

}  // namespace sailor
