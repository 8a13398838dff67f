#include "tests/bench/native/plan_moves.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "planner/plan/validate.h"
#include "tests/bench/native/node_filler.h"
#include "tests/bench/native/random_plan.h"

namespace sailor::bench {
namespace {

using oracle::Random;

size_t index(Random& random, size_t count) {
  return static_cast<size_t>(random.integer(0, static_cast<int>(count) - 1));
}

// `to` is on the GPUs of `from`.
void use_gpus_of(const PlanStage& from, PlanStage& to) {
  to.gpu_type = from.gpu_type;
  to.zone = from.zone;
  to.shape = from.shape;
  to.node = from.node;
  to.gpus = from.gpus;
}

// The other chunks of a group of GPUs follow its first one.
void align_chunks(const Plan& plan, PlanPipeline& pipeline) {
  const size_t groups = pipeline.stages.size() / static_cast<size_t>(plan.interleave);
  for (size_t s = groups; s < pipeline.stages.size(); ++s)
    use_gpus_of(pipeline.stages[s % groups], pipeline.stages[s]);
}

// In sequences.
std::vector<double> present_shares(const Plan& plan) {
  std::vector<double> out;
  for (const PlanPipeline& pipeline : plan.pipelines)
    out.push_back(static_cast<double>(pipeline.microbatches) * microbatch_of(plan, pipeline));
  return out;
}

struct Mover {
  const PlanningContext& context;
  const PlanFeatures& allowed;
  Plan plan;
  Random& random;

  int layers() const { return context.job.model.num_all_layers(); }
  PlanPipeline& any_pipeline() { return plan.pipelines[index(random, plan.pipelines.size())]; }

  bool shift_boundary() {
    const size_t d = index(random, plan.pipelines.size());
    const size_t entries = plan.pipelines[d].stages.size();
    if (entries < 2) return false;
    const size_t at = index(random, entries - 1);
    const int old_end = plan.pipelines[d].stages[at].end_layer;
    const int by = random.integer(1, 3) * (random.chance(0.5) ? 1 : -1);
    const bool all = !allowed.contains(PlanFeature::unlike_cuts) || random.chance(0.7);
    for (size_t j = 0; j < plan.pipelines.size(); ++j) {
      std::vector<PlanStage>& stages = plan.pipelines[j].stages;
      if (j != d && (!all || stages.size() != entries || stages[at].end_layer != old_end)) continue;
      stages[at].end_layer += by;
      stages[at + 1].first_layer += by;
      if (stages[at].end_layer <= stages[at].first_layer ||
          stages[at + 1].end_layer <= stages[at + 1].first_layer)
        return false;
    }
    return true;
  }

  bool swap_gpus() {
    const size_t a = index(random, plan.pipelines.size()), b = index(random, plan.pipelines.size());
    PlanStage& one = plan.pipelines[a].stages[index(random, groups_of(plan, a))];
    PlanStage& other = plan.pipelines[b].stages[index(random, groups_of(plan, b))];
    if (one.node == other.node && one.shape == other.shape) return false;
    const PlanStage before = one;
    use_gpus_of(other, one);
    use_gpus_of(before, other);
    align_chunks(plan, plan.pipelines[a]);
    align_chunks(plan, plan.pipelines[b]);
    return true;
  }

  // Free GPUs of any type and zone for the stage, its own first if `keep`.
  bool find_gpus(NodeFiller& filler, PlanStage& stage, const std::string& near, bool keep) {
    if (keep && filler.fill(stage, near)) return true;
    std::set<std::pair<std::string, std::string>> pools;
    for (const SnapshotNode& node : context.snapshot.nodes) pools.emplace(node.gpu_type, node.zone);
    std::vector<std::pair<std::string, std::string>> order(pools.begin(), pools.end());
    random.shuffle(order);
    for (const auto& [type, zone] : order) {
      stage.gpu_type = type;
      stage.zone = zone;
      if (filler.fill(stage, near)) return true;
    }
    return false;
  }

