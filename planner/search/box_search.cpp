#include "planner/search/box_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "planner/search/guided_beam.h"
#include "planner/search/priced_cuts.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kMostPriced = 20000;
constexpr int kSubgradients = 3;
// A step towards so much more than the best sum that is known.
constexpr double kNewUse = 0.1;                  // in the average of uses
constexpr double kShorter = 0.7, kLonger = 1.3;  // steps, after one in vain and after one that was not
constexpr double kAmbition = 0.1;
constexpr double kShrunk = 0.9;   // a box is worth another look when a side is so much shorter
constexpr double kProven = 1e-4;  // relative: no need to know better
constexpr double kNarrow = 5e-3;  // relative: halves of such a box say little more
constexpr int kBeamEvery = 16;    // boxes
constexpr size_t kBeamWidth = 64, kMostOfBeam = 16;

constexpr double kNotForSale = 1e9;  // seconds; of supplies without GPUs

struct Box {
  size_t configuration = 0;
  double shortest_s = 0, longest_s = 0;  // of the slowest stage
  double least_sync_s = 0, most_sync_s = 0;
  double bound_s = 0;
  uint64_t regions = ~uint64_t{0};  // that stages may be in
  uint64_t visited = 0;             // those that some stage is in
  int least_regions = 1;            // with a stage
  double crossings_s = 0;           // that so many regions add to the sum of stages
  std::vector<double> money;        // price x GPUs of every supply, seconds
  std::vector<double> use;          // of every supply, of 1; averaged over cuts at prices near these
  int64_t number = 0;

  bool operator<(const Box& other) const {
    return bound_s != other.bound_s ? bound_s < other.bound_s : number < other.number;
  }
};

// What boxes of one configuration share.
struct Tables {
  std::unique_ptr<StageSync> sync;
  std::unique_ptr<PricedCuts> cuts;
};

class BoxSearch {
 public:
  BoxSearch(std::vector<BoxConfiguration>& configurations, double overhead_s,
            const std::function<double()>& threshold,
            const std::function<void(const BoxConfiguration&, const Skeleton&)>& found,
            const std::function<bool()>& expired)
      : configurations_(configurations),
        overhead_s_(overhead_s),
        threshold_(threshold),
        found_(found),
        expired_(expired),
        tables_(configurations.size()) {}

  BoxOutcome run() {
    for (size_t i = 0; i < configurations_.size(); ++i) {
      Box box;
      box.configuration = i;
      box.bound_s = configurations_[i].bound_s;
      box.longest_s = box.most_sync_s = kNever;
      push(std::move(box));
    }
    std::vector<double> closed(configurations_.size(), kNever);  // bounds of what was not followed further
    while (!boxes_.empty()) {
      const double accepted = threshold_();
      Box box = boxes_.extract(boxes_.begin()).value();
      if (box.bound_s >= accepted * (1 - kProven) || outcome_.priced >= kMostPriced || expired_()) {
        outcome_.complete = box.bound_s >= accepted * (1 - kProven);
        boxes_.insert(std::move(box));
        break;
      }
      look_at(std::move(box), accepted, closed);
    }
    for (const Box& box : boxes_)
      closed[box.configuration] = std::min(closed[box.configuration], box.bound_s);
    for (size_t i = 0; i < configurations_.size(); ++i)
      configurations_[i].bound_s = std::max(configurations_[i].bound_s, closed[i]);
    return outcome_;
  }

 private:
  void push(Box box) {
    box.number = numbers_++;
    boxes_.insert(std::move(box));
  }

