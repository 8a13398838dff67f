#include "planner/search/native/bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "planner/search/native/cell_floors.h"
#include "planner/search/native/pipeline_prices.h"
#include "planner/search/native/work_limits.h"

namespace sailor::native {
namespace {

constexpr double kBoundRounding = 1 - 1e-9;

struct BoundOptions {
  double exact = 1.01;                             // the bound is worked out up to this factor
  double unequal = 0.01;                           // relative resolution of numbers of microbatches
  int points = 40;                                 // of the price of a pipeline by its number of microbatches
  int turns = 8;                                   // of changes of prices
  double promising = 0.75, promising_step = 0.03;  // of what prices must come to, at first and with each turn
  double margin = 1e-9;                            // of what prices come to
  double area = 2, table = 1.6;  // factors between numbers of pipelines with the same tables
  int few = 6;                   // fewer pipelines have tables of their own
  LimitWeights weights[5] = {{0, 0}, {0.3, 0}, {0.6, 0}, {0.3, 0.5}, {0, 0.5}};
  // Effort, in steps of PipelinePrices.
  struct UpTo {
    int gpus;
    int64_t steps;
  };
  UpTo sizes[3] = {{32, 1'200'000}, {256, 7'000'000}, {std::numeric_limits<int>::max(), 22'000'000}};
};

constexpr BoundOptions kOptions;

// All plans of a microbatch size, or of any sizes, and some numbers of pipelines, with or without a sharded
// optimizer and interleaving, in some zones.
struct Cell {
  double s = 0;                   // at least
  int zones = 0, microbatch = 1;  // sequences, or any_microbatch()
  int pipelines = 1, most_pipelines = 1;
  Zero zero = Zero::none;
  bool interleave = false;
};

// Microbatches in total, on some number of pipelines.
struct Range {
  double microbatches = 1;
  int least = 1, most = 1;
};

// What pipelines of some number of microbatches cost at least that end by a time. Of any sizes: of some
// number of sequences, in microbatches of the size that makes them cheapest.
class PriceTable {
 public:
  PriceTable(const Space& space, IterationModel& model, const ZoneRates& rates, GroupWays::Question question,
             Deadline& deadline)
      : deadline_(deadline) {
    const bool any = is_any(question.microbatch);
    for (const int size : space.sizes_of(question.microbatch)) {
      question.microbatch = size;
      auto ways = std::make_unique<const GroupWays>(space, model, rates, question);
      if (gpus_.empty())
        for (const GpuSupply& supply : ways->supplies) gpus_.push_back(supply.gpus);
      if (ways->usable()) sizes_.push_back({any ? size : 1, std::move(ways), question.replicas});
    }
  }

  // Is there no plan in the range that ends by then? False, too, when `most_steps` are spent or the time is
  // over.
  bool refutes(double s, const Range& range, bool interleave, int64_t most_steps) {
    if (sizes_.empty()) return true;
    last_step_ = steps() + most_steps;
    // What did it last time may do it again.
    const size_t first = refuting_;
    for (size_t i = 0; i < std::size(kOptions.weights); ++i) {
      const size_t at = (first + i) % std::size(kOptions.weights);
      weights_ = kOptions.weights[at];
      if (weights_.trips > 0) weights_.typical = static_cast<int>(range.microbatches / range.most);
      if (interleave && weights_.trips > 0) continue;
      const double price = most_price(s, range, interleave);
      if (price > 1 + kOptions.margin) {
        refuting_ = at;
        return true;
      }
      if (price < kOptions.promising || spent()) return false;
    }
    return false;
  }
  int64_t steps() const {
    int64_t all = own_steps_;
    for (const OfSize& of : sizes_) all += of.prices.steps();
    return all;
  }

 private:
  // Pipelines with microbatches of one size, counted in units of which each has `units`.
  struct OfSize {
    OfSize(int of_units, std::unique_ptr<const GroupWays> of_ways, int replicas)
        : units(of_units), ways(std::move(of_ways)), prices(*ways, replicas) {}

