// Exact: pipelines are chosen one after another. The state after some pipelines is how often each stage has
// used each option, the first and the last pipeline, and the slowest messages and gradient reductions so far;
// of two ways to the same use, one that is nowhere slower and no more expensive suffices.
#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "planner/search/assignment/assignment.h"
#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

class Columns {
 public:
  Columns(const AssignmentProblem& problem, const PipelineTemplate& pipeline, double threshold)
      : p_(problem),
        costs_(problem.costs.stage()),
        resources_(problem.costs.resources()),
        template_(pipeline),
        serving_(serving_options(problem, pipeline)),
        P_(pipeline.stages.size()),
        threshold_(threshold),
        used_(P_),
        left_(resources_.capacity.begin(), resources_.capacity.end()),
        parts_(P_),
        columns_(problem.replicas, std::vector<int>(P_, -1)) {
    for (size_t i = 0; i < P_; ++i) {
      used_[i].assign(serving_[i].size(), 0);
      double cheapest = kNever;
      for (int o : serving_[i]) cheapest = std::min(cheapest, resources_.options[o].rate.idle_per_s);
      cheapest_.push_back(cheapest);
    }
  }

  std::optional<Assignment> run() {
    for (const auto& options : serving_)
      if (options.empty()) return std::nullopt;
    State state;
    state.activation.assign(P_, 0);
    state.gradient.assign(P_, 0);
    state.sync.assign(P_ * kDegrees, 0);
    next_column(0, state);
    return std::move(best_);
  }

 private:
  static constexpr int kDegrees = 3;  // the published sum divides by min(4, parts); by powers of two here

  struct State {
    std::vector<double> activation, gradient;  // by boundary after stage i
    std::vector<double> sync;  // by stage and by the fewest parts of a replica (1, 2, 4 and more)
    double fixed_charge = 0;
    double charge_per_s = 0;

    bool no_worse(const State& b) const {
      for (size_t i = 0; i < activation.size(); ++i)
        if (activation[i] > b.activation[i] || gradient[i] > b.gradient[i]) return false;
      for (size_t i = 0; i < sync.size(); ++i)
        if (sync[i] > b.sync[i]) return false;
      return fixed_charge <= b.fixed_charge;
    }
  };

  // Never too few GPUs to share the bytes: this is for a bound.
  static int index_of(int parts) { return parts > 2 ? 2 : parts - 1; }

  int fewest_parts(size_t stage) const {
    int parts = std::numeric_limits<int>::max();
    for (size_t k = 0; k < serving_[stage].size(); ++k)
      if (used_[stage][k] > 0) parts = std::min(parts, resources_.options[serving_[stage][k]].shape.parts());
    return parts;
  }

  // No completion of the state is better.
  bool hopeless(const State& state, int columns) {
    double charge_per_s = state.charge_per_s;
    for (size_t i = 0; i < P_; ++i) {
      const PipelineTemplate::Stage& stage = template_.stages[i];
      const int slowest = serving_[i].front();
      const int parts = std::min(fewest_parts(i), resources_.options[slowest].shape.parts());
      parts_[i] = {costs_.compute_s(slowest, stage.first_layer, stage.end_layer), state.activation[i],
                   state.gradient[i], costs_.update_s(slowest, stage.first_layer),
                   state.sync[i * kDegrees + index_of(parts)]};
      charge_per_s += (p_.replicas - columns) * cheapest_[i];
    }
    const double iteration_s =
        std::max(template_.iteration_s, sailor::iteration_s(parts_, p_.microbatches)) * (1 - 1e-12);
    if (iteration_s > p_.goal.max_iteration_s) return true;
    const double charge = (iteration_s * charge_per_s + state.fixed_charge) * (1 - 1e-12);
    return charge > p_.goal.max_charge() || p_.goal.value(iteration_s, charge) >= threshold_;
  }

