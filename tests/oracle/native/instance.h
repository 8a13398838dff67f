// Tiny random problems for the native cost model: few layers, GPUs and microbatch sizes, so that every plan
// can be enumerated.
//
// Layer times and sizes are the planner's estimates for a small GPT-2-like or Llama-like model on types of a
// catalog; only one or two microbatch sizes are profiled. Memory ranges from ample to so tight that it
// requires stages, recomputation or ZeRO-1. Nodes have one to four free GPUs; links between nodes range from
// 1 Gbit/s, so that messages matter, to 400 Gbit/s. Half of them are predicted with NCCL, half with sockets.
// An instance depends on its seed, its number, the limits and the catalog.
#pragma once

#include "tests/oracle/product.h"

namespace sailor::oracle {

// Maxima of an instance.
struct NativeLimits {
  int gpus = 8;  // free ones
  int types = 2;
  int zones = 2;
  int layers = 6;  // embedding and head included; at least 3
};

PlannerInputs native_instance(const Catalog& catalog, uint64_t seed, int number, const NativeLimits& limits);

}  // namespace sailor::oracle
