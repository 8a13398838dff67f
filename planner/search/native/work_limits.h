// How much nodes and zones can compute at most by a time T, as far as their network cards let them take part;
// and so the least time in which all of them compute everything.
//
// Of a node (or a zone of n nodes) that does not compute everything:
//  - Of a layer that it holds not all D replicas of, its cards send (D - 1) / D of the gradients, or more, in
//    every phase, after some forward. So it holds no more than some bytes of such layers.
//  - A microbatch that it computes any layers of crosses its border, unless it computes all of them, and one
//    of the messages of a crossing, there or back, is sent by its cards. Each way they have T.
//  - A layer that it holds all replicas of is one of which it computes all microbatches.
// Where not all microbatches can cross it holds no layers of the last kind, and computes at most as many
// microbatches as can cross, of layers of at most those bytes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/search/native/cell_floors.h"

namespace sailor::native {

class WorkLimits {
 public:
  // Of plans that use several of the zones, if there are several. Keeps a reference.
  WorkLimits(const Space& space, const std::set<std::string>& zones);

  // Of plans that use several nodes. `area`: of the same zones.
  double least_s(const AreaBound& area, int pipelines, double microbatches) const;

 private:
  struct Border {
    double nodes = 1;
    double card_s = 0, latency_s = 0;  // by byte, by message; to what is outside
  };
  struct Nodes {
    int supply = 0;
    double gpus = 0, nodes = 0;
  };
  struct Zone {
    Border border;
    std::vector<Nodes> nodes;
  };
  // In the price of what is computed.
  static double most_work(const AreaBound& area, const Border& border, double s, int pipelines,
                          double microbatches);

  std::vector<Zone> zones_;
};

}  // namespace sailor::native
