// The time of a message between two GPUs or groups of GPUs, from curves fitted to measurements. Value type;
// immutable after loading. Curves are looked up by the ends of a link, most specific entry first.
//
// The product's own file (JSON):
//     {"sailor_network_profile": 1, "measured": "when, where, with what", "links": [
//        {"from": {"gpu_type": "A", "zone": "z1"}, "to": {"gpu_type": "B"}, "scope": "inter_node",
//         "points": [[4096, 2.1e-5], [1048576, 1.0e-3], ...]}]}        # [bytes, seconds], bytes ascending
// An absent gpu_type, zone or gpus (GPUs of one node that send together) matches any. scope: intra_node |
// inter_node | any. Links are symmetric unless both directions are listed. The most specific link wins; of
// equals, the one that was added first. Instead of, or in addition to, "points" a link may have "latency_s",
// "bytes_per_s" (one GPU) and "node_bytes_per_s" (all GPUs of a node together; absent = no limit).
// "transport": nccl | sockets is what it was measured over; such a link applies only to ranks that
// communicate over it. network_file.h describes the whole file, with the measurements behind the curves.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sailor {

// One end of a message: `gpus` GPUs of one node send or receive it together.
struct LinkEnd {
  std::string gpu_type;
  std::string zone;
  int gpus = 1;
};

// Time of a message by its size. One of
// - measured points: linear between them, and the first point's time below it; above them the given
//   bandwidth, or that of the last two points;
// - the published fit: GB/s = a*m^2 + b*m + c with m = log2(bytes / 1e6) (reference COST_MODEL.md). Where
//   that polynomial, fitted to messages of 2^16 bytes and more, is not positive, its value at 2^16 bytes is
//   used;
// - rates: latency + bytes / min(bytes_per_s, node_bytes_per_s / senders).
// Fits, and points without a node rate, apply to the number of concurrently sending GPUs that they were
// measured with, and are used unchanged; the others model how the GPUs of a node share its network cards.
class LinkCurve {
 public:
  // Bytes must ascend. The default latency is where the line through the first two points meets 0 bytes.
  // Rates: 0 = unknown. Throws std::invalid_argument.
  static LinkCurve from_points(std::vector<std::pair<double, double>> bytes_and_s,
                               std::optional<double> latency_s = {}, double bytes_per_s = 0,
                               double node_bytes_per_s = 0);
  // The rate is the sum over the `gpus` GPUs that sent concurrently in the measurement.
  static LinkCurve from_fit(std::array<double, 3> coefficients, int gpus = 1);
  // node_bytes_per_s 0 = no limit.
  static LinkCurve from_rates(double latency_s, double bytes_per_s, double node_bytes_per_s);
  // Steps of collectives differ from messages: a library does all steps in one kernel, with more channels
  // than a message has. Requires latency_s >= 0, bytes_per_s > 0.
  void set_steps(double latency_s, double bytes_per_s);

  // Seconds until each of `senders` GPUs of one node has sent its message of `bytes`; 0 for 0 bytes. Requires
  // bytes >= 0, senders > 0.
  double time_s(double bytes, double senders = 1) const;
  // Time of the smallest message; 0 if unknown.
  double latency_s() const { return latency_s_; }
  // Of a step of a collective in which each of `senders` GPUs of one node sends `bytes` along the link: its
  // latency, and its time beyond that. Those of messages unless set.
  double step_latency_s() const { return step_bytes_per_s_ > 0 ? step_latency_s_ : latency_s_; }
  double step_transfer_s(double bytes, double senders) const;
  // Does the curve know the bandwidth of a node, which may have several network cards?
  bool knows_cards() const { return points_.empty() ? bytes_per_s_ > 0 : node_bytes_per_s_ > 0; }
  // The published formula: `bytes` is the whole tensor, at the rate of a message of that size.
  double published_time_s(double bytes) const;

 private:
  double fit_gb_per_s(double bytes) const;
  double points_time_s(double bytes) const;

  int fit_gpus_ = 1;
  double latency_s_ = 0, bytes_per_s_ = 0, node_bytes_per_s_ = 0;  // 0 = not known
  double step_latency_s_ = 0, step_bytes_per_s_ = 0;               // 0 = as messages
  std::vector<std::pair<double, double>> points_;
  std::array<double, 3> fit_{};
};

class NetworkProfile {
 public:
  std::string file;

  // The curve from one end to the other; nullptr if the pair is neither known nor assumed. `same_node`: both
  // ends are on one node. The pointer is valid as long as the profile.
  const LinkCurve* find(const LinkEnd& from, const LinkEnd& to, bool same_node) const;

  enum class Scope { any, intra_node, inter_node };
  struct Link {
    LinkEnd from, to;  // empty names match any; gpus 0 matches any
    Scope scope = Scope::any;
    LinkCurve curve;
  };
  void add(Link link);
  // Adds all links of another profile, after the existing ones.
  void add(const NetworkProfile& other);
  // Fallbacks of find() for pairs of GPUs that match no added link: GPUs of one zone, of two zones of one
  // region, or of two regions. A zone without a known region is a region of its own.
  enum class Reach { zone, region, world };
  void assume(NetworkProfile other, Reach reach = Reach::zone);
  void set_region(const std::string& zone, const std::string& region) { region_of_[zone] = region; }
  // Is the result of find() an assumption?
  bool is_assumed(const LinkEnd& from, const LinkEnd& to, bool same_node) const;
  bool empty() const { return links_.empty(); }

 private:
  // The combinations of a link's seven properties that occur (bit masks), most specific first. A lookup is
  // one hash probe per combination, independent of the number of links.
  std::vector<unsigned> masks_;
  std::vector<Link> links_;
  std::unordered_multimap<uint64_t, size_t> index_;  // hash of mask and properties -> position in links_

  std::array<std::shared_ptr<const NetworkProfile>, 3> assumed_;  // by reach
  std::map<std::string, std::string> region_of_;                  // by zone

  Reach reach(const std::string& zone, const std::string& other) const;
  const LinkCurve* find_added(const LinkEnd& from, const LinkEnd& to, bool same_node) const;
  const Link* find(unsigned mask, const LinkEnd& from, const LinkEnd& to, Scope scope) const;
};

NetworkProfile load_network_profile(const std::string& path);
NetworkProfile parse_network_profile(const std::string& json, const std::string& file_name);

}  // namespace sailor
