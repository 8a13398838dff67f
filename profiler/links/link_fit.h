// From measured messages to the curve of a link that the planner reads. Pure.
//
// The curve promises, whatever was measured:
// - a larger message never takes less time (pool adjacent violators, weighted by precision);
// - no message, of any size, is faster than at the largest measured bandwidth, bytes / seconds, so that what
//   lies beyond the largest message is no better than what was seen;
// - 0 <= latency <= the time of the smallest message.
// A link whose largest messages still mostly wait for the latency therefore looks slower than it is: probe
// with larger ones.
#pragma once

#include <vector>

#include "planner/profile/network_file.h"

namespace sailor {

struct LinkFit {
  // seconds = latency_s + bytes / bytes_per_s, right at both ends: the bandwidth is that of a line through
  // the three largest sizes (least squares of relative residuals, weighted by precision), the latency what
  // the smallest size takes beside its bytes. In between caches and buffers have their say; the points know
  // it.
  double latency_s = 0;
  double bytes_per_s = 0;
  std::vector<std::pair<double, double>> points;  // bytes, seconds at the measured sizes

  // What the line says of one size; what was measured differs by the residual.
  double line_s(double bytes) const { return latency_s + bytes / bytes_per_s; }
};

// `messages` in any order, sizes distinct, seconds > 0, at least one. Their `pairs` are not looked at.
LinkFit fit_link(std::vector<NetworkMeasurement> messages);

// Those that so many pairs exchanged at once.
std::vector<NetworkMeasurement> of_pairs(const std::vector<NetworkMeasurement>& messages, int pairs);

// Sets the curve of a link from its messages: points, latency and rate from those of single pairs, the rate
// of the node from those of most pairs at once. Without messages of single pairs the link has no curve.
void fit_curve(NetworkFile::Link& link);

}  // namespace sailor
