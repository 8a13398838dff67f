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

#include "planner/search/native/group_ways.h"
#include "planner/search/native/pipeline_prices.h"

namespace sailor::native {
namespace {

constexpr double kRounding = 1 - 1e-9;

struct BoundOptions {
  double exact = 1.01;    // the bound is worked out up to this factor
  double unequal = 0.01;  // numbers of microbatches that are told apart, by their mean
  int points = 40;        // of the price of a pipeline by its number of microbatches
  int turns = 8;          // of changes of prices
  double promising = 0.6, promising_step = 0.05;  // of what prices must come to, at first and with each turn
  // Effort, in steps of PipelinePrices.
  struct UpTo {
    int gpus;
    int64_t steps;
  };
  UpTo sizes[3] = {{32, 1'200'000}, {256, 5'000'000}, {std::numeric_limits<int>::max(), 18'000'000}};
};

constexpr BoundOptions kOptions;

// What all groups of GPUs need at least, whatever their pipelines: every layer where it takes least, when a
// GPU has the price of its speed.
class AreaBound {
 public:
  AreaBound(const Space& space, IterationModel& model, const ZoneRates& rates,
            const GroupWays::Question& question)
      : ways_(space, model, rates, question) {
    if (!ways_.usable()) return;
    const std::vector<double> prices = ways_.prices_by_speed();
    const double count[] = {1, static_cast<double>(ways_.blocks()), 1};
    for (const LayerKind kind : kLayerKinds) {
      double computing = kNever, after = kNever;
      for (const GroupWay& way : ways_.ways) {
        const double price = prices[static_cast<size_t>(way.supply)] * way.tp;
        computing = std::min(computing, price * way.needs[kind].both_s());
        after = std::min(after, price * way.needs[kind].after_s);
      }
      computing_s_ += count[kind] * computing;
      after_s_ += count[kind] * after;
      longest_layer_s_ = std::max(longest_layer_s_, ways_.fastest[kind].both_s());
    }
    std::vector<double> blocks_per_gpu(ways_.supplies.size(), 0);
    for (size_t w = 0; w < ways_.ways.size(); ++w) {
      const GroupWay& way = ways_.ways[w];
      double& most = blocks_per_gpu[static_cast<size_t>(way.supply)];
      most = std::max(most, static_cast<double>(ways_.most_blocks(static_cast<int>(w), 1)) / way.tp);
    }
    for (size_t s = 0; s < blocks_per_gpu.size(); ++s) models_ += ways_.supplies[s].gpus * blocks_per_gpu[s];
    models_ = ways_.blocks() > 0 ? models_ / ways_.blocks() : kNever;
  }

  const GroupWays& ways() const { return ways_; }
  // Is there memory for that number of models?
  bool holds(int pipelines) const { return ways_.usable() && models_ >= pipelines * kRounding; }
  double iteration_s(double microbatches, int pipelines) const {
    const double most = std::ceil(microbatches / pipelines * kRounding);
    return ways_.overhead_s + ways_.first_sum_s +
           std::max({microbatches * computing_s_ + (pipelines > 1 ? pipelines * after_s_ : 0), ways_.path_s,
                     longest_layer_s_ * most});
  }

 private:
  const GroupWays ways_;
  // By model and microbatch, by model and iteration; if all GPUs share the work.
  double computing_s_ = 0, after_s_ = 0;
  double longest_layer_s_ = 0;
  double models_ = 0;  // that memory has room for
};

// Plans in some zones, and in all of them.
struct ZoneCase {
  ZoneCase(const Space& space, std::set<std::string> of) : zones(std::move(of)), rates(space, zones) {}

  std::set<std::string> zones;
  ZoneRates rates;
};

// What it takes at least to use several zones: messages between them, or sums.
class Crossing {
 public:
  explicit Crossing(const Space& space) : space_(space) {
    const bool mesh = space.context.framework.sums == FrameworkStyle::Sums::mesh;
    std::map<std::string, std::set<int>> nodes;
    for (size_t p = 0; p < space.pools.size(); ++p)
      if (!space.pools[p].joint)
        nodes[space.resources.pools[p].zone].insert(space.pools[p].nodes.begin(), space.pools[p].nodes.end());
    for (const auto& [zone, of] : nodes) most_nodes_ = std::max(most_nodes_, static_cast<double>(of.size()));
    for_each_link([&](const SpaceOption& from, const SpaceOption&, const LinkCurve& link) {
      if (!mesh) return;
      s_per_byte_ = std::min(s_per_byte_, least_s_per_byte(&link, 1) / from.tp);
      card_s_per_byte_ = std::min(card_s_per_byte_, least_s_per_byte(&link, 1e6));
    });
    if (!mesh) s_per_byte_ = card_s_per_byte_ = 0;
  }

