#include "planner/profile/network_profile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "planner/profile/network_file.h"
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

}  // namespace

LinkCurve LinkCurve::from_points(std::vector<std::pair<double, double>> bytes_and_s,
                                 std::optional<double> latency_s, double bytes_per_s,
                                 double node_bytes_per_s) {
  if (bytes_and_s.empty()) throw std::invalid_argument("LinkCurve: no points");
  LinkCurve curve;
  curve.points_ = std::move(bytes_and_s);
  // Where the line through the first two points meets a message of no bytes.
  if (!latency_s && curve.points_.size() >= 2) {
    const auto [bytes_0, seconds_0] = curve.points_[0];
    const auto [bytes_1, seconds_1] = curve.points_[1];
    latency_s = std::max(0.0, seconds_0 - bytes_0 * (seconds_1 - seconds_0) / (bytes_1 - bytes_0));
  }
  curve.latency_s_ = latency_s.value_or(0);
  curve.bytes_per_s_ = bytes_per_s;
  curve.node_bytes_per_s_ = node_bytes_per_s;
  if (!(curve.latency_s_ >= 0) || !(bytes_per_s >= 0) || !(node_bytes_per_s >= 0))
    throw std::invalid_argument("LinkCurve: a rate or the latency is negative");
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

double LinkCurve::time_s(double bytes, double senders) const {
  if (!(bytes > 0)) return 0;
  if (!points_.empty()) {
    const double alone_s = points_time_s(bytes);
    if (!(node_bytes_per_s_ > 0) || !(senders > 1)) return alone_s;
    return std::max(alone_s, latency_s_ + bytes * senders / node_bytes_per_s_);
  }
  if (bytes_per_s_ > 0) {
    double rate = bytes_per_s_;
    if (node_bytes_per_s_ > 0) rate = std::min(rate, node_bytes_per_s_ / senders);
    return latency_s_ + bytes / rate;
  }
  return bytes * fit_gpus_ / 1e9 / fit_gb_per_s(bytes);
}

void LinkCurve::set_steps(double latency_s, double bytes_per_s) {
  if (!(latency_s >= 0) || !(bytes_per_s > 0))
    throw std::invalid_argument("LinkCurve: the rate of steps is not positive or their latency is negative");
  step_latency_s_ = latency_s;
  step_bytes_per_s_ = bytes_per_s;
}

double LinkCurve::step_transfer_s(double bytes, double senders) const {
  if (!(step_bytes_per_s_ > 0)) return time_s(bytes, senders) - latency_s_;
  double rate = step_bytes_per_s_;
  if (node_bytes_per_s_ > 0) rate = std::min(rate, node_bytes_per_s_ / senders);
  return bytes / rate;
}

double LinkCurve::points_time_s(double bytes) const {
  auto above = std::lower_bound(points_.begin(), points_.end(), bytes,
                                [](const auto& point, double size) { return point.first < size; });
  if (above == points_.begin()) return points_.front().second;
  if (above == points_.end()) {
    auto [bytes_1, seconds_1] = points_.back();
    if (bytes_per_s_ > 0) return seconds_1 + (bytes - bytes_1) / bytes_per_s_;
    if (points_.size() == 1) return seconds_1 * bytes / bytes_1;
    // At the bandwidth of the last two points; noise must not make a larger message faster.
    auto [bytes_0, seconds_0] = points_[points_.size() - 2];
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
  const LinkCurve* added = find_added(from, to, same_node);
  if (added != nullptr) return added;
  const auto& assumed = assumed_[static_cast<size_t>(reach(from.zone, to.zone))];
  return assumed ? assumed->find(from, to, same_node) : nullptr;
}

bool NetworkProfile::is_assumed(const LinkEnd& from, const LinkEnd& to, bool same_node) const {
  return find(from, to, same_node) != find_added(from, to, same_node);
}

void NetworkProfile::assume(NetworkProfile other, Reach reach) {
  assumed_[static_cast<size_t>(reach)] = std::make_shared<const NetworkProfile>(std::move(other));
}

NetworkProfile::Reach NetworkProfile::reach(const std::string& zone, const std::string& other) const {
  if (zone == other) return Reach::zone;
  const auto a = region_of_.find(zone), b = region_of_.find(other);
  return a != region_of_.end() && b != region_of_.end() && a->second == b->second ? Reach::region
                                                                                  : Reach::world;
}

const LinkCurve* NetworkProfile::find_added(const LinkEnd& from, const LinkEnd& to, bool same_node) const {
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

NetworkProfile parse_network_profile(const std::string& json, const std::string& file_name) {
  return to_profile(parse_network_file(json, file_name));
}

NetworkProfile load_network_profile(const std::string& path) {
  return parse_network_profile(read_text_file(path), path);
}

}  // namespace sailor
