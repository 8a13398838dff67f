#include "planner/search/native/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <tuple>

#include "planner/search/native/group_ways.h"

namespace sailor::native {
namespace {

constexpr double kRounding = 1 - 1e-9;

struct BoundOptions {
  int bisections = 24;
  double path_step = 1.2;  // between classes of paths
  int prices = 8;          // tried for the time that a path takes
  int group_prices = 12;   // tried for a group
  // Microbatches of the average pipeline that memory for one model is worth.
  double memory_prices[6] = {0.125, 0.5, 1, 2, 8, 32};
  int looks = 600;  // at single cells
};

// The least x from `low` on at which what grows reaches what is wanted.
template <typename Grows>
double least_at(double low, double wanted, int bisections, const Grows& grows) {
  if (grows(low) >= wanted) return low;
  double high = std::max(2 * low, 1e-6);
  while (grows(high) < wanted) {
    low = high;
    high *= 2;
    if (!std::isfinite(high)) return kNever;
  }
  for (int i = 0; i < bisections; ++i) {
    const double middle = (low + high) / 2;
    (grows(middle) < wanted ? low : high) = middle;
  }
  return low;
}

// Pipelines through which a microbatch takes about as long: what a group is worth in them, by way. Slow
// groups can do less of the work there than alone, and so are worth less.
struct PathClass {
  double path_s = 0;               // at least
  std::vector<double> work_per_s;  // beyond the path's time
  std::vector<double> room;        // for work, of which a pipeline needs all of the model's
};

// What all groups of GPUs do together, at most: bounds for a number of pipelines.
class GroupBound {
 public:
  GroupBound(const Space& space, const ZoneRates& rates, const GroupWays::Question& question,
             const BoundOptions& options)
      : of_(space, rates, question), options_(options), layers_(space.layers()) {
    if (!usable()) return;
    std::vector<int> least_tp(of_.supplies.size(), std::numeric_limits<int>::max());
    for (const GroupWay& way : of_.ways) least_tp[at(way)] = std::min(least_tp[at(way)], way.tp);
    for (size_t s = 0; s < of_.supplies.size(); ++s) most_groups_ += of_.supplies[s].gpus / least_tp[s];
    for (const GroupWay& way : of_.ways) {
      fastest_s_ = std::min(fastest_s_, way.unit_s * of_.work);
      slowest_s_ = std::max(slowest_s_, way.unit_s * of_.work);
      forward_share_ = std::max(forward_share_, 1 - way.backward_share);
      backward_share_ = std::max(backward_share_, way.backward_share);
    }
    models_ = sum(kNever, [&](size_t w) { return of_.ways[w].most_work; }) / of_.work;
    update_s_ = of_.work / sum(kNever, [&](size_t w) { return 1 / std::max(of_.ways[w].update_s, 1e-30); });
    find_paths();
  }

  bool usable() const { return of_.work < kNever && !of_.ways.empty(); }
  double usd() const { return of_.usd; }
  // Is there memory for that number of models?
  bool holds(int pipelines) const { return usable() && models_ >= pipelines * kRounding; }

  // Bounds of an iteration: a quick one, and a close one.
  double roughly_s(double microbatches, int pipelines, bool interleave) const {
    const double wanted = interleave ? microbatches : microbatches - pipelines;
    const double computing_s =
        interleave ? std::max(fastest_s_, total_s(wanted, 0, kNever))
                   : fastest_s_ + std::max(0.0, (1 - forward_share_) * total_s(wanted, 0, kNever));
    return of_.overhead_s + computing_s + first_sum_s(pipelines) + after_s(pipelines);
  }

  double iteration_s(double microbatches, int pipelines, bool interleave) const {
    const double computing_s =
        std::max(interleave ? interleaved_s(microbatches, pipelines) : classic_s(microbatches, pipelines),
                 of_.longest_layer_s * std::ceil(microbatches / pipelines * kRounding));
    double s = computing_s + first_sum_s(pipelines);
    if (pipelines > 1)
      s = std::max(s, interleave ? interleaved_sums_s(microbatches, pipelines)
                                 : classic_sums_s(microbatches, pipelines));
    return of_.overhead_s + s + after_s(pipelines);
  }