  // Of `pipelines` with the busiest of `microbatches`.
  double least_s(const GroupWays& ways, int microbatch, int pipelines, double microbatches) {
    const double message_s = least_message_s(microbatch), path_s = ways.path_s;
    const double every_crosses_s = path_s + (microbatches + 1) * message_s;
    if (pipelines < 2) return ways.overhead_s + every_crosses_s;
    // A layer is held in several zones where some pipeline does not cross; every layer where none does. Of
    // all that hold it those in the zone with fewest send half of their gradients or more to other zones.
    LayerNeeds forward;
    for (const LayerKind kind : kLayerKinds)
      forward.add(ways.fastest[kind], kind == kBlock ? ways.blocks() : 1);
    const double halves = (ways.phases + ways.gathered) / 2;
    const std::array<double, 3>& bytes = ways.gradient_bytes;
    const double layer_s = halves * std::max(s_per_byte_, card_s_per_byte_) *
                           *std::min_element(bytes.begin(), bytes.end()),
                 model_s = halves * card_s_per_byte_ *
                           (bytes[kFirst] + ways.blocks() * bytes[kBlock] + bytes[kLast]) / most_nodes_;
    const double some_cross_s = std::max(path_s + 2 * message_s, forward.forward_s + layer_s),
                 none_crosses_s = std::max(path_s, forward.forward_s + std::max(layer_s, model_s));
    return ways.overhead_s + std::min({every_crosses_s, some_cross_s, none_crosses_s});
  }

 private:
  template <typename Visit>
  void for_each_link(const Visit& visit) {
    for (const SpaceOption& from : space_.options)
      for (const SpaceOption& to : space_.options) {
        if (space_.kinds[from.kind].zone == space_.kinds[to.kind].zone) continue;
        if (const LinkCurve* link = space_.kinds.find_link(from.kind, to.kind, false)) visit(from, to, *link);
      }
  }
  double least_message_s(int microbatch) {
    const auto [it, added] = message_s_.try_emplace(microbatch, kNever);
    if (!added) return it->second;
    const PlanningContext& context = space_.context;
    for_each_link([&](const SpaceOption& from, const SpaceOption& to, const LinkCurve& link) {
      const StageKind& kind = space_.kinds[from.kind];
      const double links = std::min(from.tp, to.tp);
      for (size_t l = 0; l + 1 < kind.sizes->size(); ++l) {
        const double bytes = static_cast<double>((*kind.sizes)[l].output_elements) *
                             element_bytes(context.job.training.precision) * microbatch;
        it->second =
            std::min(it->second,
                     kind.profile->overheads.message_slowdown *
                         link.time_s(context.framework.partitioned_messages ? bytes / links : bytes, links));
      }
    });
    return it->second;
  }

  const Space& space_;
  double s_per_byte_ = kNever, card_s_per_byte_ = kNever, most_nodes_ = 1;
  std::map<int, double> message_s_;
};

// All plans of a microbatch size and a number of pipelines, with or without a sharded optimizer and
// interleaving, in some zones.
struct Cell {
  double s = 0;  // at least
  int zones = 0, microbatch = 1, pipelines = 1;
  bool zero1 = false, interleave = false;
};

// What pipelines of some number of microbatches cost at least that end by a time.
class PriceTable {
 public:
  PriceTable(const Space& space, IterationModel& model, const ZoneRates& rates,
             const GroupWays::Question& question)
      : ways_(space, model, rates, question), prices_of_(ways_, question.replicas > 1) {
    for (const GpuSupply& supply : ways_.supplies) gpus_.push_back(supply.gpus);
    if (ways_.usable()) prices_ = ways_.prices_by_speed();
  }

  // Is there none with so many pipelines that ends by then?
  bool refutes(double s, double microbatches, int pipelines, bool interleave) {
    if (!ways_.usable()) return true;
    for (int turn = 0; turn < kOptions.turns; ++turn) {
      double all = 0;
      for (size_t i = 0; i < gpus_.size(); ++i) all += prices_[i] * gpus_[i];
      for (double& price : prices_) price /= all;
      used_.assign(gpus_.size(), 0);
      const double least = mean_price(s, microbatches, pipelines, interleave);
      if (pipelines * least > 1 + 1e-9) return true;
      // Better prices gain little.
      if (gpus_.size() == 1 || pipelines * least < kOptions.promising + kOptions.promising_step * turn)
        return false;
      for (size_t i = 0; i < gpus_.size(); ++i) {
        const double factor = std::clamp(pipelines * used_[i] / gpus_[i] + 0.3, 0.4, 2.5);
        prices_[i] *= std::pow(factor / 1.3, turn < 3 ? 1 : 0.5);
      }
    }
    return false;
  }
  int64_t steps() const { return prices_of_.steps() + own_steps_; }