    int units;
    std::unique_ptr<const GroupWays> ways;
    PipelinePrices prices;
  };
  struct Point {
    double price = 0;
    std::vector<double> gpus;
  };
  struct Low {
    double m, price;
    int from, to;  // between two that are known
    const Point* point;
  };
  bool spent() { return steps() >= last_step_ || deadline_.expired(); }
  // What the pipelines cost at least, with the best prices that are found; enough once it is more than all
  // GPUs do.
  double most_price(double s, const Range& range, bool interleave) {
    if (prices_.empty() || weights_.any()) prices_ = sizes_.back().ways->prices_by_speed();
    double most = 0;
    for (int turn = 0; turn < kOptions.turns; ++turn) {
      double all = 0;
      for (size_t i = 0; i < gpus_.size(); ++i) all += prices_[i] * gpus_[i];
      for (double& price : prices_) price /= all;
      used_.assign(gpus_.size(), 0);
      most = std::max(most, total_price(s, range, interleave));
      if (most > 1 + kOptions.margin) break;
      // Better prices gain little.
      if (gpus_.size() == 1 || most < kOptions.promising + kOptions.promising_step * turn || spent()) break;
      for (size_t i = 0; i < gpus_.size(); ++i) {
        const double factor = std::clamp(used_[i] / gpus_[i] + 0.3, 0.4, 2.5);
        prices_[i] *= std::pow(factor / 1.3, std::pow(0.75, turn));
      }
    }
    return most;
  }
  const Point& at(int microbatches, double s, bool interleave) {
    const auto [it, added] = points_.try_emplace(microbatches);
    if (added) {
      it->second.price = kNever;
      for (OfSize& of : sizes_) {
        LimitWeights weights = weights_;
        weights.typical = std::max(1, weights_.typical / of.units);
        const double price =
            of.prices.least(s, (microbatches + of.units - 1) / of.units, interleave, prices_, weights);
        if (price >= it->second.price && !it->second.gpus.empty()) continue;
        it->second.price = price;
        it->second.gpus = of.prices.gpus();
      }
    }
    return it->second;
  }
  // The price of pipelines with that many microbatches in total, at least.
  double total_price(double s, const Range& range, bool interleave) {
    if (s != known_s_ || interleave != known_interleave_ || prices_ != known_prices_ ||
        weights_ != known_weights_)
      points_.clear();
    known_s_ = s;
    known_weights_ = weights_;
    known_interleave_ = interleave;
    known_prices_ = prices_;
    const double means[] = {range.microbatches / range.most, range.microbatches / range.least};
    const int most = static_cast<int>(range.microbatches) - range.least + 1;
    at(1, s, interleave);
    for (const double mean : means) {
      at(static_cast<int>(std::floor(mean)), s, interleave);
      at(static_cast<int>(std::ceil(mean)), s, interleave);
    }
    at(most, s, interleave);
    double least = 0;
    const double step = std::max(1.0, kOptions.unequal * means[0]);
    for (int looks = 0; looks < kOptions.points; ++looks) {
      list_low(most);
      own_steps_ += static_cast<int64_t>(low_.size() * low_.size() / 2);
      least = kNever;
      const Low *left = nullptr, *right = nullptr;
      double of_left = 0, of_right = 0;  // pipelines
      const auto keep = [&](const Low& l, const Low& r, double lefts, double rights) {
        const double price = lefts * l.price + rights * r.price;
        if (price >= least) return;
        least = price;
        left = &l;
        right = &r;
        of_left = lefts;
        of_right = rights;
      };
      // The price is piecewise linear in the number of pipelines.
      for (const Low& l : low_) {
        if (l.m >= means[0] && l.m <= means[1]) keep(l, l, range.microbatches / l.m, 0);
        for (const int pipelines : {range.least, range.most}) {
          const double mean = range.microbatches / pipelines;
          if (l.m >= mean) continue;
          for (const Low& r : low_) {
            if (r.m < mean) continue;
            const double rights = pipelines * (mean - l.m) / (r.m - l.m);
            keep(l, r, pipelines - rights, rights);
          }
          if (range.least == range.most) break;
        }
      }
      if (left == nullptr || least > 1 + kOptions.margin) return least;
      for (size_t i = 0; i < gpus_.size(); ++i)
        used_[i] = left->point->gpus[i] * of_left + right->point->gpus[i] * of_right;
      const Low* open = right->to > right->from + step ? right
                        : left->to > left->from + step ? left
                                                       : nullptr;
      if (open == nullptr || spent()) return least;
      at((open->from + open->to) / 2, s, interleave);
    }
    return least;
  }
  // Lower bounds between the known prices, which grow with the number of microbatches.
  void list_low(int most) {
    low_.clear();
    for (auto it = points_.begin(); it != points_.end() && it->first <= most; ++it) {
      if (it->second.price == kNever) break;
      low_.push_back({static_cast<double>(it->first), it->second.price, it->first, it->first, &it->second});
      const auto next = std::next(it);
      const int end = next == points_.end() ? most : std::min(most, next->first - 1);
      if (end > it->first)
        low_.push_back({static_cast<double>(end), it->second.price, it->first, end + 1, &it->second});
    }
  }

