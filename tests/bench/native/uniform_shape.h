// A plan of a uniform shape, and an estimate of its iteration: how the uniform rivals (uniform_rivals.h)
// select plans to simulate.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/bench/native/layer_sums.h"
#include "tests/bench/native/node_filler.h"

namespace sailor::bench {

inline constexpr double kNeverEnds = std::numeric_limits<double>::infinity();

enum class Placement { by_pipeline, by_stage };  // what is kept together on nodes

// The TP groups that plans of one TP degree on some types and zones may use.
struct UniformFamily {
  std::string name;
  int tp = 1;
  std::vector<GpuGroup> groups;
  std::vector<int> type_of;  // by group, in `types`
  std::vector<std::string> types;
};

// GPU groups, in the order of the family's, as `replicas` pipelines of `stages` stages.
struct UniformShape {
  const UniformFamily* family;
  int stages, replicas, microbatch;
  Placement placement;
  Recompute recompute;
  Zero zero;
  int interleave;
  double estimate_s = 0;   // of an iteration
  double compute_s = 0;    // part of it: computation of the slowest stages
  double memory_part = 0;  // of the fullest GPU, by the counted memory

  int group(int replica, int stage) const {
    return placement == Placement::by_stage ? stage * replicas + replica : replica * stages + stage;
  }
  std::string name() const;  // without commas
};

// Not thread-safe; context and families must outlive it.
class UniformEstimator {
 public:
  explicit UniformEstimator(const PlanningContext& context) : context_(context), sums_(context) {}

  // Fills in the estimates; false if there is no such plan, or it cannot fit.
  bool estimate(UniformShape& shape);
  // Divides layers and microbatches by speed. Requires a shape that estimate() accepted.
  Plan plan(const UniformShape& shape);
  // The whole model for one microbatch on one TP group; kNeverEnds if not profiled.
  double model_s(const std::string& type, int microbatch, int tp) {
    const LayerSums* sums = sums_.find(type, microbatch, tp, Recompute::none);
    return sums == nullptr ? kNeverEnds : sums->compute_s.back();
  }

 private:
  // Pipelines with equal layer splits: the slowest type of each stage, and the pipelines.
  struct Pattern {
    std::vector<int> types;
    std::vector<int> pipelines;
  };

  std::vector<Pattern> patterns(const UniformShape& shape);
  const std::vector<int>* cut(const UniformShape& shape, const Pattern& pattern);
  const LayerSums* sums(const UniformShape& shape, int type) {
    return sums_.find(shape.family->types[static_cast<size_t>(type)], shape.microbatch, shape.family->tp,
                      shape.recompute);
  }
  double memory_part(const UniformShape& shape, const Pattern& pattern, const std::vector<int>& ends,
                     int share);
  double message_s(const UniformShape& shape, int replica, int stage);
  double sum_s(const UniformShape& shape, int stage, double parameters);
  double link_s(const GpuGroup& from, const GpuGroup& to, double bytes, double senders);

  PlanningContext context_;
  LayerSumsTable sums_;
  std::map<std::tuple<const UniformFamily*, std::vector<int>, int, Recompute, int>, std::vector<int>> cuts_;
};

}  // namespace sailor::bench
