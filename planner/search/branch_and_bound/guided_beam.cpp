#include "planner/search/branch_and_bound/guided_beam.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>

namespace sailor {
namespace {

struct Partial : PartialPipeline {
  uint64_t regions = 0;     // of its stages
  double paid_s = 0;        // prices of what is used
  double rank_s = 0;        // what the iteration takes, with the priced rest
  std::vector<float> left;  // GPUs, by pool
};

class Beam {
 public:
  Beam(const BeamProblem& problem, PricedCuts& cuts, const std::vector<double>& prices, double accepted_s,
       size_t width, size_t most)
      : p_(problem),
        costs_(problem.costs),
        cuts_(cuts),
        prices_(prices),
        accepted_s_(accepted_s),
        width_(width),
        most_(most),
        layers_(problem.costs.stage().layers()),
        buckets_(layers_ + 1) {}

  std::vector<PipelineTemplate> run() {
    Partial root;
    root.first_layer = layers_;
    double all_s = 0;  // prices of all supplies
    const Resources& resources = costs_.resources();
    for (size_t pool = 0; pool < resources.pools.size(); ++pool)
      root.left.push_back(static_cast<float>(resources.free_gpus(static_cast<int>(pool))));
    for (size_t s = 0; s < prices_.size(); ++s) all_s += prices_[s] * cuts_.supplies()[s].gpus;
    choose_classes(root.left);
    root.paid_s = -all_s;
    extend(root);
    for (int layer = layers_ - 1; layer > 0; --layer)
      for (Partial& partial : buckets_[layer]) {
        followed_.push_back(std::move(partial));
        extend(followed_.back());
      }
    std::vector<PipelineTemplate> out;
    for (const Partial& partial : buckets_[0]) {
      PipelineTemplate pipeline;
      pipeline.iteration_s = partial.rank_s;
      pipeline.stages = partial.path();
      out.push_back(std::move(pipeline));
    }
    return out;
  }

 private:
  // Without those for which a zone has room: a stage in one zone is a placement class of its own, with its
  // own messages and sums of gradients.
  void choose_classes(const std::vector<float>& gpus) {
    const std::vector<PlacementClass>& all = costs_.classes();
    const bool zones_apart = std::any_of(all.begin(), all.end(),
                                         [](const PlacementClass& placement) { return placement.refines; });
    for (int placement = 0; placement < costs_.size(); ++placement)
      if (!zones_apart || !has_room_in_a_zone(all[placement], gpus)) classes_.push_back(placement);
  }
  bool has_room_in_a_zone(const PlacementClass& placement, const std::vector<float>& gpus) const {
    using Kind = PlacementClass::Kind;
    if (placement.kind == Kind::pure || (placement.kind == Kind::mixed && p_.mixed)) return false;
    const std::vector<int>& options = placement.groups.front().options;
    return std::any_of(options.begin(), options.end(), [&](int o) {
      return gpus[costs_.resources().options[o].pool] >=
             static_cast<float>(p_.replicas * placement.least.gpus());
    });
  }
  // Takes a stage's GPUs from where they are cheapest; false when there are too few.
  bool take(int placement, uint32_t allowed, std::vector<float>& left, double& paid_s) {
    const std::vector<PlacementClass::Group>& groups = costs_.classes()[placement].groups;
    order_.clear();
    for (size_t g = 0; g < groups.size(); ++g)
      if (PlacementClass::serves(allowed, g)) {
        const double price =
            prices_[costs_.resources().options[groups[g].option].supply] * groups[g].shape.gpus();
        for (int o : groups[g].options)
          order_.push_back({price, costs_.resources().options[o].pool, groups[g].shape.gpus()});
      }
    std::stable_sort(order_.begin(), order_.end(),
                     [](const Source& a, const Source& b) { return a.price < b.price; });
    int open = p_.replicas;
    for (const Source& source : order_) {
      const int n = std::min(open, static_cast<int>(left[source.pool]) / source.gpus);
      left[source.pool] -= static_cast<float>(n * source.gpus);
      paid_s += n * source.price;
      open -= n;
      if (open == 0) return true;
    }
    return false;
  }