  std::vector<OfSize> sizes_;  // that are usable
  Deadline& deadline_;
  std::vector<double> gpus_, prices_, used_, known_prices_;
  double known_s_ = 0;
  LimitWeights weights_, known_weights_;
  size_t refuting_ = 0;  // in the options: the weights that refuted last
  int64_t own_steps_ = 0, last_step_ = 0;
  bool known_interleave_ = false;
  std::map<int, Point> points_;
  std::vector<Low> low_;
};

class Cells {
 public:
  Cells(const Space& space, const PlanFeatures& offered, double incumbent_s, Deadline& deadline)
      : space_(space),
        offered_(offered),
        model_(space.kinds),
        incumbent_s_(incumbent_s),
        deadline_(deadline),
        crossing_(space),
        nodes_(space) {
    std::set<std::string> all;
    for (size_t p = 0; p < space.pools.size(); ++p)
      if (!space.pools[p].joint && !space.pools[p].options.empty()) all.insert(space.resources.pools[p].zone);
    if (all.size() > 1)
      for (const std::string& zone : all) cases_.push_back({space, {zone}});
    cases_.push_back({space, all});
    for (const ZoneCase& of : cases_) limits_.emplace_back(space, of.zones);
    const auto* size = kOptions.sizes;
    while (space.gpus() > size->gpus) ++size;
    most_steps_ = size->steps;
  }

  // Of plans of a kind, if one is given.
  Bound least(const PlanKind* kind = nullptr) {
    Bound out{kNever, kNever};
    if (!list(kind, out)) return {0, 0};
    if (kind != nullptr)
      std::erase_if(cells_, [&](const Cell& cell) {
        return cell.microbatch != kind->microbatch || cell.pipelines != kind->pipelines ||
               cell.zero != kind->zero || cell.interleave != kind->interleave;
      });
    if (cells_.empty()) return out;
    join_cells();
    std::sort(cells_.begin(), cells_.end(), [](const Cell& a, const Cell& b) { return a.s < b.s; });
    double low = cells_.empty() ? incumbent_s_ : cells_.front().s, high = incumbent_s_;
    while (high > low * kOptions.exact && !spent()) {
      const double s = std::isfinite(high) ? std::sqrt(low * high) : 2 * low;
      if (refuted(s))
        low = s;
      else
        high = s;
    }
    out.iteration_s = incumbent_s_;
    for (const Cell& cell : cells_) out.iteration_s = std::min(out.iteration_s, cell.s);
    return {out.iteration_s * kBoundRounding, out.charge * kBoundRounding};
  }

 private:
  bool spent() { return steps_ >= most_steps_ || deadline_.expired(); }

