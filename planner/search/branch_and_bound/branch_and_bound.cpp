#include "planner/search/branch_and_bound/branch_and_bound.h"

#include <algorithm>
#include <memory>
#include <set>

#include "planner/search/branch_and_bound/box.h"
#include "planner/search/branch_and_bound/guided_beam.h"
#include "planner/search/branch_and_bound/priced_cuts.h"
#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

constexpr int64_t kMostPriced = 20000;
constexpr double kShrunk = 0.9;  // a box is worth another look when a side is so much shorter
constexpr int kBeamEvery = 16;   // boxes
constexpr size_t kBeamWidth = 64, kMostOfBeam = 16;

// What boxes of one configuration share.
struct Tables {
  std::unique_ptr<StageSync> sync;
  std::unique_ptr<PricedCuts> cuts;
};

class BranchAndBound {
 public:
  BranchAndBound(std::vector<BranchConfiguration>& configurations, const std::function<double()>& threshold,
                 const std::function<void(const BranchConfiguration&, const PipelineTemplate&)>& found,
                 const std::function<bool()>& expired)
      : configurations_(configurations),
        threshold_(threshold),
        found_(found),
        expired_(expired),
        tables_(configurations.size()),
        closed_(configurations.size(), kNever) {}

  BranchOutcome run() {
    for (size_t i = 0; i < configurations_.size(); ++i) {
      Box box;
      box.configuration = i;
      box.bound_s = configurations_[i].bound_s;
      box.longest_s = box.most_sync_s = kNever;
      push(std::move(box));
    }
    while (!boxes_.empty()) {
      const double accepted = threshold_();
      Box box = boxes_.extract(boxes_.begin()).value();
      if (box.bound_s >= accepted * (1 - kProven) || outcome_.priced >= kMostPriced || expired_()) {
        outcome_.complete = box.bound_s >= accepted * (1 - kProven);
        boxes_.insert(std::move(box));
        break;
      }
      bound(std::move(box), accepted);
    }
    for (const Box& box : boxes_) close(box, box.bound_s);
    for (size_t i = 0; i < configurations_.size(); ++i)
      configurations_[i].bound_s = std::max(configurations_[i].bound_s, closed_[i]);
    return outcome_;
  }

 private:
  void push(Box box) {
    box.number = numbers_++;
    boxes_.insert(std::move(box));
  }

  // Nothing in it is better than this, or it is not followed further.
  void close(const Box& box, double bound_s) {
    double& closed_s = closed_[box.configuration];
    closed_s = std::min(closed_s, bound_s);
  }

  void bound(Box box, double accepted) {
    const BranchConfiguration& c = configurations_[box.configuration];
    Tables& t = tables_[box.configuration];
    if (!t.cuts) {
      t.sync = std::make_unique<StageSync>(*c.costs, c.replicas);
      t.cuts = std::make_unique<PricedCuts>(*c.costs, *t.sync, c.replicas);
    }
    const bool fresh = box.prices.money.empty();
    if (fresh) box.prices.money.assign(t.cuts->supplies().size(), 0);
    if (box.least_regions > 1) {
      box.crossings_s = (box.least_regions - 1) * t.cuts->crossing_s(box.regions);
      box.shortest_s = std::max(box.shortest_s, t.cuts->crossing_stage_s(box.regions));
    }
    const double rounds = c.rounds - 1;
    box.longest_s = std::min(box.longest_s, rounds > 0 ? accepted / rounds : accepted);
    box.most_sync_s = std::min(box.most_sync_s, c.replicas > 1 ? accepted : 0);
    if (box.shortest_s > box.longest_s) return close(box, accepted);
    // What is accepted leaves so much for either side.
    double sum_s = bound_sum(box, c, *t.cuts, accepted);
    while (true) {
      box.bound_s = std::max(box.bound_s, floor_s(box, rounds) + sum_s);
      if (box.bound_s >= accepted * (1 - kProven)) return close(box, box.bound_s);
      const double spare = accepted - floor_s(box, rounds) - sum_s;
      const double longest = rounds > 0 ? box.shortest_s + spare / rounds : box.longest_s;
      const double most_sync = box.least_sync_s + spare;
      const bool shrunk = longest - box.shortest_s < kShrunk * (box.longest_s - box.shortest_s) ||
                          most_sync - box.least_sync_s < kShrunk * (box.most_sync_s - box.least_sync_s);
      box.longest_s = std::min(box.longest_s, longest);
      box.most_sync_s = std::min(box.most_sync_s, most_sync);
      if (!shrunk || outcome_.priced >= kMostPriced) break;
      sum_s = bound_sum(box, c, *t.cuts, accepted);
    }
    if (fresh || bounded_++ % kBeamEvery == 0) follow_beam(box, c, t, accepted);
    if (fresh) box.regions = t.cuts->all_regions();
    std::vector<Box> parts = branches(box, rounds, *t.cuts);
    if (parts.empty()) close(box, box.bound_s);
    for (Box& part : parts) push(std::move(part));
  }

