#include "planner/search/improvement/layout_improvement.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "planner/search/improvement/block_moves.h"
#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

class Annealing {
 public:
  Annealing(const AssignmentProblem& problem, const Layout& layout, const LayoutImprovementOptions& options,
            const std::function<bool()>& expired)
      : p_(problem),
        options_(options),
        expired_(expired),
        costs_(problem, layout),
        blocks_(BlockCosts::blocks_of(costs_.columns_of(layout))),
        best_blocks_(blocks_),
        moves_(costs_, next_) {}

  Assignment run(Assignment start) {
    if (p_.replicas < 2 || !costs_.open()) return start;
    const double start_value = p_.goal.allowed_value(start.value.iteration_s, start.value.charge);
    best_value_ = start_value;
    const PipelineBlocks given = blocks_;
    // The best start, temperature and weight differ between problems: cycles alternate.
    for (int cycle = 0; cycle < options_.cycles; ++cycle) {
      blocks_ = cycle % 3 == 0 ? given : best_blocks_;
      column_weight_ = options_.column_weight[cycle / 2 % 2];
      cool(options_.first_temperature[cycle % 2]);
    }
    blocks_ = best_blocks_;
    column_weight_ = 0;
    cool(options_.polish_temperature);
    Assignment out;
    out.layout = costs_.layout_of(best_blocks_);
    out.value = evaluate(p_.costs.stage(), p_.costs.resources(), out.layout, p_.replicas, p_.microbatches);
    // The sum in another order: rounding must not violate a limit.
    return p_.goal.allowed_value(out.value.iteration_s, out.value.charge) < start_value ? out : start;
  }

 private:
  // One cycle from blocks_ at a falling temperature.
  void cool(double first_temperature) {
    next_ = blocks_;
    if (!tidy()) return;
    blocks_ = next_;
    double energy = keep_if_best();
    const double scale = energy;
    const int steps = options_.steps / options_.cycles;
    for (int step = 0; step < steps; ++step) {
      if (step % 256 == 0 && expired_()) break;
      const auto accepts = [&](double e) {
        const double temperature =
            scale * first_temperature *
            std::pow(options_.last_temperature / first_temperature, step / double(steps));
        return e <= energy || moves_.fraction() < std::exp((energy - e) / temperature);
      };
      next_ = blocks_;
      if (!moves_.move() || !tidy()) continue;
      if (costs_.excess(next_) > 0 && accepts(energy_of(costs_.score(next_), 0))) {
        counted_ = next_;
        if (costs_.recount(counted_)) next_.swap(counted_);
      }
      const double e = keep_if_best();
      if (!accepts(e)) continue;
      blocks_.swap(next_);
      energy = e;
    }
  }

  // The energy of next_.
  double keep_if_best() {
    const double excess = costs_.excess(next_);
    if (excess > options_.max_overuse) return kNever;
    const BlockCosts::Score score = costs_.score(next_);
    if (const double v = p_.goal.allowed_value(score.value.iteration_s, score.value.charge);
        excess <= 0 && v < best_value_ * (1 - 1e-12)) {
      best_value_ = v;
      best_blocks_ = next_;
    }
    return energy_of(score, excess);
  }

  double energy_of(const BlockCosts::Score& score, double overuse) const {
    const LayoutValue& v = score.value;
    const double value = p_.goal.value(v.iteration_s, v.charge);
    const double smooth = p_.goal.value(score.smooth.iteration_s, score.smooth.charge);
    const double excess =
        std::max({0.0, v.iteration_s / p_.goal.max_iteration_s - 1, v.charge / p_.goal.max_charge() - 1});
    return ((1 - options_.smooth_share) * value + options_.smooth_share * smooth) *
           (1 + options_.excess_weight * excess + options_.overuse_weight * overuse +
            column_weight_ * static_cast<double>(columns_));
  }

  // Joins equal neighbours in next_; false when its patterns have too many columns.
  bool tidy() {
    columns_ = moves_.tidy();
    return columns_ <= options_.max_columns;
  }

  const AssignmentProblem& p_;
  const LayoutImprovementOptions& options_;
  const std::function<bool()>& expired_;
  BlockCosts costs_;
  PipelineBlocks blocks_, best_blocks_, next_, counted_;
  double best_value_ = kNever;
  double column_weight_ = 0;
  size_t columns_ = 0;  // of the patterns of next_
  BlockMoves moves_;    // of next_
};

}  // namespace

Assignment improve_layout(const AssignmentProblem& problem, Assignment start,
                          const LayoutImprovementOptions& options, const std::function<bool()>& expired) {
  Annealing annealing(problem, start.layout, options, expired);
  return annealing.run(std::move(start));
}

void Shortlist::add(const AssignmentProblem& form, Assignment assigned, double bound) {
  const double value = form.goal.value(assigned.value.iteration_s, assigned.value.charge);
  const auto place =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.value > value; });
  // Several passes find the same layout.
  if (place != entries_.begin()) {
    const Entry& before = *std::prev(place);
    if (before.value == value && before.form.replicas == form.replicas) return;
  }
  entries_.insert(place, {form, std::move(assigned), value, bound});
  if (entries_.size() > kMaxEntries) entries_.pop_back();
}

void Shortlist::improve(bool quickly_first, const std::function<double()>& threshold,
                        const std::function<void(const AssignmentProblem&, const Assignment&)>& found,
                        const std::function<bool()>& expired) {
  LayoutImprovementOptions quick;
  quick.steps = kQuickSteps;
  for (const LayoutImprovementOptions& options : {quick, LayoutImprovementOptions()}) {
    if (options.steps == kQuickSteps && !quickly_first) continue;
    for (const Entry& entry : entries_) {
      if (expired()) break;
      if (entry.bound < threshold())
        found(entry.form, improve_layout(entry.form, entry.assigned, options, expired));
    }
  }
  entries_.clear();
}

}  // namespace sailor