  // False when the time is over. Plans that share gradients take no less time than those that share optimizer
  // states only, and need no less memory than those that share parameters: where no kind is asked for, cells
  // of the highest degree are for all.
  bool list(const PlanKind* kind, Bound& out) {
    const bool has_interleave = offered_.contains(PlanFeature::interleave);
    std::vector<int> sizes = space_.microbatches;
    const int any = kind == nullptr ? any_microbatch(most_useful_size()) : kind->microbatch;
    const bool unlike =
        is_any(any) && space_.sizes_of(any).size() > 1 && offered_.contains(PlanFeature::unlike_microbatches);
    if (unlike) sizes.push_back(any);
    for (size_t z = 0; z < cases_.size(); ++z)
      for (const int microbatch : sizes) {
        const int most = static_cast<int>(std::min<int64_t>(space_.gpus(), microbatches(microbatch)));
        for (int pipelines = is_any(microbatch) ? 2 : 1; pipelines <= most; ++pipelines) {
          if (deadline_.expired()) return false;
          const std::span<const Zero> degrees = zero_degrees(offered_, space_.most_sharers(pipelines));
          for (const Zero zero : degrees) {
            if (kind == nullptr && zero != degrees.front() && zero != degrees.back()) continue;
            Cell cell{0, static_cast<int>(z), microbatch, pipelines, pipelines, zero, false};
            const AreaBound& bound = area(cell);
            if (!bound.holds(pipelines)) continue;
            out.charge =
                std::min(out.charge, bound.ways().charge * static_cast<double>(microbatches(microbatch)));
            for (const bool interleave : {false, true}) {
              if (interleave && (!has_interleave || is_any(microbatch))) continue;
              // Those of any sizes are a bound for all of one size, too.
              if (unlike && !is_any(microbatch) && microbatch <= -any && pipelines > 1 && !interleave)
                continue;
              cell.interleave = interleave;
              cell.s = floor_s(cell, bound);
              cells_.push_back(cell);
            }
          }
        }
      }
    return true;
  }

  // The largest of a microbatch that comes through all layers before the known plan ends.
  int most_useful_size() {
    int most = 0;
    for (const int size : space_.microbatches) {
      const int pipelines = static_cast<int>(std::min<int64_t>(space_.gpus(), microbatches(size)));
      const Zero zero = zero_degrees(offered_, space_.most_sharers(pipelines)).back();
      const GroupWays& ways =
          area({0, static_cast<int>(cases_.size()) - 1, size, pipelines, pipelines, zero, false}).ways();
      if (most == 0 || ways.overhead_s + ways.path_s < incumbent_s_) most = size;
    }
    return most;
  }

  // A lower bound that takes a few operations.
  double floor_s(const Cell& cell, const AreaBound& bound) {
    const GroupWays& ways = bound.ways();
    const auto all = static_cast<double>(microbatches(cell.microbatch));
    const auto zones = static_cast<size_t>(cell.zones);
    const double one_node_s = ways.overhead_s + NodeCrossing::one_node_s(ways, cell.pipelines, all),
                 nodes_s = limits_[zones].least_s(bound, {cell.pipelines, cell.interleave}, all);
    double s = std::max({bound.iteration_s(all, cell.pipelines),
                         nodes_.least_s(ways, cell.microbatch, cell.pipelines, all, cell.interleave),
                         std::min(nodes_s, one_node_s)});
    if (cases_[zones].zones.size() > 1)
      s = std::max(s, crossing_.least_s(ways, cell.microbatch, cell.pipelines,
                                        std::ceil(all / cell.pipelines), cell.interleave));
    return s;
  }