 private:
  size_t at(const GroupWay& way) const { return static_cast<size_t>(way.supply); }

  // What all GPUs are worth, each supply used in the best way, when a group is worth `of(way number)` and
  // there are at most `groups` of them.
  template <typename Worth>
  double sum(double groups, const Worth& of) const {
    worth_.clear();
    double most = 0;
    for (size_t w = 0; w < of_.ways.size(); ++w) {
      worth_.push_back(of(w));
      most = std::max(most, worth_.back());
    }
    if (groups >= most_groups_) return sum_above(0);
    // The price of a group that makes the most of the limit: what is above it is convex.
    double low = 0, high = most;
    const auto at_price = [&](double price) { return sum_above(price) + price * groups; };
    for (int i = 0; i < options_.group_prices; ++i) {
      const double first = low + (high - low) / 3, second = high - (high - low) / 3;
      if (at_price(first) <= at_price(second))
        high = second;
      else
        low = first;
    }
    return at_price((low + high) / 2);
  }
  double sum_above(double price) const {
    best_.assign(of_.supplies.size(), 0);
    for (size_t w = 0; w < of_.ways.size(); ++w) {
      double& most = best_[at(of_.ways[w])];
      most = std::max(most, (worth_[w] - price) / of_.ways[w].tp);
    }
    double sum = 0;
    for (size_t s = 0; s < best_.size(); ++s) sum += of_.supplies[s].gpus * best_[s];
    return sum;
  }
  // As many as pipelines can have: a group has a layer, or one in each of two chunks.
  double groups_of(int pipelines, bool interleave) const {
    return static_cast<double>(pipelines) * (interleave ? layers_ / 2 : layers_);
  }

  double first_sum_s(int pipelines) const {
    double least = pipelines > 1 ? kNever : 0;
    for (const GroupWay& way : of_.ways)
      least = std::min(least, way.first_sum_bytes * way.sum_s_per_byte(pipelines));
    return least;
  }
  double after_s(int pipelines) const { return std::max(of_.layer_update_s, pipelines * update_s_); }

  // Seconds in which all groups do `models` models of work, where each has a price for the memory it has.
  double total_s(double models, double memory_price, double groups) const {
    return least_at(0, models * of_.work, options_.bisections, [&](double s) {
      return sum(groups, [&](size_t w) {
        const GroupWay& way = of_.ways[w];
        return s / way.unit_s + memory_price * way.most_work;
      });
    });
  }

  void find_paths() {
    for (double path_s = fastest_s_; path_s <= slowest_s_; path_s *= options_.path_step) {
      // Of work n on groups that take s for a unit, the sum of n s is no more than a path takes:
      const double end_s = path_s * options_.path_step, mean_s = end_s / of_.work;
      PathClass of{path_s, {}, {}};
      double least_rate = kNever, least_room = kNever;
      for (int i = 0; i < options_.prices; ++i) {
        const double part = static_cast<double>(i) / options_.prices;
        std::vector<double> work_per_s, room;
        for (const GroupWay& way : of_.ways) {
          work_per_s.push_back(std::max(0.0, 1 / way.unit_s - part / mean_s) / (1 - part));
          room.push_back(way.most_work * std::max(0.0, 1 + part / (1 - part) * (1 - way.unit_s / mean_s)));
        }
        const double all_per_s = sum(kNever, [&](size_t w) { return work_per_s[w]; }),
                     all_room = sum(kNever, [&](size_t w) { return room[w]; });
        if (all_per_s < least_rate) {
          least_rate = all_per_s;
          of.work_per_s = std::move(work_per_s);
        }
        if (all_room < least_room) {
          least_room = all_room;
          of.room = std::move(room);
        }
      }
      paths_.push_back(std::move(of));
    }
  }

