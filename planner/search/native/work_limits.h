// Upper bounds on the computation of nodes and zones by a time T, given their network cards; and so the
// minimum time in which all of them complete everything.
//
// For a node (or a zone of n nodes) that does not compute everything:
// - For a layer of which it does not hold all D replicas, its cards send at least (D - 1) / D of the
//   gradients in every phase, after some forward. So it holds at most some bytes of such layers.
// - A microbatch for which it computes some but not all layers crosses its border, and one of the messages of
//   a crossing, in one of the directions, is sent by its cards. Each direction has time T. Interleaved
//   pipelines pass all groups at least twice, so they cross three times, over some link twice.
// - For a layer of which it holds all replicas, it computes all microbatches.
//
// If not all microbatches can cross, it holds no layers of the last kind, and computes at most as many
// microbatches as can cross, for layers of at most those bytes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/search/native/cell_floors.h"

namespace sailor::native {

class WorkLimits {
 public:
  // For plans that use several of the zones, if there are several. Keeps a reference.
  WorkLimits(const Space& space, const std::set<std::string>& zones);

  struct Kind {
    int pipelines = 1;
    bool interleave = false;
  };
  // For plans that use several nodes. `area`: of the same zones.
  double least_s(const AreaBound& area, const Kind& kind, double microbatches) const;

 private:
  struct Border {
    double nodes = 1;
    // To the outside: per byte of messages, and of sums; per message.
    double card_s = 0, sum_card_s = 0, latency_s = 0;
  };
  struct Nodes {
    int supply = 0;
    double gpus = 0, nodes = 0;
  };
  struct Zone {
    Border border;
    std::vector<Nodes> nodes;
  };
  // In units of the price of the computation.
  static double most_work(const AreaBound& area, const Border& border, double s, const Kind& kind,
                          double microbatches);

  std::vector<Zone> zones_;
};

}  // namespace sailor::native