  double floor_s(const Box& box, double rounds) const {
    return rounds * box.shortest_s + box.least_sync_s + box.crossings_s;
  }

  // The least sum of stages within the box, at least; leaves the best prices in it.
  double bound_sum(Box& box, const BranchConfiguration& c, PricedCuts& cuts, double accepted) {
    cuts.set_caps(box.longest_s, box.most_sync_s, box.regions);
    const double enough = accepted - floor_s(box, c.rounds - 1);
    const PricedSum sum = raise_prices(box.prices, cuts, enough);
    outcome_.priced += sum.cuts;
    return sum.seconds;
  }

  void follow_beam(const Box& box, const BranchConfiguration& c, Tables& t, double accepted) {
    const std::vector<double> prices = prices_per_gpu(box.prices.money, *t.cuts);
    ++outcome_.priced;
    t.cuts->solve(prices);
    BeamProblem problem{*c.costs, *t.sync, c.replicas, c.rounds, box.shortest_s, box.least_sync_s};
    problem.regions = box.visited;
    problem.mixed = beams_++ % 2 == 1;
    if (box.least_regions > 1) problem.crossing_s = t.cuts->crossing_s(box.regions);
    for (const PipelineTemplate& pipeline :
         guided_beam(problem, *t.cuts, prices, accepted, kBeamWidth, kMostOfBeam))
      if (pipeline.iteration_s < threshold_() && is_new(box.configuration, pipeline)) found_(c, pipeline);
  }

  // Beams of neighbouring boxes find the same.
  bool is_new(size_t configuration, const PipelineTemplate& pipeline) {
    std::vector<int> key{static_cast<int>(configuration)};
    for (const PipelineTemplate::Stage& stage : pipeline.stages) {
      key.push_back(stage.first_layer);
      key.push_back(stage.placement);
    }
    return seen_.insert(std::move(key)).second;
  }

  std::vector<BranchConfiguration>& configurations_;
  const std::function<double()>& threshold_;
  const std::function<void(const BranchConfiguration&, const PipelineTemplate&)>& found_;
  const std::function<bool()>& expired_;
  std::vector<Tables> tables_;       // by configuration
  std::vector<double> closed_;       // by configuration: the least bound of what is closed
  std::set<Box> boxes_;              // the least bound first
  std::set<std::vector<int>> seen_;  // pipeline templates
  int64_t numbers_ = 0, bounded_ = 0, beams_ = 0;
  BranchOutcome outcome_;
};

}  // namespace

BranchOutcome branch_and_bound(
    std::vector<BranchConfiguration>& configurations, const std::function<double()>& threshold,
    const std::function<void(const BranchConfiguration&, const PipelineTemplate&)>& found,
    const std::function<bool()>& expired) {
  return BranchAndBound(configurations, threshold, found, expired).run();
}

}  // namespace sailor