  // Cells that share a table of prices are refuted together.
  void join_cells() {
    std::map<std::tuple<int, int, int, Zero, bool>, Cell> joined;
    for (const Cell& cell : cells_) {
      if (cell.s >= incumbent_s_) continue;
      const int least = numbers_like(cell.pipelines, kOptions.table).first;
      const auto [it, added] =
          joined.try_emplace({cell.zones, cell.microbatch, least, cell.zero, cell.interleave}, cell);
      Cell& of = it->second;
      of.s = std::min(of.s, cell.s);
      of.pipelines = std::min(of.pipelines, cell.pipelines);
      of.most_pipelines = std::max(of.most_pipelines, cell.pipelines);
    }
    cells_.clear();
    for (const auto& [key, cell] : joined) cells_.push_back(cell);
  }

  // Is there no plan that ends by then? Not known either when the effort is spent.
  bool refuted(double s) {
    for (Cell& cell : cells_) {
      if (cell.s >= s) continue;
      if (spent()) return false;
      PriceTable& prices = table(cell);
      const int64_t before = prices.steps();
      const Range range{static_cast<double>(microbatches(cell.microbatch)), cell.pipelines,
                        cell.most_pipelines};
      const bool refutes = prices.refutes(s, range, cell.interleave, most_steps_ - steps_);
      steps_ += prices.steps() - before;
      if (refutes) {
        cell.s = s;
        continue;
      }
      std::swap(cell, cells_.front());
      return false;
    }
    return true;
  }

  int64_t microbatches(int size) const {
    return num_microbatches(space_.context.job.training.global_batch, std::max(1, size));
  }

  // Numbers of pipelines, within about that factor, that share tables.
  static std::pair<int, int> numbers_like(int pipelines, double factor) {
    int least = 1, most = 1;
    while (most < pipelines) {
      least = most + 1;
      most = least < kOptions.few ? least : static_cast<int>(least * factor);
    }
    return {least, most};
  }

  const AreaBound& area(const Cell& cell) {
    const auto [least, most] = numbers_like(cell.pipelines, kOptions.area);
    std::unique_ptr<AreaBound>& bound = areas_[{cell.zones, cell.microbatch, least, cell.zero}];
    if (!bound)
      bound = std::make_unique<AreaBound>(space_, model_, cases_[static_cast<size_t>(cell.zones)].rates,
                                          question(cell, least, most));
    return *bound;
  }
  GroupWays::Question question(const Cell& cell, int least, int most) const {
    return {cell.microbatch,
            least,
            most,
            cell.zero,
            offered_.contains(PlanFeature::recompute),
            offered_.contains(PlanFeature::split_backward),
            offered_.contains(PlanFeature::hybrid_zero),
            cases_[static_cast<size_t>(cell.zones)].zones};
  }
  PriceTable& table(const Cell& cell) {
    const auto [least, most] = numbers_like(cell.pipelines, kOptions.table);
    std::unique_ptr<PriceTable>& of = tables_[{cell.zones, cell.microbatch, least, cell.zero}];
    if (!of)
      of = std::make_unique<PriceTable>(space_, model_, cases_[static_cast<size_t>(cell.zones)].rates,
                                        question(cell, least, most), deadline_);
    return *of;
  }

  const Space& space_;
  const PlanFeatures& offered_;
  IterationModel model_;
  const double incumbent_s_;
  Deadline& deadline_;
  Crossing crossing_;
  const NodeCrossing nodes_;
  int64_t steps_ = 0, most_steps_ = 0;
  std::vector<ZoneCase> cases_;
  std::vector<WorkLimits> limits_;  // by case
  std::map<std::tuple<int, int, int, Zero>, std::unique_ptr<AreaBound>> areas_;
  std::map<std::tuple<int, int, int, Zero>, std::unique_ptr<PriceTable>> tables_;
  std::vector<Cell> cells_;
};

}  // namespace

Bound least_possible(const Space& space, const PlanFeatures& offered, double incumbent_s,
                     Deadline& deadline) {
  return Cells(space, offered, incumbent_s, deadline).least();
}

double least_possible(const Space& space, const PlanFeatures& offered, const PlanKind& kind) {
  Deadline never(kNever);
  return Cells(space, offered, kNever, never).least(&kind).iteration_s;
}

}  // namespace sailor::native
