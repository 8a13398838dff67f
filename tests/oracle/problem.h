// A small planning problem as plain numbers, the input of the exhaustive enumeration.
//
// Nothing here comes from the planner, so that the enumeration shares no code with the code under test;
// product.h translates a problem to the planner's own types. Value types. Invariants (kept by generate.h):
// nodes, cells and links refer to types and zones by index; every pair of ends has a link, on which larger
// messages take longer; zones of one region may share a data-parallel stage.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sailor::oracle {

// Seconds that a message takes, by its size.
struct Curve {
  std::array<double, 3> fit{};                    // GB/s = a m^2 + b m + c, m = log2(bytes / 1e6)
  std::vector<std::pair<double, double>> points;  // [bytes, seconds], bytes ascending; if given, no fit

  double seconds(double bytes) const;
};

// One end of a link: `gpus` GPUs of one node.
struct End {
  int type, zone, gpus;
  auto operator<=>(const End&) const = default;
};

struct LayerTime {
  double forward_s, backward_s, update_s;
};

// Of one GPU of a tensor-parallel group, for one sequence; elements are floats of 4 bytes.
struct LayerSize {
  int64_t parameters, output_elements, activation_elements;
};

struct TypeOfGpu {
  std::string name;
  int64_t memory_bytes = 0;
  std::map<std::pair<int, int>, std::vector<LayerTime>> times;  // by (microbatch, tp); absent = not profiled
  int max_gpus = -1;                                            // in all zones together; -1 = no limit
};

struct ZoneOfCluster {
  std::string name;
  int region = 0;
  bool wanted = true;  // the job may use it
};

struct NodeOfCluster {
  std::string name;
  int type = 0, zone = 0, gpus = 0;
  std::vector<int> free;  // indices of free GPUs
};

struct Problem {
  int layers = 0;  // embedding and head included
  int64_t global_batch = 0;
  std::vector<TypeOfGpu> types;
  std::vector<ZoneOfCluster> zones;
  std::vector<NodeOfCluster> nodes;
  std::map<int, std::vector<LayerSize>> sizes;         // by tp; tp 1 is always there
  std::vector<std::vector<double>> usd_per_hour;       // [type][zone], one GPU
  std::vector<std::vector<double>> egress_usd_per_gb;  // [from zone][to zone]
  std::map<std::pair<End, End>, Curve> links;          // [sender, receiver]
  // The links are fits and layers may all differ, as in the reference data's files; else the links are points
  // and all layers but the first and the last are equal, as in the product's own files.
  bool reference_files = false;
};

// One replica of one stage.
struct Cell {
  int type = 0, zone = 0, tp = 1;
  auto operator<=>(const Cell&) const = default;
};

// A plan of the paper's search space: one microbatch size, one layer split, the same number of replicas of
// every stage.
struct GridPlan {
  int microbatch = 0;
  std::vector<int> cuts;                     // P + 1 layer indices, from 0 to the number of layers
  std::vector<std::vector<Cell>> pipelines;  // [replica][stage]; their order matters

  int stages() const { return static_cast<int>(cuts.size()) - 1; }
  int replicas() const { return static_cast<int>(pipelines.size()); }
};

// `2 pipelines of 4: [0,3) a/z1 tp2, [3,8) b/z1 tp1 | ...`, for people.
std::string to_string(const Problem& problem, const GridPlan& plan);

}  // namespace sailor::oracle
