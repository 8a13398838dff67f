#include "planner/search/improve.h"

#include <algorithm>
#include <cmath>

namespace sailor {
namespace {

bool alike(const PlanPipeline& a, const PlanPipeline& b) {
  if (a.microbatches != b.microbatches || a.stages.size() != b.stages.size()) return false;
  for (size_t i = 0; i < a.stages.size(); ++i) {
    const PlanStage &x = a.stages[i], &y = b.stages[i];
    if (x.first_layer != y.first_layer || x.end_layer != y.end_layer || x.gpu_type != y.gpu_type ||
        x.zone != y.zone || x.tp != y.tp)
      return false;
  }
  return true;
}

// The first pipeline of every kind: moves are tried once per kind.
std::vector<size_t> kinds(const Plan& plan) {
  std::vector<size_t> out;
  for (size_t j = 0; j < plan.pipelines.size(); ++j)
    if (std::none_of(out.begin(), out.end(),
                     [&](size_t k) { return alike(plan.pipelines[k], plan.pipelines[j]); }))
      out.push_back(j);
  return out;
}

bool shift(PlanPipeline& pipeline, size_t boundary, int layers) {
  PlanStage &left = pipeline.stages[boundary], &right = pipeline.stages[boundary + 1];
  left.end_layer += layers;
  right.first_layer += layers;
  return left.first_layer < left.end_layer && right.first_layer < right.end_layer;
}

// Calls `visit` for every neighbour until it returns true.
bool neighbours(const Plan& plan, SearchSpace space, const std::function<bool(const Plan&)>& visit) {
  const auto& pipelines = plan.pipelines;
  const bool one_cut = space == SearchSpace::paper;
  std::vector<size_t> representatives = kinds(plan);
  if (one_cut) representatives.resize(1);  // all pipelines move together
  for (size_t kind : representatives)
    for (size_t boundary = 0; boundary + 1 < pipelines[kind].stages.size(); ++boundary)
      for (int layers : {-1, 1}) {
        Plan next = plan;
        bool valid = true;
        for (size_t j = 0; j < pipelines.size() && valid; ++j)
          if (one_cut || alike(pipelines[j], pipelines[kind]))
            valid = shift(next.pipelines[j], boundary, layers);
        if (valid && visit(next)) return true;
      }
  if (one_cut) return false;
  for (size_t from : representatives)
    for (size_t to : representatives) {
      if (from == to || pipelines[from].microbatches < 2) continue;
      Plan next = plan;
      --next.pipelines[from].microbatches;
      ++next.pipelines[to].microbatches;
      if (visit(next)) return true;
    }
  if (pipelines.size() < 2) return false;
  for (size_t gone : representatives) {
    Plan next = plan;
    const int orphans = next.pipelines[gone].microbatches;
    next.pipelines.erase(next.pipelines.begin() + static_cast<ptrdiff_t>(gone));
    int64_t rest = 0;
    for (const PlanPipeline& pipeline : next.pipelines) rest += pipeline.microbatches;
    int64_t seen = 0, given = 0;
    for (PlanPipeline& pipeline : next.pipelines) {  // in proportion to what they have
      seen += pipeline.microbatches;
      const int64_t due = orphans * seen / rest;
      pipeline.microbatches += static_cast<int>(due - given);
      given = due;
    }
    if (visit(next)) return true;
  }
  return false;
}

}  // namespace

Plan improved(Plan plan, SearchSpace space, const std::function<double(const Plan&)>& value,
              const std::function<bool()>& expired) {
  plan.prediction.reset();
  double best = value(plan);
  for (bool moved = std::isfinite(best); moved && !expired();) {
    moved = false;
    Plan better;
    neighbours(plan, space, [&](const Plan& next) {
      if (expired()) return true;
      const double v = value(next);
      if (v >= best * (1 - 1e-9)) return false;
      best = v;
      better = next;
      return moved = true;
    });
    if (moved) plan = std::move(better);
  }
  return plan;
}

}  // namespace sailor
