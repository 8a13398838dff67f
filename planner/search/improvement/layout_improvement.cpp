#include "planner/search/improvement/layout_improvement.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/search/improvement/block_moves.h"
#include "planner/search/improvement/zone_assignment.h"
#include "planner/search/improvement/zone_filling.h"

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
constexpr int kFillShare = 4;  // for filling zones: one step for so many

class Annealing {
 public:
  Annealing(const AssignmentProblem& problem, const Layout& layout)
      : p_(problem),
        costs_(problem, layout),
        blocks_(BlockCosts::blocks_of(costs_.columns_of(layout))),
        moves_(costs_, next_) {}

  bool open() const { return p_.replicas > 1 && costs_.open(); }

  Assignment run(Assignment start, int steps, const std::function<bool()>& expired) {
    best_value_ = p_.goal.allowed_value(start.value.iteration_s, start.value.usd);
    const BlockEnergy energy = [&](const BlockCosts::Score& score, double excess) {
      return energy_of(score, excess);
    };
    const PipelineBlocks filled = fill_zones(p_, start.layout, costs_, energy, steps / kFillShare, expired);
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
    Assignment out;
    out.layout = costs_.layout_of(best_blocks_);
    out.value = evaluate(p_.costs.stage(), p_.costs.resources(), out.layout, p_.replicas, p_.microbatches);
    // Another order of the same sum: rounding must not make a limit fail.
    return p_.goal.allowed_value(out.value.iteration_s, out.value.usd) <
                   p_.goal.allowed_value(start.value.iteration_s, start.value.usd)
               ? out
               : start;
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
      const auto temperature = [&] {
        return scale * first_temperature *
               std::pow(kLastTemperature / first_temperature, step / double(steps));
      };
      next_ = blocks_;
      if (!moves_.move() || !tidy()) continue;
      const double e = keep_if_best(next_);
      if (e > energy && moves_.fraction() >= std::exp((energy - e) / temperature())) continue;
      blocks_.swap(next_);
      energy = e;
    }
  }

  double keep_if_best(const PipelineBlocks& blocks) {
    const double excess = costs_.excess(blocks);
    if (excess > kMostExcess) return kNever;
    const BlockCosts::Score score = costs_.score(blocks);
    if (const double v = p_.goal.allowed_value(score.value.iteration_s, score.value.usd);
        excess <= 0 && v < best_value_ * (1 - 1e-12)) {
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

  // Are the patterns of next_ still few?
  bool tidy() {
    columns_ = moves_.tidy();
    return columns_ <= kMostColumns;
  }

  const AssignmentProblem& p_;
  BlockCosts costs_;
  PipelineBlocks blocks_, next_, best_blocks_;
  double best_value_ = kNever;
  double column_weight_ = 0;
  size_t columns_ = 0;  // of the patterns of next_
  BlockMoves moves_;    // of next_
};

}  // namespace

Assignment improve_layout(const AssignmentProblem& problem, Assignment start, int steps,
                          const std::function<bool()>& expired) {
  Annealing annealing(problem, start.layout);
  if (!annealing.open()) return start;
  const Assignment annealed = annealing.run(std::move(start), steps, expired);
  return assign_zones(problem, annealed, expired);
}

}  // namespace sailor
