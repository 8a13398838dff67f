#include "profiler/links/ring_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/profile/collectives.h"
#include "profiler/links/link_fit.h"

namespace sailor {
namespace {

using Scope = NetworkProfile::Scope;
using Collective = NetworkFile::Collective;

constexpr size_t kLeastSizes = 3;
constexpr double kLarge_bytes = 1e9;

// Members as probe_series.h writes them.
std::string member_text(int count, const LinkEnd& kind) {
  return fmt::format("{} x {}{}{}", count, kind.gpu_type, kind.zone.empty() ? "" : " in ", kind.zone);
}

// Its inverse, without the count; nothing for text of another form.
std::optional<LinkEnd> kind_of_member(const std::string& text) {
  const size_t times = text.find(" x ");
  if (times == std::string::npos) return std::nullopt;
  const std::string kind = text.substr(times + 3);
  const size_t in = kind.find(" in ");
  return LinkEnd{kind.substr(0, in), in == std::string::npos ? "" : kind.substr(in + 4), 1};
}

// The slowest link between two of the kinds; nullptr if one is missing.
const LinkCurve* slowest_link(const NetworkProfile& links, const std::vector<LinkEnd>& kinds,
                              bool same_node) {
  const LinkCurve* slowest = nullptr;
  const auto step_s = [](const LinkCurve& link) { return link.step_transfer_s(kLarge_bytes, 1); };
  for (const LinkEnd& a : kinds)
    for (const LinkEnd& b : kinds) {
      // A node has GPUs of one kind; between nodes a kind may have a single node.
      const bool alike = a.gpu_type == b.gpu_type && a.zone == b.zone;
      if (same_node && !alike) continue;
      const LinkCurve* link = links.find(a, b, same_node);
      if (link == nullptr && alike && kinds.size() > 1 && !same_node) continue;
      if (link == nullptr) return nullptr;
      if (slowest == nullptr || step_s(*link) > step_s(*slowest)) slowest = link;
    }
  return slowest;
}

// The all-reduce that shows the steps along this link alone.
const Collective* all_reduce_along(const NetworkFile& network, const NetworkFile::Link& link) {
  const Collective* best = nullptr;
  for (const Collective& c : network.collectives) {
    const bool along = link.scope == Scope::intra_node ? c.nodes == 1 : c.nodes > 1 && c.nodes == c.ranks;
    if (!along || c.operation != "all_reduce" || c.transport != Transport::nccl || c.ranks < 2) continue;
    if (c.members != std::vector{member_text(c.ranks, link.from)}) continue;
    if (c.measurements.size() >= kLeastSizes && (best == nullptr || c.ranks > best->ranks)) best = &c;
  }
  return best;
}

}  // namespace

std::optional<double> ring_time_s(const NetworkFile& network, const Collective& collective, double bytes) {
  if (collective.transport != Transport::nccl || collective.operation == "broadcast") return std::nullopt;
  std::vector<LinkEnd> kinds;
  for (const std::string& member : collective.members) {
    const std::optional<LinkEnd> kind = kind_of_member(member);
    if (!kind) return std::nullopt;
    kinds.push_back(*kind);
  }
  const NetworkProfile links = to_profile(network, Transport::nccl);
  Ring ring{collective.ranks, collective.nodes, 1, nullptr, nullptr};
  if (ring.nodes < ring.ranks) ring.intra = slowest_link(links, kinds, true);
  if (ring.nodes > 1) ring.inter = slowest_link(links, kinds, false);
  if ((ring.nodes < ring.ranks && ring.intra == nullptr) || (ring.nodes > 1 && ring.inter == nullptr))
    return std::nullopt;
  return collective.operation == "all_reduce" ? all_reduce_s(ring, bytes) : ring_pass_s(ring, bytes);
}

void fit_steps(NetworkFile& network) {
  for (NetworkFile::Link& link : network.links) {
    const bool alike = link.from.gpu_type == link.to.gpu_type && link.from.zone == link.to.zone;
    if (link.transport != Transport::nccl || !alike || !link.has_curve()) continue;
    const Collective* measured = all_reduce_along(network, link);
    if (measured == nullptr) continue;
    // 2 (n - 1) steps, each of 1 / n of the bytes.
    std::vector<NetworkMeasurement> steps = measured->measurements;
    for (NetworkMeasurement& step : steps) {
      step.bytes /= measured->ranks;
      step.seconds /= 2 * (measured->ranks - 1);
    }
    const LinkFit fit = fit_link(std::move(steps));
    link.step_latency_s = fit.latency_s;
    link.step_bytes_per_s = fit.bytes_per_s;
  }
}

}  // namespace sailor
