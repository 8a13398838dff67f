// The time that offloaded inputs of blocks take on the link between a GPU and the memory of its node. Pure.
#pragma once

#include "planner/profile/layer_profile.h"
#include "planner/spec/catalog.h"

namespace sailor {

struct HostLink {
  double bytes_per_s = 0;         // each way; 0: unknown
  double memory_bytes_per_s = 0;  // of the GPU's memory, which both ways pass; 0: unknown
};
HostLink host_link(const GpuType& type);

// LayerTimes::host_s of a block whose input has that many bytes: how much longer the copy to the node takes
// than the forward beside it, and the copy back than the backward; and what both take of the bandwidth of the
// GPU's memory. Added to the backward, where most of it is. 0 if the link is unknown: nothing is offloaded
// then.
double host_s(const LayerTimes& block, const HostLink& link, double input_bytes);

}  // namespace sailor