 private:
  struct Point {
    double price = 0;
    std::vector<double> gpus;
  };
  const Point& at(int microbatches, double s, bool interleave) {
    const auto [it, added] = points_.try_emplace(microbatches);
    if (added) {
      it->second.price = prices_of_.least(s, microbatches, interleave, prices_);
      it->second.gpus = prices_of_.gpus();
    }
    return it->second;
  }
  // The mean price of pipelines with that mean number of microbatches, at least.
  double mean_price(double s, double microbatches, int pipelines, bool interleave) {
    if (s != known_s_ || interleave != known_interleave_ || prices_ != known_prices_) points_.clear();
    known_s_ = s;
    known_interleave_ = interleave;
    known_prices_ = prices_;
    const double mean = microbatches / pipelines;
    const int most = static_cast<int>(microbatches) - pipelines + 1;
    at(1, s, interleave);
    at(static_cast<int>(std::floor(mean)), s, interleave);
    at(static_cast<int>(std::ceil(mean)), s, interleave);
    at(most, s, interleave);
    struct Low {
      double m, price;
      int from, to;  // between two that are known
      const Point* point;
    };
    std::vector<Low> low;
    double least = 0;
    const double step = std::max(1.0, kOptions.unequal * mean);
    for (int looks = 0; looks < kOptions.points; ++looks) {
      low.clear();
      for (auto it = points_.begin(); it != points_.end() && it->first <= most; ++it) {
        if (it->second.price == kNever) break;
        low.push_back({static_cast<double>(it->first), it->second.price, it->first, it->first, &it->second});
        const auto next = std::next(it);
        const int end = next == points_.end() ? most : std::min(most, next->first - 1);
        if (end > it->first)
          low.push_back({static_cast<double>(end), it->second.price, it->first, end + 1, &it->second});
      }
      own_steps_ += static_cast<int64_t>(low.size() * low.size() / 4);
      least = kNever;
      const Low *left = nullptr, *right = nullptr;
      for (const Low& l : low)
        for (const Low& r : low) {
          if (l.m > mean || r.m < mean) continue;
          const double part = r.m > l.m ? (mean - l.m) / (r.m - l.m) : 0;
          const double price = l.price + part * (r.price - l.price);
          if (price >= least) continue;
          least = price;
          left = &l;
          right = &r;
        }
      if (left == nullptr || pipelines * least > 1 + 1e-9) return least;
      const double part = right->m > left->m ? (mean - left->m) / (right->m - left->m) : 0;
      for (size_t i = 0; i < gpus_.size(); ++i)
        used_[i] = left->point->gpus[i] * (1 - part) + right->point->gpus[i] * part;
      const Low* open = right->to > right->from + step ? right
                        : left->to > left->from + step ? left
                                                       : nullptr;
      if (open == nullptr) return least;
      at((open->from + open->to) / 2, s, interleave);
    }
    return least;
  }

  const GroupWays ways_;
  PipelinePrices prices_of_;
  std::vector<double> gpus_, prices_, used_, known_prices_;
  double known_s_ = 0;
  int64_t own_steps_ = 0;
  bool known_interleave_ = false;
  std::map<int, Point> points_;
};

class Cells {
 public:
  Cells(const Space& space, const PlanFeatures& offered, double incumbent_s)
      : space_(space), offered_(offered), model_(space.kinds), incumbent_s_(incumbent_s), crossing_(space) {
    std::set<std::string> all;
    for (size_t p = 0; p < space.pools.size(); ++p)
      if (!space.pools[p].joint && !space.pools[p].options.empty()) all.insert(space.resources.pools[p].zone);
    if (all.size() > 1)
      for (const std::string& zone : all) cases_.push_back({space, {zone}});
    cases_.push_back({space, all});
    const auto* size = kOptions.sizes;
    while (space.gpus() > size->gpus) ++size;
    most_steps_ = size->steps;
  }

