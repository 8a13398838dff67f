#include "planner/profile/host_link.h"

#include <algorithm>

namespace sailor {

HostLink host_link(const GpuType& type) {
  return {type.node.host_bytes_per_s, type.memory_bandwidth_bytes_per_s};
}

double host_s(const LayerTimes& block, const HostLink& link, double input_bytes) {
  if (link.bytes_per_s <= 0) return 0;
  const double copy_s = input_bytes / link.bytes_per_s;
  const double memory_s = link.memory_bytes_per_s > 0 ? 2 * input_bytes / link.memory_bytes_per_s : 0;
  return std::max(0.0, copy_s - block.forward_s) +
         std::max(0.0, copy_s - block.forward_s - block.backward_s) + memory_s;
}

}  // namespace sailor
