#include "planner/search/native/work_limits.h"

#include <algorithm>
#include <cmath>

namespace sailor::native {
namespace {

constexpr int kWorkBisections = 30;
constexpr double kLimitRounding = 1 + 1e-9;

}  // namespace

WorkLimits::WorkLimits(const Space& space, const std::set<std::string>& zones) {
  const bool mesh = space.context.framework.sums == FrameworkStyle::Sums::mesh;
  std::map<std::string, int> supplies;  // numbered as in GroupWays
  std::map<std::string, size_t> numbers;
  for (size_t p = 0; p < space.pools.size(); ++p) {
    const SpacePool& pool = space.pools[p];
    const Pool& of = space.resources.pools[p];
    if (pool.joint || pool.options.empty() || !zones.contains(of.zone)) continue;
    const int supply = supplies.try_emplace(of.gpu_type, static_cast<int>(supplies.size())).first->second;
    const auto [zone, added] = numbers.try_emplace(of.zone, zones_.size());
    if (added) zones_.push_back({{0, kNever, kNever, kNever}, {}});
    Zone& in = zones_[zone->second];
    const auto nodes = static_cast<double>(pool.nodes.size());
    in.border.nodes += nodes;
    in.nodes.push_back({supply, static_cast<double>(pool.gpus), nodes});
  }
  for (const SpaceOption& from : space.options)
    for (const SpaceOption& to : space.options) {
      const std::string &zone = space.kinds[from.kind].zone, &other = space.kinds[to.kind].zone;
      if (zone == other || !numbers.contains(zone) || !zones.contains(other)) continue;
      const LinkCurve* link = space.kinds.find_link(from.kind, to.kind, false);
      if (link == nullptr) continue;
      Border& border = zones_[numbers.at(zone)].border;
      border.card_s = std::min(border.card_s, least_s_per_byte(link, kManySenders));
      border.sum_card_s =
          std::min(border.sum_card_s, mesh ? border.card_s : least_step_s_per_byte(link, kManySenders));
      border.latency_s = std::min(border.latency_s, link->latency_s());
    }
}

double WorkLimits::most_work(const AreaBound& area, const Border& border, double s, const Kind& kind,
                             double microbatches) {
  const GroupWays& ways = area.ways();
  const double message_s = ways.message_bytes * border.card_s;
  // Each direction has its own time. A single pipeline sends more in one of them.
  const bool one = kind.pipelines == 1;
  const double sent = kind.interleave ? (one ? 2 : 1.5) : (one ? 1 : 0.5);
  const double on_link = kind.interleave ? 2 : 1;
  const double crossing = std::min(s * border.nodes / (sent * message_s),
                                   kind.pipelines * s / (on_link * (border.latency_s + message_s)));
  if (crossing >= microbatches) return kNever;
  if (kind.pipelines == 1) return 0;
  const double replicas = kind.pipelines;
  const double bytes = std::max(0.0, s - ways.forward_s) * border.nodes /
                       (ways.phases * (replicas - 1) / replicas * border.sum_card_s) * kLimitRounding;
  const std::array<double, 3>& of = ways.gradient_bytes;
  if (bytes >= of[kFirst] + ways.blocks() * of[kBlock] + of[kLast]) return kNever;
  double most = 0;
  for (const double firsts : {0.0, 1.0})
    for (const double lasts : {0.0, 1.0}) {
      const double left = bytes - firsts * of[kFirst] - lasts * of[kLast];
      if (left < 0) continue;
      const double blocks = std::min<double>(ways.blocks(), std::floor(left / of[kBlock]));
      most = std::max(most, firsts * area.computing_s(kFirst) + blocks * area.computing_s(kBlock) +
                                lasts * area.computing_s(kLast));
    }
  return crossing * most;
}

double WorkLimits::least_s(const AreaBound& area, const Kind& kind, double microbatches) const {
  const GroupWays& ways = area.ways();
  const std::vector<double> prices = ways.prices_by_speed();
  const double work = microbatches * area.computing_s();
  const auto suffices = [&](double s) {
    double all = 0;
    for (const Zone& zone : zones_) {
      double of_zone = 0;
      for (const Nodes& nodes : zone.nodes) {
        const GpuSupply& supply = ways.supplies[static_cast<size_t>(nodes.supply)];
        const double gpus_work = s * nodes.gpus * prices[static_cast<size_t>(nodes.supply)];
        const double node_work =
            most_work(area, {1, supply.card_s, supply.sum_card_s, supply.latency_s}, s, kind, microbatches);
        of_zone += std::min(gpus_work, nodes.nodes * node_work);
      }
      if (zones_.size() > 1) {
        Border border = zone.border;
        border.latency_s *= ways.latency_part;
        of_zone = std::min(of_zone, most_work(area, border, s, kind, microbatches));
      }
      all += of_zone;
    }
    return all >= work;
  };
  double low = work, high = 2 * work;  // the price of all GPUs is 1
  if (suffices(low)) return ways.overhead_s + low;
  while (!suffices(high) && high < 1e6 * work) high *= 2;
  for (int i = 0; i < kWorkBisections; ++i) {
    const double middle = (low + high) / 2;
    (suffices(middle) ? high : low) = middle;
  }
  return ways.overhead_s + low;
}

}  // namespace sailor::native