  Bound least() {
    Bound out{kNever, kNever};
    list(out);
    std::sort(cells_.begin(), cells_.end(), [](const Cell& a, const Cell& b) { return a.s < b.s; });
    if (cells_.empty()) return out;
    double low = cells_.front().s, high = incumbent_s_;
    while (high > low * kOptions.exact && steps_ < most_steps_) {
      const double s = std::isfinite(high) ? std::sqrt(low * high) : 2 * low;
      if (refuted(s))
        low = s;
      else
        high = s;
    }
    low = kNever;
    for (const Cell& cell : cells_) low = std::min(low, cell.s);
    out.iteration_s = std::min(low, incumbent_s_);
    return {out.iteration_s * kRounding, out.usd * kRounding};
  }

 private:
  void list(Bound& out) {
    const bool has_zero1 = offered_.contains(PlanFeature::zero1),
               has_interleave = offered_.contains(PlanFeature::interleave);
    for (size_t z = 0; z < cases_.size(); ++z)
      for (const int microbatch : space_.microbatches) {
        const int most = static_cast<int>(std::min<int64_t>(space_.gpus(), microbatches(microbatch)));
        for (int pipelines = 1; pipelines <= most; ++pipelines)
          for (const bool zero1 : {false, true}) {
            if (zero1 && (!has_zero1 || pipelines < 2)) continue;
            Cell cell{0, static_cast<int>(z), microbatch, pipelines, zero1, false};
            const AreaBound& bound = area(cell);
            if (!bound.holds(pipelines)) continue;
            out.usd = std::min(out.usd, bound.ways().usd * static_cast<double>(microbatches(microbatch)));
            for (const bool interleave : {false, true}) {
              if (interleave && !has_interleave) continue;
              cell.interleave = interleave;
              cell.s = bound.iteration_s(static_cast<double>(microbatches(microbatch)), pipelines);
              if (cases_[z].zones.size() > 1)
                cell.s = std::max(
                    cell.s,
                    crossing_.least_s(bound.ways(), microbatch, pipelines,
                                      std::ceil(static_cast<double>(microbatches(microbatch)) / pipelines)));
              cells_.push_back(cell);
            }
          }
      }
  }

  // Is there no plan that ends by then? Not known either when the effort is spent.
  bool refuted(double s) {
    for (Cell& cell : cells_) {
      if (cell.s >= s) continue;
      if (steps_ >= most_steps_) return false;
      PriceTable& prices = table(cell);
      const int64_t before = prices.steps();
      const bool refutes = prices.refutes(s, static_cast<double>(microbatches(cell.microbatch)),
                                          cell.pipelines, cell.interleave);
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
    return num_microbatches(space_.context.job.training.global_batch, size);
  }

  // Shared by all numbers of pipelines within a factor of four.
  const AreaBound& area(const Cell& cell) {
    int least = 1, most = 1;
    while (most < cell.pipelines) {
      least = most + 1;
      most *= 4;
    }
    std::unique_ptr<AreaBound>& bound = areas_[{cell.zones, cell.microbatch, least, cell.zero1}];
    if (!bound)
      bound = std::make_unique<AreaBound>(space_, model_, cases_[static_cast<size_t>(cell.zones)].rates,
                                          question(cell, least, most));
    return *bound;
  }
  GroupWays::Question question(const Cell& cell, int least, int most) const {
    return {cell.microbatch,
            least,
            most,
            cell.zero1,
            offered_.contains(PlanFeature::recompute),
            cases_[static_cast<size_t>(cell.zones)].zones};
  }
  PriceTable& table(const Cell& cell) {
    int least = 1, most = 1;
    while (most < cell.pipelines) {
      least = most + 1;
      most = std::max(least, least * 5 / 4);
    }
    std::unique_ptr<PriceTable>& of = tables_[{cell.zones, cell.microbatch, least, cell.zero1}];
    if (!of)
      of = std::make_unique<PriceTable>(space_, model_, cases_[static_cast<size_t>(cell.zones)].rates,
                                        question(cell, least, most));
    return *of;
  }

  const Space& space_;
  const PlanFeatures& offered_;
  IterationModel model_;
  const double incumbent_s_;
  Crossing crossing_;
  int64_t steps_ = 0, most_steps_ = 0;
  std::vector<ZoneCase> cases_;
  std::map<std::tuple<int, int, int, bool>, std::unique_ptr<AreaBound>> areas_;
  std::map<std::tuple<int, int, int, bool>, std::unique_ptr<PriceTable>> tables_;
  std::vector<Cell> cells_;
};

}  // namespace

Bound least_possible(const Space& space, const PlanFeatures& offered, double incumbent_s) {
  return Cells(space, offered, incumbent_s).least();
}

}  // namespace sailor::native