  // When the groups are worth what is wanted: the price is that of memory for a unit of work; `slack` is by
  // what every group may do more, `least` what every group counts as.
  double along_paths_s(double wanted, double price, double slack, double least, double groups) const {
    return least_at(fastest_s_, wanted, options_.bisections, [&](double s) {
      return sum(groups, [&](size_t w) {
        double worth = 0;
        for (const PathClass& path : paths_) {
          if (path.path_s > s) break;
          worth = std::max(
              worth, std::max(least, (s - path.path_s) * slack * path.work_per_s[w]) + price * path.room[w]);
        }
        return worth;
      });
    });
  }

  double classic_s(double microbatches, int pipelines) const {
    double most_s = fastest_s_;
    const double groups = groups_of(pipelines, false);
    const auto look = [&](double price) {
      const double wanted = of_.work * (microbatches - pipelines + price * pipelines);
      most_s = std::max({most_s, along_paths_s(wanted, price, 1, of_.work, groups),
                         along_paths_s(wanted, price, 1 / (1 - forward_share_), 0, groups)});
    };
    look(0);
    for (const double price : options_.memory_prices) look(price * microbatches / pipelines);
    return most_s;
  }

  double interleaved_s(double microbatches, int pipelines) const {
    const double groups = groups_of(pipelines, true);
    double most_s = std::max(fastest_s_, total_s(microbatches, 0, groups));
    for (const double of_average : options_.memory_prices) {
      const double price = of_average * microbatches / pipelines;
      most_s = std::max(most_s, total_s(microbatches + price * pipelines, price, groups));
      // No path is longer than the iteration.
      most_s = std::max(most_s, least_at(fastest_s_, of_.work * (microbatches + price * pipelines),
                                         options_.bisections, [&](double s) {
                                           return sum(groups, [&](size_t w) {
                                             double room = 0;
                                             for (const PathClass& path : paths_)
                                               if (path.path_s <= s) room = std::max(room, path.room[w]);
                                             return s / of_.ways[w].unit_s + price * room;
                                           });
                                         }));
    }
    return most_s;
  }

  // A group of m microbatches needs m t - b + (sums): in units of t, m + delay microbatches.
  double delay(const GroupWay& way, int pipelines) const {
    return way.sum_bytes * way.sum_s_per_byte(pipelines) / way.unit_s - way.backward_share;
  }

  double classic_sums_s(double microbatches, int pipelines) const {
    std::vector<double> delays;
    for (const GroupWay& way : of_.ways) delays.push_back(delay(way, pipelines));
    const double most_microbatches = microbatches - pipelines + 1;  // of a pipeline
    const double groups = groups_of(pipelines, false);
    double most_s = 0;
    for (const double tried : delays) {
      const double theta = -tried, wanted = of_.work * (microbatches - theta * pipelines);
      if (wanted <= 0) continue;
      most_s = std::max(most_s, least_at(0, wanted, options_.bisections, [&](double s) {
                          return sum(groups, [&](size_t w) {
                            const GroupWay& way = of_.ways[w];
                            const double later = theta + delays[w];
                            return later <= 0 ? s / way.unit_s - later * way.most_work
                                              : s / way.unit_s * (most_microbatches - theta) /
                                                    (most_microbatches + delays[w]);
                          });
                        }));
    }
    return most_s;
  }

  double interleaved_sums_s(double microbatches, int pipelines) const {
    double least = kNever;
    for (const GroupWay& way : of_.ways) least = std::min(least, delay(way, pipelines) + way.backward_share);
    const double wanted = of_.work * (microbatches + least * pipelines);
    return least_at(0, wanted, options_.bisections, [&](double s) {
      return sum(groups_of(pipelines, true),
                 [&](size_t w) { return s / of_.ways[w].unit_s + backward_share_ * of_.work; });
    });
  }

