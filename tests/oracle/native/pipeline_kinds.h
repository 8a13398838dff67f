// The pipelines of plans of a tiny problem, with bounds on every plan that has them.
#pragma once

#include <compare>
#include <limits>
#include <map>
#include <vector>

#include "tests/bench/native/judge.h"
#include "tests/bench/native/layer_sums.h"

namespace sailor::oracle {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// A TP group: `tp` GPUs of a node.
struct Step {
  int node, tp;
  auto operator<=>(const Step&) const = default;
};

// Lower bounds on the time and memory of every plan with a certain pipeline, without ZeRO, and with it.
// ZeRO-2 takes at least the time of ZeRO-1.
struct Alone {
  double single_s = 0;              // as the only pipeline
  double plain_s = 0, zero1_s = 0;  // with others, so that gradients are reduced
  bool fits = false, fits_zero1 = false, fits_zero2 = false;

  bool fits_with(Zero zero) const {
    return zero >= Zero::gradients ? fits_zero2 : shards_optimizer(zero) ? fits_zero1 : fits;
  }
};

// A pipeline on certain nodes. Stages are chunks if the plan is interleaved.
struct Kind {
  std::vector<Step> path;
  std::vector<int> ends;       // of stages
  std::vector<int> recompute;  // of stages, in TinyCluster::modes
  int microbatches = 0;
  std::vector<int> uses;       // GPUs by node
  std::vector<int> signature;  // all of that, with equal nodes treated as the same
  Alone alone{};
};

// The nodes with free GPUs of profiled types, of the judge's context, which must outlive it.
struct TinyCluster {
  explicit TinyCluster(const bench::Judge& judge);

  PlanningContext context;
  std::vector<const SnapshotNode*> nodes;
  std::vector<int> class_of;     // of nodes; equal ones have the same
  std::vector<Recompute> modes;  // that plans may have

  int free_of(size_t node) const { return static_cast<int>(nodes[node]->free_gpus.size()); }
  int layers() const { return context.job.model.num_all_layers(); }
};

// A plan without its pipelines.
struct PlanFrame {
  int microbatch = 1, interleave = 1;
  int total = 0;  // microbatches
  Zero zero = Zero::none;
  bool splits_tokens = false;  // sequence parallelism in all TP groups
};
Plan plan_of(const TinyCluster& cluster, const PlanFrame& frame, const std::vector<const Kind*>& kinds);

// The limit of an enumeration.
class EnumerationLimit {
 public:
  EnumerationLimit(const bench::Judge& judge, int64_t most_simulations)
      : judge_(judge), most_simulations_(judge.simulations() + most_simulations) {}
  // Is the limit reached? Counts calls, because plans that are not simulated take time too.
  bool over() {
    constexpr int64_t kStepsOfSimulation = 1000;
    over_ = over_ || judge_.simulations() >= most_simulations_ ||
            ++steps_ >= kStepsOfSimulation * most_simulations_;
    return over_;
  }
  bool was_over() const { return over_; }

 private:
  const bench::Judge& judge_;
  const int64_t most_simulations_;
  int64_t steps_ = 0;
  bool over_ = false;
};

// Lists the pipelines that may be part of a plan that is faster than `best_s`. Not thread-safe; its inputs
// must outlive it.
class KindLister {
 public:
  KindLister(bench::Judge& judge, const TinyCluster& cluster, const PlanFrame& frame, double best_s,
             EnumerationLimit& limit);

  // In the order of their signatures, then of their nodes. Incomplete if the limit is reached.
  std::vector<Kind> list();
  // Maximum microbatches that unused GPUs can compute in `time_s`.
  double most_of_rest(const std::vector<int>& uses, double time_s) const;

 private:
  std::vector<double> rates();
  void extend(std::vector<Step>& path, std::vector<int>& uses);
  void cut(const std::vector<Step>& path, const std::vector<int>& uses, std::vector<int>& ends);
  bool next_modes(std::vector<int>& recompute) const;
  void add_kinds(const std::vector<Step>& path, const std::vector<int>& uses, const std::vector<int>& ends,
                 const std::vector<int>& recompute);
  void add_kind(Kind kind);
  Alone alone(const Kind& kind);
  double phase_of_sum_s(const Kind& kind, const Step& step, double parameters);

  bench::Judge& judge_;
  const TinyCluster& cluster_;
  const PlanFrame frame_;
  const double best_s_;
  EnumerationLimit& limit_;
  bench::LayerSumsTable sums_;
  std::vector<double> rates_;  // by node, of one GPU
  std::vector<Kind> kinds_;
  std::map<std::vector<int>, Alone> alone_;  // by signature, and which stages share a node
};

}  // namespace sailor::oracle
