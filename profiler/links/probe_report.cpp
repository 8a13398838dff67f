#include "profiler/links/probe_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "profiler/links/ring_check.h"

namespace sailor {
namespace {

std::string size_text(double bytes) {
  if (bytes >= 1 << 30) return fmt::format("{:.4g} GiB", bytes / (1 << 30));
  if (bytes >= 1 << 20) return fmt::format("{:.4g} MiB", bytes / (1 << 20));
  if (bytes >= 1 << 10) return fmt::format("{:.4g} KiB", bytes / (1 << 10));
  return fmt::format("{:.4g} B", bytes);
}

std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", 1e3 * seconds);
  return fmt::format("{:.1f} us", 1e6 * seconds);
}

std::string rate_text(double bytes_per_s) {
  if (bytes_per_s >= 1e9) return fmt::format("{:.2f} GB/s", 1e-9 * bytes_per_s);
  return fmt::format("{:.2f} MB/s", 1e-6 * bytes_per_s);
}

std::string end_text(const LinkEnd& end) {
  std::string text = end.gpu_type.empty() ? "any GPU" : end.gpu_type;
  if (!end.zone.empty()) text += " in " + end.zone;
  if (end.gpus > 0) text += fmt::format(", {} at once", end.gpus);
  return text;
}

std::string scope_text(NetworkProfile::Scope scope) {
  if (scope == NetworkProfile::Scope::intra_node) return "within a node";
  return scope == NetworkProfile::Scope::inter_node ? "between nodes" : "anywhere";
}

std::string transport_text(std::optional<Transport> transport) {
  return transport ? fmt::format(", over {}", name_of(*transport)) : "";
}

std::string curve_text(const NetworkFile::Link& link) {
  if (!link.has_curve()) return "  not enough measurements to plan with: probe again\n";
  const LinkCurve curve = link.curve();
  // Beyond every point, so that it is the rate there for any kind of curve.
  const double large = 2 * (link.points.empty() ? 1e12 : link.points.back().first);
  const double rate = large / (curve.time_s(2 * large) - curve.time_s(large));
  std::string text = fmt::format("  latency {}, {}", time_text(curve.latency_s()), rate_text(rate));
  if (link.node_bytes_per_s > 0)
    text += fmt::format(", all GPUs of a node together {}", rate_text(link.node_bytes_per_s));
  if (link.step_bytes_per_s > 0)
    text += fmt::format("\n  steps of collectives: latency {}, {}", time_text(link.step_latency_s),
                        rate_text(link.step_bytes_per_s));
  return text + "\n";
}

std::string measurement_row(const NetworkMeasurement& m) {
  return fmt::format("  {:>9} {:>5} {:>12} {:>12} {:>7} {:>7.1f} % {:>8}",
                     size_text(static_cast<double>(m.bytes)), m.pairs, time_text(m.seconds),
                     rate_text(static_cast<double>(m.bytes) * m.pairs / m.seconds), m.samples, 100 * m.error,
                     m.outliers);
}

constexpr const char* kHeading = "       SIZE PAIRS         TIME    BANDWIDTH SAMPLES       +-   OUTLIERS";

}  // namespace

std::string probe_report(const NetworkFile& network) {
  std::string text = network.measured.empty() ? "" : "measured " + network.measured + "\n\n";
  bool unsure = false, rings = false;
  for (const NetworkFile::Link& link : network.links) {
    text += fmt::format("{} -> {}, {}{}\n", end_text(link.from), end_text(link.to), scope_text(link.scope),
                        transport_text(link.transport));
    text += curve_text(link);
    if (!link.measured.empty() && link.measured != network.measured)
      text += "  measured " + link.measured + "\n";
    if (!link.messages.empty()) text += std::string(kHeading) + "     LINE  RESIDUAL\n";
    for (const NetworkMeasurement& m : link.messages) {
      text += measurement_row(m);
      if (link.latency_s && link.bytes_per_s > 0 && link.has_curve()) {
        const double rate = m.pairs > 1 && link.node_bytes_per_s > 0
                                ? std::min(link.bytes_per_s, link.node_bytes_per_s / m.pairs)
                                : link.bytes_per_s;
        const double line_s = *link.latency_s + static_cast<double>(m.bytes) / rate;
        text += fmt::format(" {:>10} {:>+6.1f} %", time_text(line_s), 100 * (m.seconds / line_s - 1));
      }
      text += m.precise ? "\n" : " ~\n";
      unsure = unsure || !m.precise;
    }
    if (link.messages.empty()) {
      for (const auto& [bytes, seconds] : link.points)
        text += fmt::format("  {:>9} {:>18} {:>12}\n", size_text(bytes), time_text(seconds),
                            rate_text(bytes / seconds));
    }
    text += "\n";
  }
  for (const NetworkFile::Collective& c : network.collectives) {
    const bool predicted = ring_time_s(network, c, 1).has_value();
    text += fmt::format("{} of {} ranks on {} node{}{}: {}\n{}{}\n", c.operation, c.ranks, c.nodes,
                        c.nodes > 1 ? "s" : "", transport_text(c.transport), fmt::join(c.members, " + "),
                        kHeading, predicted ? "     RING  RESIDUAL" : "");
    for (const NetworkMeasurement& m : c.measurements) {
      text += measurement_row(m);
      if (const auto ring_s = ring_time_s(network, c, static_cast<double>(m.bytes)))
        text += fmt::format(" {:>10} {:>+6.1f} %", time_text(*ring_s), 100 * (m.seconds / *ring_s - 1));
      text += m.precise ? "\n" : " ~\n";
      rings = rings || predicted;
      unsure = unsure || !m.precise;
    }
    text += "\n";
  }
  if (network.links.empty() && network.collectives.empty()) text += "no measurements yet\n\n";
  text +=
      "TIME is a median, +- half of its 95 % confidence interval, OUTLIERS samples above twice the median, "
      "RESIDUAL\nTIME over LINE: latency + bytes / bandwidth.";

  text += unsure ? " ~ time was up before +- was 2 %.\n" : "\n";
  if (rings) text += "RING is what the planner predicts for a ring from the links over NCCL.\n";
  return text;
}

}  // namespace sailor