  void extend(const Partial& partial) {
    const int end = partial.first_layer, behind = partial.stages;
    const int in_flight = std::min(behind + 1, layers_);
    for (int placement : classes_) {
      const int lowest = std::max(cuts_.lowest_in_time(placement, end, behind > 0),
                                  costs_.lowest_first(costs_.classes()[placement].slowest(), end, in_flight));
      if (lowest >= end) continue;
      const int region = cuts_.region_of(placement);
      Partial next;
      const double begun_s = next.begin(costs_, placement, partial);
      if (!std::isfinite(begun_s)) continue;
      next.regions = partial.regions | uint64_t{1} << region;
      const double ahead_s = p_.crossing_s * std::popcount(p_.regions & ~next.regions);
      uint32_t known_groups = 0;
      bool enough = false;
      double paid = 0;
      for (int first = end - 1; first >= lowest; --first) {
        const uint32_t groups = costs_.allowed(placement, first, end, in_flight);
        if (groups == 0) continue;
        next.set_first(costs_, first, begun_s);
        next.set_update_and_sync(costs_, p_.sync);
        if (first == 0) next.complete();
        // A pipeline that is complete has its own time, without floors and prices.
        const double done = first == 0
                                ? next.iteration_s(p_.rounds - 1)
                                : next.iteration_s(p_.rounds - 1, p_.least_bottleneck_s, p_.least_sync_s);
        const double rest = first == 0 ? 0 : cuts_.rest(first, behind + 1) + ahead_s;
        // Prices of what is used are never negative: a first test without them.
        if (first > 0 && !fits_in(first, done + rest + partial.paid_s)) continue;
        if (groups != known_groups) {
          known_groups = groups;
          left_ = partial.left;
          paid = partial.paid_s;
          enough = take(placement, groups, left_, paid);
        }
        if (!enough) continue;
        next.paid_s = paid;
        next.rank_s = first == 0 ? done : done + rest + paid;
        if (!fits_in(first, next.rank_s)) continue;
        next.left = left_;
        insert(next);
      }
    }
  }

  bool fits_in(int layer, double rank_s) const {
    if (rank_s >= accepted_s_) return false;
    const std::vector<Partial>& bucket = buckets_[layer];
    return bucket.size() < (layer == 0 ? most_ : width_) || rank_s < bucket.back().rank_s;
  }

  void insert(const Partial& partial) {
    std::vector<Partial>& bucket = buckets_[partial.first_layer];
    const auto place =
        std::upper_bound(bucket.begin(), bucket.end(), partial,
                         [](const Partial& a, const Partial& b) { return a.rank_s < b.rank_s; });
    // Of twins (symmetrical regions, or the same use of another order) one is enough.
    for (auto it = place; it != bucket.begin() && (it - 1)->rank_s == partial.rank_s; --it)
      if ((it - 1)->placement == partial.placement && (it - 1)->left == partial.left) return;
    bucket.insert(place, partial);
    if (bucket.size() > (partial.first_layer == 0 ? most_ : width_)) bucket.pop_back();
  }

  struct Source {
    double price;
    int pool, gpus;
  };

  const BeamProblem& p_;
  ClassCosts& costs_;
  PricedCuts& cuts_;
  const std::vector<double>& prices_;
  const double accepted_s_;
  const size_t width_, most_;
  const int layers_;
  std::vector<std::vector<Partial>> buckets_;  // by first layer; best first
  std::deque<Partial> followed_;               // addresses stay
  std::vector<int> classes_;                   // that stages may be in
  std::vector<Source> order_;
  std::vector<float> left_;
};

}  // namespace

std::vector<PipelineTemplate> guided_beam(const BeamProblem& problem, PricedCuts& cuts,
                                          const std::vector<double>& prices, double accepted_s, size_t width,
                                          size_t most) {
  return Beam(problem, cuts, prices, accepted_s, width, most).run();
}

}  // namespace sailor