  void look_at(Box box, double accepted, std::vector<double>& closed) {
    const BoxConfiguration& c = configurations_[box.configuration];
    Tables& t = tables_[box.configuration];
    if (!t.cuts) {
      t.sync = std::make_unique<StageSync>(*c.costs, c.replicas);
      t.cuts = std::make_unique<PricedCuts>(*c.costs, *t.sync, c.replicas);
    }
    const bool fresh = box.money.empty();
    if (fresh && last_money_.empty()) last_money_.assign(t.cuts->supplies().size(), 0);
    if (fresh) box.money = last_money_;
    if (box.least_regions > 1) {
      box.crossings_s = (box.least_regions - 1) * t.cuts->crossing_s(box.regions);
      box.shortest_s = std::max(box.shortest_s, t.cuts->crossing_stage_s(box.regions));
    }
    const double rounds = c.rounds - 1;
    const double room = accepted - overhead_s_;
    box.longest_s = std::min(box.longest_s, rounds > 0 ? room / rounds : room);
    box.most_sync_s = std::min(box.most_sync_s, c.replicas > 1 ? room : 0);
    if (box.shortest_s > box.longest_s) {
      closed[box.configuration] = std::min(closed[box.configuration], accepted);
      return;
    }
    // What is accepted leaves so much for either side.
    double sum_s = bound_sum(box, c, *t.cuts, accepted);
    while (true) {
      box.bound_s = std::max(box.bound_s, floor_s(box, rounds) + sum_s);
      if (box.bound_s >= accepted * (1 - kProven)) {
        closed[box.configuration] = std::min(closed[box.configuration], box.bound_s);
        return;
      }
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
    if (fresh || looked_at_++ % kBeamEvery == 0) follow_beam(box, c, t, accepted);
    const double width_s =
        std::max(rounds * (box.longest_s - box.shortest_s), box.most_sync_s - box.least_sync_s);
    if (fresh) box.regions = t.cuts->all_regions();
    if (box.regions != box.visited && std::popcount(box.regions) > 1)
      choose_region(std::move(box), *t.cuts);
    else if (width_s > kNarrow * box.bound_s)
      split(std::move(box), rounds);
    else
      closed[box.configuration] = std::min(closed[box.configuration], box.bound_s);
  }

  double floor_s(const Box& box, double rounds) const {
    return overhead_s_ + rounds * box.shortest_s + box.least_sync_s + box.crossings_s;
  }

  static std::vector<double> prices_of(const std::vector<double>& money, const PricedCuts& cuts) {
    std::vector<double> prices;
    for (size_t s = 0; s < money.size(); ++s)
      prices.push_back(cuts.supplies()[s].gpus > 0 ? money[s] / cuts.supplies()[s].gpus : kNotForSale);
    return prices;
  }

  // The least sum of stages within the box, at least; leaves the best prices in it.
  double bound_sum(Box& box, const BoxConfiguration& c, PricedCuts& cuts, double accepted) {
    cuts.set_caps(box.longest_s, box.most_sync_s, box.regions);
    const double enough = accepted - floor_s(box, c.rounds - 1);
    // The volume algorithm: steps along an average of uses, because equal supplies are used in turns, and
    // from the best prices so far.
    const size_t n = box.money.size();
    std::vector<double> money = box.money;
    double best = -kNever, scale = 1;
    for (int step = 0; step < kSubgradients; ++step) {
      ++outcome_.priced;
      double sum = cuts.solve(prices_of(money, cuts));
      if (sum == kNever) return kNever;
      for (double m : money) sum -= m;
      std::vector<double> use = cuts.use_of(cuts.path());
      for (size_t s = 0; s < n; ++s) use[s] /= std::max(1.0, cuts.supplies()[s].gpus);
      if (box.use.empty()) box.use = use;
      for (size_t s = 0; s < n; ++s) box.use[s] += kNewUse * (use[s] - box.use[s]);
      if (step == 0 || sum > best) {
        if (step > 0) scale = std::min(1.0, scale * kLonger);
        best = sum;
        box.money = money;
      } else {
        scale *= kShorter;
      }
      if (best >= enough) break;
      double norm = 0;
      std::vector<double> overused(n, 0);
      for (size_t s = 0; s < n; ++s) {
        overused[s] = box.use[s] - 1;
        if (overused[s] < 0 && box.money[s] <= 0) overused[s] = 0;
        norm += overused[s] * overused[s];
      }
      if (norm < 1e-12) break;
      const double target = std::min(enough * (1 + kProven), best + kAmbition * std::abs(best));
      const double length = scale * (target - best) / norm;
      for (size_t s = 0; s < n; ++s) money[s] = std::max(0.0, box.money[s] + length * overused[s]);
    }
    last_money_ = box.money;
    return best;
  }

  void follow_beam(const Box& box, const BoxConfiguration& c, Tables& t, double accepted) {
    const std::vector<double> prices = prices_of(box.money, *t.cuts);
    ++outcome_.priced;
    t.cuts->solve(prices);
    BeamProblem problem{*c.costs,    *t.sync,        c.replicas,      c.rounds,
                        overhead_s_, box.shortest_s, box.least_sync_s};
    problem.regions = box.visited;
    problem.mixed = beams_++ % 2 == 1;
    if (box.least_regions > 1) problem.crossing_s = t.cuts->crossing_s(box.regions);
    for (const Skeleton& skeleton : guided_beam(problem, *t.cuts, prices, accepted, kBeamWidth, kMostOfBeam))
      if (skeleton.iteration_s < threshold_() && is_new(box.configuration, skeleton)) found_(c, skeleton);
  }

  // Beams of neighbouring boxes come by the same.
  bool is_new(size_t configuration, const Skeleton& skeleton) {
    std::vector<int> key{static_cast<int>(configuration)};
    for (const Skeleton::Stage& stage : skeleton.stages) {
      key.push_back(stage.first_layer);
      key.push_back(stage.mode);
    }
    return seen_.insert(std::move(key)).second;
  }

  // With and without the region that is used most; alone, or together with others.
  void choose_region(Box box, const PricedCuts& cuts) {
    std::vector<double> gpus(64, 0);
    for (size_t s = 0; s < box.use.size(); ++s)
      gpus[cuts.supplies()[s].region] += box.use[s] * cuts.supplies()[s].gpus;
    uint64_t chosen = 0;
    double most = -1;
    for (int r = 0; r < 64; ++r)
      if (const uint64_t bit = uint64_t{1} << r; (box.regions & ~box.visited & bit) && gpus[r] > most) {
        most = gpus[r];
        chosen = bit;
      }
    Box without = box;
    without.regions &= ~chosen;
    if (std::popcount(without.regions) >= box.least_regions) push(std::move(without));
    if (box.visited == 0) {
      Box alone = box;
      alone.regions = alone.visited = chosen;
      push(std::move(alone));
    }
    box.visited |= chosen;
    box.least_regions = std::max(2, std::popcount(box.visited));
    push(std::move(box));
  }

  // In two, across the side that matters more.
  void split(Box box, double rounds) {
    Box other = box;
    if (rounds * (box.longest_s - box.shortest_s) >= box.most_sync_s - box.least_sync_s)
      box.longest_s = other.shortest_s = (box.shortest_s + box.longest_s) / 2;
    else
      box.most_sync_s = other.least_sync_s = (box.least_sync_s + box.most_sync_s) / 2;
    push(std::move(box));
    push(std::move(other));
  }

  std::vector<BoxConfiguration>& configurations_;
  const double overhead_s_;
  const std::function<double()>& threshold_;
  const std::function<void(const BoxConfiguration&, const Skeleton&)>& found_;
  const std::function<bool()>& expired_;
  std::vector<Tables> tables_;       // by configuration
  std::vector<double> last_money_;   // of the box looked at last, by supply
  std::set<Box> boxes_;              // the least bound first
  std::set<std::vector<int>> seen_;  // skeletons
  int64_t numbers_ = 0, looked_at_ = 0, beams_ = 0;
  BoxOutcome outcome_;
};

}  // namespace

BoxOutcome search_boxes(std::vector<BoxConfiguration>& configurations, double overhead_s,
                        const std::function<double()>& threshold,
                        const std::function<void(const BoxConfiguration&, const Skeleton&)>& found,
                        const std::function<bool()>& expired) {
  return BoxSearch(configurations, overhead_s, threshold, found, expired).run();
}

}  // namespace sailor