  const GroupWays of_;
  const BoundOptions& options_;
  double fastest_s_ = kNever, slowest_s_ = 0;      // a microbatch through the model
  double forward_share_ = 0, backward_share_ = 0;  // of the time for some work, at most
  double models_ = 0;                              // that memory has room for
  double update_s_ = 0;                            // by replica, if all groups share the work
  std::vector<PathClass> paths_;
  const int layers_;
  double most_groups_ = 0;
  mutable std::vector<double> worth_, best_;  // by way, by supply
};

// All plans of a microbatch size and a number of pipelines, with or without a sharded optimizer and
// interleaving.
struct Cell {
  double s = 0;  // at least
  int microbatch = 1, pipelines = 1;
  bool zero1 = false, interleave = false;
  bool closely = false;  // has its bound been worked out closely?

  bool operator<(const Cell& other) const {
    return std::tie(s, microbatch, pipelines, zero1, interleave) >
           std::tie(other.s, other.microbatch, other.pipelines, other.zero1, other.interleave);
  }
};

class Cells {
 public:
  Cells(const Space& space, const PlanFeatures& offered) : space_(space), offered_(offered), rates_(space) {}

  Bound least() {
    Bound out{kNever, kNever};
    const bool has_zero1 = offered_.contains(PlanFeature::zero1),
               has_interleave = offered_.contains(PlanFeature::interleave);
    for (const int microbatch : space_.microbatches) {
      const int most = static_cast<int>(std::min<int64_t>(space_.gpus(), microbatches(microbatch)));
      for (int pipelines = 1; pipelines <= most; ++pipelines)
        for (const bool zero1 : {false, true}) {
          if (zero1 && (!has_zero1 || pipelines < 2)) continue;
          const GroupBound& bound = groups(microbatch, pipelines, zero1);
          if (!bound.holds(pipelines)) continue;
          out.usd = std::min(out.usd, bound.usd() * static_cast<double>(microbatches(microbatch)));
          for (const bool interleave : {false, true}) {
            if (interleave && !has_interleave) continue;
            Cell cell{0, microbatch, pipelines, zero1, interleave};
            cell.s = bound.roughly_s(static_cast<double>(microbatches(microbatch)), pipelines, interleave);
            cells_.push(cell);
          }
        }
    }
    // What is least is looked at closely until that stays the least.
    for (int looks = 0; !cells_.empty() && !cells_.top().closely && looks < options_.looks; ++looks) {
      Cell cell = cells_.top();
      cells_.pop();
      cell.s = std::max(cell.s, groups(cell.microbatch, cell.pipelines, cell.zero1)
                                    .iteration_s(static_cast<double>(microbatches(cell.microbatch)),
                                                 cell.pipelines, cell.interleave));
      cell.closely = true;
      cells_.push(cell);
    }
    if (!cells_.empty()) out.iteration_s = cells_.top().s;
    return {out.iteration_s * kRounding, out.usd * kRounding};
  }

 private:
  int64_t microbatches(int size) const {
    return num_microbatches(space_.context.job.training.global_batch, size);
  }

  // Shared by all numbers of pipelines within a factor of four.
  const GroupBound& groups(int microbatch, int pipelines, bool zero1) {
    int least = 1, most = 1;
    while (most < pipelines) {
      least = most + 1;
      most *= 4;
    }
    std::unique_ptr<GroupBound>& bound = groups_[{microbatch, least, zero1}];
    if (!bound)
      bound = std::make_unique<GroupBound>(
          space_, rates_,
          GroupWays::Question{microbatch, least, most, zero1, offered_.contains(PlanFeature::recompute)},
          options_);
    return *bound;
  }

  const Space& space_;
  const PlanFeatures& offered_;
  const ZoneRates rates_;
  const BoundOptions options_;
  std::map<std::tuple<int, int, bool>, std::unique_ptr<GroupBound>> groups_;
  std::priority_queue<Cell> cells_;
};

}  // namespace

Bound least_possible(const Space& space, const PlanFeatures& offered) {
  return Cells(space, offered).least();
}

}  // namespace sailor::native
