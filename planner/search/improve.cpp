#include "planner/search/improve.h"

#include <algorithm>
#include <cmath>

namespace sailor {
namespace {

// Pipelines that differ in their microbatches at most, by index.
using Kind = std::vector<size_t>;

bool alike(const PlanPipeline& a, const PlanPipeline& b) {
  return std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    [](const PlanStage& x, const PlanStage& y) {
                      return x.first_layer == y.first_layer && x.end_layer == y.end_layer &&
                             x.gpu_type == y.gpu_type && x.zone == y.zone && x.tp == y.tp &&
                             x.recompute == y.recompute;
                    });
}

std::vector<Kind> kinds_of(const Plan& plan) {
  std::vector<Kind> kinds;
  for (size_t j = 0; j < plan.pipelines.size(); ++j) {
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) {
      return alike(plan.pipelines[kind.front()], plan.pipelines[j]);
    });
    if (same == kinds.end())
      kinds.push_back({j});
    else
      same->push_back(j);
  }
  return kinds;
}

int64_t microbatches_of(const Plan& plan, const Kind& kind) {
  int64_t sum = 0;
  for (size_t j : kind) sum += plan.pipelines[j].microbatches;
  return sum;
}

// As evenly as possible; false when there are too few for every pipeline of the kind.
bool share_out(Plan& plan, const Kind& kind, int64_t microbatches) {
  const std::vector<int> shares = share_microbatches(microbatches, static_cast<int>(kind.size()));
  for (size_t i = 0; i < kind.size(); ++i) plan.pipelines[kind[i]].microbatches = shares[i];
  return shares.back() > 0;
}

bool shift(PlanPipeline& pipeline, size_t boundary, int layers) {
  PlanStage &left = pipeline.stages[boundary], &right = pipeline.stages[boundary + 1];
  left.end_layer += layers;
  right.first_layer += layers;
  return left.first_layer < left.end_layer && right.first_layer < right.end_layer;
}

// The neighbours of a plan, handed out one by one until the visitor says that it has what it wants.
class Neighbours {
 public:
  using Visit = std::function<bool(const Plan&)>;

  Neighbours(const Plan& plan, const PlanFeatures& offered, const Visit& visit)
      : plan_(plan), offered_(offered), visit_(visit), kinds_(kinds_of(plan)) {}

  bool any() const {
    return shifted() || (offers(PlanFeature::unlike_shares) && (reshared() || dropped())) ||
           (offers(PlanFeature::recompute) && recomputed()) ||
           (offers(PlanFeature::zero1) && plan_.pipelines.size() > 1 && changed([](Plan& plan) {
              plan.zero1 = !plan.zero1;
              return true;
            }));
  }

 private:
  bool offers(PlanFeature feature) const { return offered_.contains(feature); }

  template <typename Change>
  bool changed(Change change) const {
    Plan next = plan_;
    return change(next) && visit_(next);
  }

  // The pipelines whose layers move together.
  std::vector<Kind> movable() const {
    if (offers(PlanFeature::unlike_cuts)) return kinds_;
    Kind all;
    for (size_t j = 0; j < plan_.pipelines.size(); ++j) all.push_back(j);
    return {all};
  }

  bool shifted() const {
    for (const Kind& kind : movable())
      for (size_t boundary = 0; boundary + 1 < plan_.pipelines[kind.front()].stages.size(); ++boundary)
        for (int layers : {-1, 1})
          if (changed([&](Plan& next) {
                return std::all_of(kind.begin(), kind.end(),
                                   [&](size_t j) { return shift(next.pipelines[j], boundary, layers); });
              }))
            return true;
    return false;
  }

  // What all pipelines of a kind give together: a kind is as late as its largest share, so it gives as many
  // as shorten that by one, or by several.
  bool reshared() const {
    for (const Kind& from : kinds_)
      for (const Kind& to : kinds_) {
        if (&from == &to) continue;
        const int64_t have = microbatches_of(plan_, from), got = microbatches_of(plan_, to);
        const auto count = static_cast<int64_t>(from.size());
        const int64_t least = (have - 1) % count + 1;
        for (int64_t rounds : {have / count / 8, int64_t{1}, int64_t{0}}) {
          const int64_t given = least + rounds * count;
          if (given >= have || (rounds == 0 && least == count)) continue;
          if (changed([&](Plan& next) {
                return share_out(next, from, have - given) && share_out(next, to, got + given);
              }))
            return true;
        }
      }
    return false;
  }

  // One pipeline of a kind goes; the others take its microbatches in proportion to what they have.
  bool dropped() const {
    if (plan_.pipelines.size() < 2) return false;
    for (const Kind& kind : kinds_)
      if (changed([&](Plan& next) {
            const int orphans = next.pipelines[kind.back()].microbatches;
            next.pipelines.erase(next.pipelines.begin() + static_cast<ptrdiff_t>(kind.back()));
            int64_t rest = 0, seen = 0, given = 0;
            for (const PlanPipeline& pipeline : next.pipelines) rest += pipeline.microbatches;
            for (PlanPipeline& pipeline : next.pipelines) {
              seen += pipeline.microbatches;
              const int64_t due = orphans * seen / rest;
              pipeline.microbatches += static_cast<int>(due - given);
              given = due;
            }
            return true;
          }))
        return true;
    return false;
  }

  bool recomputed() const {
    for (const Kind& kind : kinds_)
      for (size_t i = 0; i < plan_.pipelines[kind.front()].stages.size(); ++i)
        if (changed([&](Plan& next) {
              for (size_t j : kind) {
                std::string& mode = next.pipelines[j].stages[i].recompute;
                mode = mode == "none" ? "full" : "none";
              }
              return true;
            }))
          return true;
    return false;
  }

  const Plan& plan_;
  const PlanFeatures& offered_;
  const Visit& visit_;
  const std::vector<Kind> kinds_;
};

}  // namespace

Plan improved(Plan plan, const PlanFeatures& offered, const std::function<double(const Plan&)>& value,
              const std::function<bool()>& expired) {
  plan.prediction.reset();
  double best = value(plan);
  for (bool moved = std::isfinite(best); moved && !expired();) {
    moved = false;
    Plan better;
    const Neighbours::Visit visit = [&](const Plan& next) {
      if (expired()) return true;
      const double v = value(next);
      if (v >= best * (1 - 1e-9)) return false;
      best = v;
      better = next;
      return moved = true;
    };
    Neighbours(plan, offered, visit).any();
    if (moved) plan = std::move(better);
  }
  return plan;
}

}  // namespace sailor
