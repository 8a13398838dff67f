#include "tests/oracle/native/enumerate_plans.h"

#include <algorithm>
#include <set>

#include "tests/oracle/native/pipeline_kinds.h"

namespace sailor::oracle {
namespace {

using bench::Judge;

// Of plans that are slower than the best by more, other orders are not tried.
constexpr double kClose = 1.1;

class Enumerator {
 public:
  Enumerator(Judge& judge, double known_s, int64_t most_simulations)
      : judge_(judge), cluster_(judge), limit_(judge, most_simulations) {
    out_.best_s = known_s;
  }

  PlanEnumeration run() {
    std::set<int> microbatches;
    for (const SnapshotNode* node : cluster_.nodes)
      for (int size : cluster_.context.profiles.layers.at(node->gpu_type).microbatches())
        microbatches.insert(size);
    for (int size : microbatches)
      for (int interleave : {1, 2, 4}) {
        if (interleave > 1 && !judge_.allowed().contains(PlanFeature::interleave)) continue;
        for (const bool splits_tokens : {false, true}) {
          if (splits_tokens && !may_split_tokens()) continue;
          frame_ = {size, interleave,
                    static_cast<int>(num_microbatches(cluster_.context.job.training.global_batch, size)),
                    Zero::none, splits_tokens};
          KindLister lister(judge_, cluster_, frame_, out_.best_s, limit_);
          lister_ = &lister;
          const std::vector<Kind> kinds = lister.list();
          for (const Zero zero : zero_degrees(judge_.allowed())) combine_all(kinds, zero);
        }
      }
    out_.simulations = judge_.simulations();
    out_.complete = !limit_.was_over();
    return std::move(out_);
  }

 private:
  bool may_split_tokens() const {
    return judge_.allowed().contains(PlanFeature::sequence_parallel) &&
           std::any_of(cluster_.nodes.begin(), cluster_.nodes.end(),
                       [](const SnapshotNode* node) { return node->free_gpus.size() > 1; });
  }

  // Of plans with this pipeline and others, or of it alone.
  double bound_s(const Kind& kind) const {
    if (kind.microbatches == frame_.total) return kind.alone.single_s;
    return shards_optimizer(frame_.zero) ? kind.alone.zero1_s : kind.alone.plain_s;
  }

  void combine_all(const std::vector<Kind>& kinds, Zero zero) {
    frame_.zero = zero;
    std::vector<const Kind*> all, chosen;
    for (const Kind& kind : kinds)
      if (kind.alone.fits_with(zero)) all.push_back(&kind);
    std::vector<int> uses(cluster_.nodes.size(), 0);
    combine(all, frame_.total, uses, chosen);
  }

  // All plans that begin with `chosen`; the others are among `kinds` and in their order. `left`:
  // microbatches.
  void combine(const std::vector<const Kind*>& kinds, int left, std::vector<int>& uses,
               std::vector<const Kind*>& chosen) {
    if (left > lister_->most_of_rest(uses, out_.best_s) + 1e-9) return;
    std::vector<const Kind*> fitting;
    for (const Kind* kind : kinds)
      if (kind->microbatches <= left && bound_s(*kind) < out_.best_s && has_gpus(*kind, uses))
        fitting.push_back(kind);
    std::vector<const Kind*> next;
    for (size_t k = 0; k < fitting.size() && !limit_.over(); ++k) {
      const Kind& kind = *fitting[k];
      if (bound_s(kind) >= out_.best_s || !begins_first_nodes(kind, uses)) continue;
      chosen.push_back(&kind);
      if (kind.microbatches < left) {
        for (size_t n = 0; n < uses.size(); ++n) uses[n] += kind.uses[n];
        next.assign(fitting.begin() + static_cast<std::ptrdiff_t>(k), fitting.end());
        combine(next, left - kind.microbatches, uses, chosen);
        for (size_t n = 0; n < uses.size(); ++n) uses[n] -= kind.uses[n];
      } else if (chosen.size() > 1 || !shards_optimizer(frame_.zero)) {
        try_orders(chosen);
      }
      chosen.pop_back();
    }
  }

  bool has_gpus(const Kind& kind, const std::vector<int>& uses) const {
    for (size_t n = 0; n < uses.size(); ++n)
      if (uses[n] + kind.uses[n] > cluster_.free_of(n)) return false;
    return true;
  }

  // Is every node that it begins to use the first unused one of its equals? Of plans that only differ in
  // equal nodes, at least one has its pipelines in order and fulfils this.
  bool begins_first_nodes(const Kind& kind, std::vector<int> uses) const {
    for (const Step& step : kind.path) {
      const size_t node = static_cast<size_t>(step.node);
      for (size_t n = 0; n < node && uses[node] == 0; ++n)
        if (cluster_.class_of[n] == cluster_.class_of[node] && uses[n] == 0) return false;
      uses[node] += step.tp;
    }
    return true;
  }

  // Rings of gradient sums follow the order of pipelines: a plan that is close is tried in all of them.
  void try_orders(std::vector<const Kind*> chosen) {
    const std::optional<double> first_s = try_plan(plan_of(cluster_, frame_, chosen));
    if (!first_s || *first_s > kClose * out_.best_s) return;
    std::sort(chosen.begin(), chosen.end());
    do try_plan(plan_of(cluster_, frame_, chosen));
    while (!limit_.over() && std::next_permutation(chosen.begin(), chosen.end()));
  }

  // Its seconds, when it fits.
  std::optional<double> try_plan(Plan plan) {
    const std::optional<Prediction> prediction = judge_.prediction(plan);
    if (!prediction || !prediction->fits) return std::nullopt;
    if (prediction->iteration_s < out_.best_s) {
      out_.best_s = prediction->iteration_s;
      out_.best = std::move(plan);
    }
    return prediction->iteration_s;
  }

  Judge& judge_;
  const TinyCluster cluster_;
  EnumerationLimit limit_;
  PlanFrame frame_;
  const KindLister* lister_ = nullptr;  // of the frame
  PlanEnumeration out_;
};

}  // namespace

PlanEnumeration enumerate_plans(Judge& judge, double known_s, int64_t most_simulations) {
  return Enumerator(judge, known_s, most_simulations).run();
}

}  // namespace sailor::oracle
