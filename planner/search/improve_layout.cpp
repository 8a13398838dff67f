#include "planner/search/improve_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/search/dice.h"
#include "planner/search/pipeline_blocks.h"
#include "planner/search/zone_fill.h"

namespace sailor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMostColumns = 24;  // of all patterns together
// Relative to the value: what an uphill step may cost, at first and at last.
constexpr double kFirstTemperatures[] = {3e-3, 1e-3}, kLastTemperature = 2e-5;
constexpr double kSmoothShare = 0.7;  // of smooth maxima; the rest is the value itself
constexpr double kExcessWeight = 20;  // of what a limit is exceeded by
// Of resources: arrangements may pass through what is not possible on their way.
constexpr double kOveruseWeight = 1, kMostExcess = 0.2;
// Of every column of the patterns: of two equals the simpler one, which more moves lead away from.
constexpr double kColumnWeights[] = {1e-4, 6e-4};
constexpr double kPolishTemperature = 2e-4;
constexpr int kCycles = 12;
constexpr int kFillShare = 4;      // for filling zones: one step for so many
constexpr int kFarthestShift = 3;  // layers

double allowed_value(const Goal& goal, const LayoutValue& value) {
  return value.iteration_s <= goal.max_iteration_s && value.usd <= goal.max_usd
             ? goal.value(value.iteration_s, value.usd)
             : kNever;
}

class Annealing {
 public:
  Annealing(const RealizeProblem& problem, const Layout& layout)
      : p_(problem), costs_(problem, layout), blocks_(BlockCosts::blocks_of(costs_.columns_of(layout))) {}

  bool open() const { return p_.replicas > 1 && costs_.open(); }

  Realized run(Realized start, int steps, const std::function<bool()>& expired) {
    best_value_ = allowed_value(p_.goal, start.value);
    const BlockEnergy energy = [&](const BlockCosts::Score& score, double excess) {
      return energy_of(score, excess);
    };
    const PipelineBlocks filled = fill_zones(p_, start.layout, costs_, energy, steps / kFillShare);
    const PipelineBlocks given = blocks_;
    best_blocks_ = given;
    // Which start, how hot and how simple suits a problem best is not known before: in turns.
    for (int cycle = 0; cycle < kCycles; ++cycle) {
      blocks_ = cycle % 3 == 0 ? given : cycle % 3 == 1 && !filled.empty() ? filled : best_blocks_;
      column_weight_ = kColumnWeights[cycle / 2 % 2];
      cool(steps / kCycles, kFirstTemperatures[cycle % 2], expired);
    }
    // What is left are small steps.
    blocks_ = best_blocks_;
    column_weight_ = 0;
    cool(steps / kCycles, kPolishTemperature, expired);
    Realized out;
    out.layout = costs_.layout_of(best_blocks_);
    out.value = evaluate(p_.costs.stage(), p_.costs.resources(), out.layout, p_.replicas, p_.microbatches,
                         p_.overhead_s);
    // Another order of the same sum: rounding must not make a limit fail.
    return allowed_value(p_.goal, out.value) < allowed_value(p_.goal, start.value) ? out : start;
  }

 private:
  // From where blocks_ stands, at a falling temperature.
  void cool(int steps, double first_temperature, const std::function<bool()>& expired) {
    next_ = blocks_;
    if (!tidy()) return;
    blocks_ = next_;
    double energy = keep_if_best(blocks_);
    const double scale = energy;
    for (int step = 0; step < steps; ++step) {
      if (step % 256 == 0 && expired()) break;
      const double temperature =
          scale * first_temperature * std::pow(kLastTemperature / first_temperature, step / double(steps));
      next_ = blocks_;
      if (!move() || !tidy()) continue;
      const double e = keep_if_best(next_);
      if (e > energy && dice_.fraction() >= std::exp((energy - e) / temperature)) continue;
      blocks_.swap(next_);
      energy = e;
    }
  }

  double keep_if_best(const PipelineBlocks& blocks) {
    const double excess = costs_.excess(blocks);
    if (excess > kMostExcess) return kNever;
    const BlockCosts::Score score = costs_.score(blocks);
    if (const double v = allowed_value(p_.goal, score.value); excess <= 0 && v < best_value_ * (1 - 1e-12)) {
      best_value_ = v;
      best_blocks_ = blocks;
    }
    return energy_of(score, excess);
  }

  double energy_of(const BlockCosts::Score& score, double overused) const {
    const LayoutValue& v = score.value;
    const double value = p_.goal.value(v.iteration_s, v.usd);
    const double smooth = p_.goal.value(score.smooth.iteration_s, score.smooth.usd);
    const double excess =
        std::max({0.0, v.iteration_s / p_.goal.max_iteration_s - 1, v.usd / p_.goal.max_usd - 1});
    return ((1 - kSmoothShare) * value + kSmoothShare * smooth) *
           (1 + kExcessWeight * excess + kOveruseWeight * overused +
            column_weight_ * static_cast<double>(columns_));
  }

