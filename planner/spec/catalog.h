// The catalog of GPU types: hardware facts that hold in every cluster. GPU types are data, never code: a type
// that is added to a catalog file is planned like any other. Value type; immutable after loading.
//
//     sailor_catalog: 1
//     gpu_types:
//       NAME: {memory: 40GiB, peak_flops: {fp32: 19.5e12, bf16: 312e12}, memory_bandwidth: 1555GB/s,
//              compute_units: 108, base_memory: 1.5GiB, usd_per_hour: 3.67, spot_usd_per_hour: 1.5,
//              efficiency: {gemm: 0.9},
//              watts: {idle: 60, busy: 400}, node: {link: 212GB/s, cards: 4, card: 25GB/s, host: 11GB/s}}
//       OTHER: {memory: 1GiB, emulate: {profile: cpu, slowdown: 40}, usd_per_hour: 1.0}
//       cpu: {memory: 2GiB, device: cpu}
//     links:
//       - {scope: intra_node, from: NAME, to: NAME, latency: 2us, rate: 200GB/s}
//       - {scope: inter_node, latency: 10us, rate: 12.5GB/s, node_rate: 12.5GB/s}
//       - {scope: inter_zone, latency: 1ms, rate: 2.5GB/s, node_rate: 2.5GB/s}      # of one region
//       - {scope: inter_region, latency: 30ms, rate: 0.6GB/s, node_rate: 0.6GB/s}
//
// A site's catalog adds to the installed one, which is built in: a type replaces the one of the same name,
// and a scope of which it lists links is described by it alone.
//
// `links` and `node` are used for links without a measurement. `node` says what nodes of the type usually
// have: the rate of a link between two of its GPUs, and network cards with the rate of each. Between unlike
// nodes the slower card and the smaller sum of cards count. `host` is the rate between a GPU and the node's
// memory, each way, while all GPUs of the node transfer both ways; without it stages on the type offload
// nothing (spec/offload.h). intra_node and inter_node are within a zone.
//
// peak_flops names the precisions that a type's matrix units compute in. fp16 is that of bf16 where only bf16
// is named. A type without a precision has no estimate for it.
//
// `device: cpu` declares ranks that compute on processors and communicate over sockets.
// `emulate` declares the same of a GPU type without a real device: a rank computes on the CPU and then waits
// until `slowdown` times the profile named `profile` has passed. Its layer profile is derived the same way
// (profile/profile_set.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/precision.h"

namespace sailor {

class Field;

struct Emulation {
  std::string profile;    // GPU type whose measured profile is scaled
  double slowdown = 1.0;  // > 0
};

// The fraction of its data sheet that a GPU reaches, by kind of kernel (profile/kernels.h). The defaults are
// typical for current data-centre GPUs; calibrations against measured runs give values per type.
struct GpuEfficiency {
  double gemm = 0.77;           // of peak_flops, large products
  double gemm_half_depth = 64;  // depth of a product that takes as long as prologue and epilogue of a tile
  double memory = 0.69;         // of memory_bandwidth, element-wise kernels
  double unaligned = 0.4;       // products whose sizes are not a multiple of a vector
  double attention = 0.43;      // of `gemm`, fused attention kernels
};

// Power of one GPU. read_power() checks the values and their order.
struct GpuPower {
  double idle_watts = 0;  // while it waits for others, at full clocks
  double busy_watts = 0;  // while it computes, >= idle_watts
};

// What nodes of a type usually have.
struct TypicalNode {
  double link_bytes_per_s = 0;  // between two GPUs; 0 = not said
  double link_latency_s = 0;
  int cards = 0;  // network cards; 0 = not said
  double card_bytes_per_s = 0;
  double card_latency_s = 0;
  double host_bytes_per_s = 0;  // each way between a GPU and the node's memory; 0 = not said
};

struct GpuType {
  std::string name;
  int64_t memory_bytes = 0;
  std::map<std::string, double> peak_flops;  // by precision, FLOP/s
  double memory_bandwidth_bytes_per_s = 0;   // 0 = unknown
  int compute_units = 0;                     // streaming multiprocessors; 0 = unknown
  int64_t base_memory_bytes = 0;             // memory of a process before any tensor, if not measured
  GpuEfficiency efficiency;
  // One GPU, on demand and spot; nothing = unknown. Prices of a snapshot override them.
  std::optional<double> usd_per_hour, spot_usd_per_hour;
  std::optional<GpuPower> power;  // nothing = unknown
  std::optional<Emulation> emulation;
  bool on_processors = false;  // ranks compute on processors, emulated types included
  TypicalNode node;

  // FLOP/s of its matrix units at a precision; nothing if they lack it, or it is not known.
  std::optional<double> flops(Precision precision) const;
  // It is known what its matrix units have, and this is not among it.
  bool lacks(Precision precision) const { return !peak_flops.empty() && !flops(precision); }
};

// The type whose measured profile is used for `type`, named `name` in the catalog: the one that emulates it,
// or itself.
inline const std::string& profiled_as(const std::string& name, const GpuType& type) {
  return type.emulation ? type.emulation->profile : name;
}

// Assumed values of a link without a measurement.
struct AssumedLink {
  enum class Scope { intra_node, inter_node, inter_zone, inter_region };

  std::string from, to;  // GPU types; empty = any
  Scope scope = Scope::inter_node;
  double latency_s = 0;
  double bytes_per_s = 0;       // of one GPU
  double node_bytes_per_s = 0;  // of all GPUs of a node together; 0 = no limit
};

struct Catalog {
  std::string file;
  std::map<std::string, GpuType> gpu_types;
  std::vector<AssumedLink> links;

  // Throws InputError naming the nearest known type and the catalog's file.
  const GpuType& at(const std::string& gpu_type) const;
};

GpuPower read_power(const Field& field);  // of `watts`; throws InputError
// The installed catalog, to which the file at `path` adds; alone if `path` is empty.
Catalog load_catalog(const std::string& path);
// The types and links of one file alone.
Catalog parse_catalog(const std::string& yaml, const std::string& file_name);
// Reading it back gives the same catalog.
std::string to_yaml(const Catalog& catalog);

}  // namespace sailor