  bool move_to_free_gpus() {
    NodeFiller filler(context.snapshot);
    filler.take(plan);
    const size_t d = index(random, plan.pipelines.size());
    PlanStage& stage = plan.pipelines[d].stages[index(random, groups_of(plan, d))];
    if (!find_gpus(filler, stage, "", random.chance(0.5))) return false;
    align_chunks(plan, plan.pipelines[d]);
    return true;
  }

  bool change_tp() {
    const bool all = random.chance(0.7), twice = random.chance(0.5);
    const size_t d = index(random, plan.pipelines.size()), at = index(random, groups_of(plan, d));
    NodeFiller filler(context.snapshot);
    std::vector<PlanStage*> changed;
    for (size_t j = 0; j < plan.pipelines.size(); ++j) {
      if (j != d && (!all || at >= groups_of(plan, j))) continue;
      PlanStage& stage = plan.pipelines[j].stages[at];
      if (!twice && stage.shape.tp == 1) return false;
      stage.shape.tp = twice ? 2 * stage.shape.tp : stage.shape.tp / 2;
      if (!context.job.model.splits_over(stage.shape)) return false;
      changed.push_back(&stage);
    }
    std::vector<std::string> nodes;
    for (PlanStage* stage : changed) {
      nodes.push_back(std::exchange(stage->node, ""));
      stage->gpus.clear();
    }
    // What the other chunks still name must not count.
    for (PlanPipeline& pipeline : plan.pipelines) align_chunks(plan, pipeline);
    filler.take(plan);
    for (size_t i = 0; i < changed.size(); ++i)
      if (!find_gpus(filler, *changed[i], nodes[i], true)) return false;
    for (PlanPipeline& pipeline : plan.pipelines) align_chunks(plan, pipeline);
    return true;
  }

  bool change_microbatch() {
    if (random.chance(0.5)) {
      plan.microbatch *= 2;
    } else {
      if (plan.microbatch % 2 != 0) return false;
      plan.microbatch /= 2;
    }
    for (PlanPipeline& pipeline : plan.pipelines) pipeline.microbatch.reset();
    return share_by_weight(plan, present_shares(plan));
  }

  bool change_own_microbatch() {
    if (!allowed.contains(PlanFeature::unlike_microbatches)) return false;
    const std::vector<double> shares = present_shares(plan);
    PlanPipeline& pipeline = any_pipeline();
    const int size = microbatch_of(plan, pipeline);
    const bool all = random.chance(0.5);  // that are like it
    const int to = random.chance(0.5) ? 2 * size : size / 2;
    const auto alike = [&](const PlanPipeline& other) {
      return other.stages.front().gpu_type == pipeline.stages.front().gpu_type &&
             other.stages.size() == pipeline.stages.size();
    };
    for (PlanPipeline& other : plan.pipelines)
      if (&other == &pipeline || (all && alike(other))) other.microbatch = to;
    return to > 0 && share_by_weight(plan, shares);
  }

  bool add_pipeline() {
    NodeFiller filler(context.snapshot);
    filler.take(plan);
    PlanPipeline more = any_pipeline();
    std::string near;
    for (int g = 0; g < num_groups(plan, more); ++g) {
      PlanStage& stage = more.stages[static_cast<size_t>(g)];
      if (!find_gpus(filler, stage, near, true)) return false;
      near = stage.node;
    }
    align_chunks(plan, more);
    plan.pipelines.push_back(std::move(more));
    return share_by_weight(plan, present_shares(plan));
  }

  bool drop_pipeline() {
    if (plan.pipelines.size() < 2) return false;
    plan.pipelines.erase(plan.pipelines.begin() +
                         static_cast<std::ptrdiff_t>(index(random, plan.pipelines.size())));
    return share_by_weight(plan, present_shares(plan));
  }