  size_t any_block() { return dice_.below(next_.size()); }
  int any_stage() { return dice_.below(costs_.stages()); }
  std::vector<int>& any_column(size_t block) {
    return next_[block].columns[dice_.below(next_[block].columns.size())];
  }

  // Cuts a block into one that is repeated `times` times and the rest.
  void split(size_t block, int times) {
    if (times <= 0 || times >= next_[block].times) return;
    PipelineBlock rest = next_[block];
    rest.times -= times;
    next_[block].times = times;
    next_.insert(next_.begin() + block + 1, std::move(rest));
  }

  void split_somewhere(size_t block) {
    const int times = next_[block].times;
    if (times > 1) split(block, dice_.below(2) == 0 ? times / 2 : 1 + dice_.below(times - 1));
  }

  bool move() {
    switch (dice_.below(11)) {
      case 0:
        split_somewhere(any_block());
        return other_zone();
      case 1:
        return other_zone();
      case 2:
        return swap_stages();
      case 3:
      case 4:
        return swap_columns();
      case 5:
        return interleave();
      case 6:
        return take_apart();
      case 7:
        return move_block();
      case 8:
        return reorder_stage();
      case 9:
        return swap_whole_stages();
      default:
        return swap_zones();
    }
  }

  bool other_zone() {
    int& option = any_column(any_block())[any_stage()];
    const std::vector<int>& alike = costs_.alike(option);
    const int other = alike[dice_.below(alike.size())];
    if (other == option) return false;
    option = other;
    return true;
  }

  // Two stages of a pipeline change zones.
  bool swap_stages() {
    const size_t b = any_block();
    if (dice_.below(2) == 0) split_somewhere(b);
    std::vector<int>& column = any_column(b);
    int &x = column[any_stage()], &y = column[any_stage()];
    if (x == y || &costs_.alike(x) == &costs_.alike(y)) return false;
    const std::vector<int>& alike = costs_.alike(x);
    if (std::find(alike.begin(), alike.end(), y) == alike.end()) return false;
    std::swap(x, y);
    return true;
  }

  // In all pipelines.
  bool swap_whole_stages() {
    const int i = any_stage(), j = any_stage();
    if (i == j) return false;
    for (PipelineBlock& block : next_)
      for (std::vector<int>& column : block.columns) {
        const std::vector<int>& alike = costs_.alike(column[i]);
        if (std::find(alike.begin(), alike.end(), column[j]) == alike.end()) return false;
        std::swap(column[i], column[j]);
      }
    return true;
  }

  // Two pipelines (or two equally long series of them) change places, in one stage or in all.
  bool swap_columns() {
    size_t a = any_block(), b = any_block();
    if (a > b) std::swap(a, b);
    if (a != b && next_[a].times != next_[b].times && dice_.below(2) == 0) {
      const int times = std::min(next_[a].times, next_[b].times);
      split(b, times);
      const size_t before = next_.size();
      split(a, times);
      b += next_.size() - before;
    }
    std::vector<int>&x = any_column(a), &y = any_column(b);
    if (&x == &y || x == y) return false;
    if (dice_.below(3) == 0)
      x.swap(y);
    else {
      const int i = any_stage();
      if (x[i] == y[i]) return false;
      // Mixed stages: kinds change places with their zones, which keeps what the stage is made of only when
      // both are repeated equally often.
      if (next_[a].times != next_[b].times) {
        const std::vector<int>& alike = costs_.alike(x[i]);
        if (std::find(alike.begin(), alike.end(), y[i]) == alike.end()) return false;
      }
      std::swap(x[i], y[i]);
      return true;
    }
    return next_[a].times == next_[b].times;
  }

  // A A A B B becomes A B A B A.
  bool interleave() {
    if (next_.size() < 2) {
      if (next_[0].times < 2) return false;
      split(0, next_[0].times / 2);
    }
    const size_t a = any_block(), b = any_block();
    if (a == b || next_[a].columns.size() + next_[b].columns.size() > kLongestPattern) return false;
    PipelineBlock both = next_[a];
    both.columns.insert(both.columns.end(), next_[b].columns.begin(), next_[b].columns.end());
    both.times = std::min(next_[a].times, next_[b].times);
    next_[a].times -= both.times;
    next_[b].times -= both.times;
    next_.insert(next_.begin() + a + dice_.below(2), std::move(both));
    std::erase_if(next_, [](const PipelineBlock& block) { return block.times == 0; });
    return true;
  }

  bool take_apart() {
    const size_t b = any_block();
    PipelineBlock& block = next_[b];
    if (block.columns.size() < 2) return false;
    const size_t at = 1 + dice_.below(block.columns.size() - 1);
    PipelineBlock rest{{block.columns.begin() + at, block.columns.end()}, block.times};
    block.columns.resize(at);
    next_.insert(next_.begin() + b + 1, std::move(rest));
    return true;
  }

  bool move_block() {
    if (next_.size() < 2) return false;
    const size_t from = any_block(), to = any_block();
    if (from == to) return false;
    PipelineBlock block = std::move(next_[from]);
    next_.erase(next_.begin() + from);
    next_.insert(next_.begin() + to, std::move(block));
    return true;
  }