  void next_column(int column, const State& state) {
    if (column == p_.replicas) {
      finish();
      return;
    }
    if (column > 0) {
      // The same use and the same ends: reached before, and no worse?
      std::string key;
      for (const auto& stage : used_)
        for (int n : stage) key.push_back(static_cast<char>(n));
      for (int o : columns_[column - 1]) key.push_back(static_cast<char>(o));
      for (int o : columns_[0]) key.push_back(static_cast<char>(o));
      std::vector<State>& seen = seen_[key];
      for (const State& other : seen)
        if (other.no_worse(state)) return;
      std::erase_if(seen, [&](const State& other) { return state.no_worse(other); });
      seen.push_back(state);
    }
    choose(column, 0, state);
  }

  void choose(int column, size_t stage, const State& state) {
    if (stage == P_) {
      next_column(column + 1, state);
      return;
    }
    const PipelineTemplate::Stage& cut = template_.stages[stage];
    for (size_t k = 0; k < serving_[stage].size(); ++k) {
      const int o = serving_[stage][k];
      if (resources_.room(o, left_, 1) < 1) continue;
      State next = state;
      next.charge_per_s += resources_.options[o].rate.idle_per_s;
      next.fixed_charge += p_.microbatches * costs_.work_charge(o, cut.first_layer, cut.end_layer);
      if (stage > 0) {
        const int before = columns_[column][stage - 1], layer = cut.first_layer;
        next.activation[stage - 1] =
            std::max(next.activation[stage - 1], costs_.activation_s(before, o, layer));
        next.gradient[stage - 1] = std::max(next.gradient[stage - 1], costs_.gradient_s(o, before, layer));
        next.fixed_charge += p_.microbatches * costs_.message_charge(before, o, layer);
      }
      if (column > 0) {
        const int before = columns_[column - 1][stage];
        for (int d = 0; d < kDegrees; ++d)
          next.sync[stage * kDegrees + d] =
              std::max(next.sync[stage * kDegrees + d],
                       costs_.sync_s(before, o, 1 << d, cut.first_layer, cut.end_layer, p_.replicas));
        next.fixed_charge += costs_.sync_charge(before, o, cut.first_layer, cut.end_layer, p_.replicas);
      }
      resources_.take(o, 1, left_);
      ++used_[stage][k];
      columns_[column][stage] = o;
      State bounded = next;
      // The replicas of this column that are not chosen yet count as the cheapest.
      for (size_t later = stage + 1; later < P_; ++later) bounded.charge_per_s += cheapest_[later];
      if (!hopeless(bounded, column + 1)) choose(column, stage + 1, next);
      --used_[stage][k];
      resources_.take(o, -1, left_);
    }
  }

  void finish() {
    Assignment assigned;
    for (size_t i = 0; i < P_; ++i) {
      Layout::Stage stage{template_.stages[i].first_layer, template_.stages[i].end_layer, {}};
      for (const std::vector<int>& column : columns_) stage.append(column[i], 1);
      assigned.layout.stages.push_back(std::move(stage));
    }
    assigned.value = evaluate(costs_, resources_, assigned.layout, p_.replicas, p_.microbatches);
    const double value = p_.goal.allowed_value(assigned.value.iteration_s, assigned.value.charge);
    if (value >= threshold_) return;
    threshold_ = value;
    best_ = std::move(assigned);
  }

  const AssignmentProblem& p_;
  const StageCosts& costs_;
  const Resources& resources_;
  const PipelineTemplate& template_;
  const std::vector<std::vector<int>> serving_;
  const size_t P_;
  double threshold_;
  std::vector<std::vector<int>> used_;  // [stage][serving option]
  std::vector<double> cheapest_;
  std::vector<int64_t> left_;      // GPUs by counter
  std::vector<StageParts> parts_;  // for hopeless()
  std::vector<std::vector<int>> columns_;
  std::map<std::string, std::vector<State>> seen_;
  std::optional<Assignment> best_;
};

}  // namespace

std::optional<Assignment> assign_exactly(const AssignmentProblem& problem, const PipelineTemplate& pipeline,
                                         double threshold) {
  return Columns(problem, pipeline, threshold).run();
}

}  // namespace sailor