  bool merge_stages() {
    const size_t at = index(random, plan.pipelines[0].stages.size());
    if (plan.interleave > 1) return false;
    for (PlanPipeline& pipeline : plan.pipelines) {
      if (at + 1 >= pipeline.stages.size()) return false;
      pipeline.stages[at].end_layer = pipeline.stages[at + 1].end_layer;
      pipeline.stages.erase(pipeline.stages.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    if (random.chance(0.5))
      for (PlanPipeline& pipeline : plan.pipelines) cut_evenly(pipeline, layers());
    return true;
  }

  bool split_stage() {
    const size_t at = index(random, plan.pipelines[0].stages.size());
    if (plan.interleave > 1) return false;
    NodeFiller filler(context.snapshot);
    filler.take(plan);
    const bool even = random.chance(0.5);
    for (PlanPipeline& pipeline : plan.pipelines) {
      if (at >= pipeline.stages.size()) return false;
      PlanStage& stage = pipeline.stages[at];
      if (stage.end_layer - stage.first_layer < 2) return false;
      PlanStage second = stage;
      if (!find_gpus(filler, second, stage.node, true)) return false;
      second.first_layer = stage.end_layer = (stage.first_layer + stage.end_layer) / 2;
      pipeline.stages.insert(pipeline.stages.begin() + static_cast<std::ptrdiff_t>(at) + 1, second);
      if (even) cut_evenly(pipeline, layers());
    }
    return true;
  }

  // Every two pipelines become one of twice the length.
  bool lengthen() {
    if (plan.interleave > 1 || plan.pipelines.size() < 2) return false;
    std::vector<PlanPipeline> longer;
    for (size_t d = 0; d + 1 < plan.pipelines.size(); d += 2) {
      longer.push_back(plan.pipelines[d]);
      std::vector<PlanStage>& stages = longer.back().stages;
      stages.insert(stages.end(), plan.pipelines[d + 1].stages.begin(), plan.pipelines[d + 1].stages.end());
      if (static_cast<int>(stages.size()) > layers()) return false;
      cut_evenly(longer.back(), layers());
    }
    plan.pipelines = std::move(longer);
    return share_by_weight(plan, present_shares(plan));
  }

  // Every pipeline becomes two of half the length.
  bool shorten() {
    if (plan.interleave > 1) return false;
    std::vector<PlanPipeline> shorter;
    for (const PlanPipeline& pipeline : plan.pipelines) {
      const std::ptrdiff_t half = static_cast<std::ptrdiff_t>(pipeline.stages.size() / 2);
      if (half == 0) return false;
      shorter.push_back({pipeline.microbatches, {pipeline.stages.begin(), pipeline.stages.begin() + half}});
      shorter.push_back({pipeline.microbatches, {pipeline.stages.begin() + half, pipeline.stages.end()}});
      cut_evenly(shorter[shorter.size() - 2], layers());
      cut_evenly(shorter.back(), layers());
    }
    plan.pipelines = std::move(shorter);
    return share_by_weight(plan, present_shares(plan));
  }

  bool move_microbatches() {
    if (!allowed.contains(PlanFeature::unlike_shares)) return false;
    PlanPipeline &from = any_pipeline(), &to = any_pipeline();
    const int count = random.integer(1, 4) * (plan.interleave > 1 ? num_groups(plan, from) : 1);
    if (&from == &to || from.microbatches <= count) return false;
    if (plan.interleave > 1 && from.stages.size() != to.stages.size()) return false;
    if (microbatch_of(plan, from) != microbatch_of(plan, to)) return false;
    from.microbatches -= count;
    to.microbatches += count;
    return true;
  }

  bool change_zero() {
    const std::span<const Zero> degrees = zero_degrees(allowed);
    plan.zero = degrees[(static_cast<size_t>(plan.zero) + 1) % degrees.size()];
    return degrees.size() > 1;
  }

  bool change_zero_group() {
    if (!allowed.contains(PlanFeature::hybrid_zero) || plan.zero == Zero::none) return false;
    const int before = plan.zero_group;
    draw_zero_group(plan, context.job.model, random);
    return plan.zero_group != before;
  }

  bool change_token_split() {
    plan.sequence_parallel = !plan.sequence_parallel;
    return allowed.contains(PlanFeature::sequence_parallel) && has_tensor_parallelism(plan);
  }

  bool change_recompute() {
    std::vector<Recompute> levels = {Recompute::none};
    if (allowed.contains(PlanFeature::recompute)) {
      const auto trained = trained_levels(false);
      levels.assign(trained.begin(), trained.end());
    }
    if (allowed.contains(PlanFeature::selective_recompute)) levels.push_back(Recompute::selective);
    const Recompute mode = random.pick(levels);
    const PlanPipeline& one = any_pipeline();
    const size_t at = index(random, one.stages.size());
    const bool all_pipelines = random.chance(0.7), all_stages = random.chance(0.3);
    bool changed = false;
    for (PlanPipeline& pipeline : plan.pipelines) {
      if (!all_pipelines && &pipeline != &one) continue;
      for (size_t s = 0; s < pipeline.stages.size(); ++s) {
        if (!all_stages && s != at) continue;
        changed = changed || pipeline.stages[s].recompute != mode;
        pipeline.stages[s].recompute = mode;
      }
    }
    return changed;
  }

  bool change_weight_delay() {
    if (!allowed.contains(PlanFeature::split_backward) || !can_delay()) return false;
    const bool all_pipelines = random.chance(0.7), most = random.chance(0.3);
    const size_t at = index(random, any_pipeline().stages.size());
    const int delay = random.integer(kWholeBackward, static_cast<int>(at));
    for (PlanPipeline& pipeline : plan.pipelines) {
      for (size_t s = 0; s < pipeline.stages.size(); ++s)
        if (most || s == at) pipeline.stages[s].weight_delay = most ? static_cast<int>(s) : delay;
      if (!all_pipelines) break;
    }
    return true;
  }

  bool can_delay() const { return plan.interleave == 1 && plan.zero < Zero::gradients; }
  // What the move has left of delays that the plan cannot have.
  void limit_weight_delays() {
    for (PlanPipeline& pipeline : plan.pipelines)
      for (size_t s = 0; s < pipeline.stages.size(); ++s) {
        int& delay = pipeline.stages[s].weight_delay;
        delay = can_delay() ? std::min(delay, static_cast<int>(s)) : kWholeBackward;
      }
  }

  bool change_interleave() {
    if (!allowed.contains(PlanFeature::interleave)) return false;
    static const std::vector<int> known = {1, 2, 4};
    const int interleave = random.pick(known);
    if (interleave == plan.interleave) return false;
    for (PlanPipeline& pipeline : plan.pipelines) {
      const size_t groups = static_cast<size_t>(num_groups(plan, pipeline));
      if (interleave > 1 && (groups < 2 || static_cast<int>(groups) * interleave > layers())) return false;
      pipeline.stages.resize(groups);
      const std::vector<PlanStage> first = pipeline.stages;
      for (int v = 1; v < interleave; ++v)
        pipeline.stages.insert(pipeline.stages.end(), first.begin(), first.end());
      cut_evenly(pipeline, layers());
    }
    plan.interleave = interleave;
    return share_by_weight(plan, present_shares(plan));
  }

  bool move() {
    using Move = bool (Mover::*)();
    static const std::vector<Move> moves = {
        &Mover::shift_boundary,        &Mover::shift_boundary,     &Mover::swap_gpus,
        &Mover::move_to_free_gpus,     &Mover::change_tp,          &Mover::add_pipeline,
        &Mover::change_microbatch,     &Mover::drop_pipeline,      &Mover::merge_stages,
        &Mover::split_stage,           &Mover::lengthen,           &Mover::shorten,
        &Mover::move_microbatches,     &Mover::change_zero,        &Mover::change_recompute,
        &Mover::change_interleave,     &Mover::change_token_split, &Mover::change_weight_delay,
        &Mover::change_own_microbatch, &Mover::change_zero_group,
    };
    return (this->*random.pick(moves))();
  }
};

}  // namespace

std::optional<Plan> random_move(const PlanningContext& context, const PlanFeatures& allowed, const Plan& plan,
                                Random& random) {
  Mover mover{context, allowed, plan, random};
  if (!mover.move()) return std::nullopt;
  mover.limit_weight_delays();
  if (!zero_groups_match(mover.plan, context.job.model)) mover.plan.zero_group = 0;
  if (!can_sum_in_one_order(mover.plan)) return std::nullopt;
  return std::move(mover.plan);
}

}  // namespace sailor::bench