  // The replicas of one stage in a new order, whatever they face: zone after zone, or some zones in turns.
  bool reorder_stage() {
    BlockCosts::Columns columns = BlockCosts::columns_of(next_);
    const int stage = any_stage();
    std::vector<std::pair<int, int>> counts;  // option, replicas
    for (const std::vector<int>& column : columns) {
      const auto known = std::find_if(counts.begin(), counts.end(),
                                      [&](const auto& count) { return count.first == column[stage]; });
      if (known == counts.end())
        counts.emplace_back(column[stage], 1);
      else
        ++known->second;
    }
    if (counts.size() < 2) return false;
    for (size_t k = counts.size(); k > 1; --k) std::swap(counts[k - 1], counts[dice_.below(k)]);
    size_t j = 0;
    for (size_t first = 0; first < counts.size();) {
      const size_t end = std::min(counts.size(), first + 1 + dice_.below(3));
      for (bool left = true; left;) {
        left = false;
        for (size_t k = first; k < end; ++k)
          if (counts[k].second > 0) {
            columns[j++][stage] = counts[k].first;
            left = --counts[k].second > 0 || left;
          }
      }
      first = end;
    }
    next_ = BlockCosts::blocks_of(columns);
    return true;
  }

  // Two zones change names, in one stage or in all.
  bool swap_zones() {
    const int stage = any_stage();
    const int a = any_column(any_block())[stage];
    const std::vector<int>& alike = costs_.alike(a);
    const int b = alike[dice_.below(alike.size())];
    if (a == b) return false;
    const bool everywhere = dice_.below(2) == 0;
    for (PipelineBlock& block : next_)
      for (std::vector<int>& column : block.columns)
        for (int i = 0; i < costs_.stages(); ++i)
          if (everywhere || i == stage) {
            if (column[i] == a)
              column[i] = b;
            else if (column[i] == b)
              column[i] = a;
          }
    return true;
  }

  // Joins what has become equal; says whether the patterns are still few.
  bool tidy() {
    size_t columns = 0;
    for (size_t b = 0; b < next_.size(); ++b) {
      PipelineBlock& block = next_[b];
      const bool alike = std::all_of(block.columns.begin(), block.columns.end(),
                                     [&](const auto& column) { return column == block.columns.front(); });
      if (alike && block.columns.size() > 1) {
        block.times *= static_cast<int>(block.columns.size());
        block.columns.resize(1);
      }
      if (b > 0 && next_[b - 1].columns == block.columns) {
        next_[b - 1].times += block.times;
        next_.erase(next_.begin() + b--);
        continue;
      }
      columns += block.columns.size();
    }
    columns_ = columns;
    return columns <= kMostColumns;
  }

  const RealizeProblem& p_;
  BlockCosts costs_;
  PipelineBlocks blocks_, next_, best_blocks_;
  double best_value_ = kNever;
  double column_weight_ = 0;
  size_t columns_ = 0;  // of the patterns of next_
  Dice dice_;
};

bool memory_suffices(const RealizeProblem& problem, const Layout& layout) {
  const int P = static_cast<int>(layout.stages.size());
  for (int i = 0; i < P; ++i) {
    const Layout::Stage& stage = layout.stages[i];
    int in_flight = P - i;
    if (problem.costs.stage().model() == CostModel::native)
      in_flight = std::min(in_flight, static_cast<int>(problem.microbatches));
    for (const Layout::Run& run : stage.runs)
      if (problem.costs.lowest_first(run.option, stage.end_layer, in_flight, problem.replicas > 1) >
          stage.first_layer)
        return false;
  }
  return true;
}

}  // namespace

Realized improve_cut(const RealizeProblem& problem, Realized best) {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i + 1 < best.layout.stages.size(); ++i)
      for (int distance = 1; distance <= kFarthestShift; ++distance)
        for (int shift : {-distance, distance}) {
          Realized next = best;
          Layout::Stage &before = next.layout.stages[i], &behind = next.layout.stages[i + 1];
          before.end_layer += shift;
          behind.first_layer += shift;
          if (before.end_layer <= before.first_layer || behind.end_layer <= behind.first_layer) continue;
          if (!memory_suffices(problem, next.layout)) continue;
          next.value = evaluate(problem.costs.stage(), problem.costs.resources(), next.layout,
                                problem.replicas, problem.microbatches, problem.overhead_s);
          if (allowed_value(problem.goal, next.value) >=
              allowed_value(problem.goal, best.value) * (1 - 1e-12))
            continue;
          best = std::move(next);
          moved = true;
        }
  }
  return best;
}

Realized improve_layout(const RealizeProblem& problem, Realized start, int steps,
                        const std::function<bool()>& expired) {
  Annealing annealing(problem, start.layout);
  if (!annealing.open()) return start;
  return improve_cut(problem, annealing.run(std::move(start), steps, expired));
}

}  // namespace sailor
