// Fits the curve of a link for the planner to measured messages. Pure.
//
// Guarantees of the curve, for any measurements:
// - a larger message never takes less time (pool adjacent violators, weighted by precision);
// - no message of any size is faster than the largest measured bandwidth, bytes / seconds, so that sizes
//   beyond the largest message are not extrapolated too optimistically;
// - 0 <= latency <= the time of the smallest message.
//
// A link whose largest messages are still dominated by latency therefore looks slower than it is: probe with
// larger ones.
#pragma once

#include <vector>

#include "planner/profile/network_file.h"

namespace sailor {

struct LinkFit {
  // seconds = latency_s + bytes / bytes_per_s, accurate at both ends: the bandwidth is that of a line through
  // the three largest sizes (least squares of relative residuals, weighted by precision), the latency is the
  // time of the smallest size without its bytes. Caches and buffers affect the sizes in between; the points
  // show that.
  double latency_s = 0;
  double bytes_per_s = 0;
  std::vector<std::pair<double, double>> points;  // bytes, seconds at the measured sizes

  // The line's value for one size; measurements differ by the residual.
  double line_s(double bytes) const { return latency_s + bytes / bytes_per_s; }
};

// `messages` in any order, with distinct sizes and seconds > 0, at least one. Ignores their `pairs`.
LinkFit fit_link(std::vector<NetworkMeasurement> messages);

// Messages that this number of pairs exchanged concurrently.
std::vector<NetworkMeasurement> of_pairs(const std::vector<NetworkMeasurement>& messages, int pairs);

// Sets the curve of a link from its messages: points, latency and rate from those of single pairs, the rate
// of the node from those of the largest number of pairs. Without messages of single pairs the link has no
// curve.
void fit_curve(NetworkFile::Link& link);

}  // namespace sailor
