#include "tests/bench/native/random_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "planner/plan/validate.h"
#include "tests/bench/native/node_filler.h"

namespace sailor::bench {
namespace {

// Ends of `count` runs of layers of about the same length.
std::vector<int> even_ends(int layers, int count) {
  std::vector<int> ends;
  for (int i = 1; i <= count; ++i) ends.push_back(static_cast<int>(int64_t{layers} * i / count));
  return ends;
}

}  // namespace

bool share_by_weight(Plan& plan, const std::vector<double>& weights) {
  if (has_unlike_microbatches(plan)) {
    if (plan.interleave > 1) return false;
    for (size_t d = 0; d < weights.size(); ++d)
      plan.pipelines[d].microbatches =
          std::max(1, static_cast<int>(weights[d] / microbatch_of(plan, plan.pipelines[d])));
    share_batch(plan);
    const int64_t excess = sequences_of_microbatches(plan) - plan.global_batch;
    return excess >= 0 && excess < microbatch_of(plan, plan.pipelines.back());
  }
  const size_t groups = groups_of(plan, 0);
  for (size_t d = 1; d < plan.pipelines.size(); ++d)
    if (plan.interleave > 1 && groups_of(plan, d) != groups) return false;
  const int64_t round = plan.interleave > 1 ? static_cast<int64_t>(groups) : 1;
  const int64_t total = num_microbatches(plan.global_batch, microbatch_of(plan, plan.pipelines.front()));
  const int64_t rounds = total / round;
  if (total % round != 0 || rounds < static_cast<int64_t>(plan.pipelines.size())) return false;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  int64_t left = rounds - static_cast<int64_t>(weights.size());
  const double spare = static_cast<double>(left);
  std::vector<int64_t> shares(weights.size(), 1);
  for (size_t d = 0; d < shares.size(); ++d) {
    const int64_t more = std::min(left, static_cast<int64_t>(spare * weights[d] / sum));
    shares[d] += more;
    left -= more;
  }
  for (size_t d = 0; left > 0; d = (d + 1) % shares.size(), --left) ++shares[d];
  for (size_t d = 0; d < shares.size(); ++d)
    plan.pipelines[d].microbatches = static_cast<int>(shares[d] * round);
  return true;
}

void cut_evenly(PlanPipeline& pipeline, int layers) {
  const std::vector<int> ends = even_ends(layers, static_cast<int>(pipeline.stages.size()));
  for (size_t s = 0; s < ends.size(); ++s) {
    pipeline.stages[s].first_layer = s == 0 ? 0 : ends[s - 1];
    pipeline.stages[s].end_layer = ends[s];
  }
}

void draw_zero_group(Plan& plan, const ModelSpec& model, oracle::Random& random) {
  std::vector<int> groups = {0};
  for (int group = 1; group < static_cast<int>(plan.pipelines.size()); ++group) {
    plan.zero_group = group;
    if (zero_groups_match(plan, model)) groups.push_back(group);
  }
  plan.zero_group = random.pick(groups);
}

std::optional<Plan> random_plan(const PlanningContext& context, const PlanFeatures& allowed,
                                oracle::Random& random) {
  std::set<std::string> type_set, zone_set;
  for (const SnapshotNode& node : context.snapshot.nodes)
    if (!node.free_gpus.empty()) {
      type_set.insert(node.gpu_type);
      zone_set.insert(node.zone);
    }
  std::vector<std::string> types(type_set.begin(), type_set.end()), zones(zone_set.begin(), zone_set.end());
  random.shuffle(types);
  types.resize(static_cast<size_t>(random.integer(1, static_cast<int>(types.size()))));
  if (zones.size() > 1 && random.chance(0.5)) zones = {random.pick(zones)};
  const int tp = 1 << random.integer(0, 3);
  std::vector<GpuGroup> groups = tp_groups(context.snapshot, types, zones, tp);
  if (groups.empty() || !context.job.model.splits_over({tp})) return std::nullopt;
  if (random.chance(0.3)) random.shuffle(groups);

  Plan plan;
  plan.model = context.job.model.name;
  plan.global_batch = context.job.training.global_batch;
  plan.microbatch = 1 << random.integer(0, 3);
  if (const std::span<const Zero> degrees = zero_degrees(allowed); degrees.size() > 1 && random.chance(0.3))
    plan.zero = degrees[static_cast<size_t>(random.integer(1, static_cast<int>(degrees.size()) - 1))];
  const Recompute recompute =
      allowed.contains(PlanFeature::recompute) && random.chance(0.3) ? Recompute::full : Recompute::none;
  const int layers = context.job.model.num_all_layers(), count = static_cast<int>(groups.size());
  // Equally likely in every octave.
  int most_octave = 0;
  while ((2 << most_octave) <= std::min({count, layers, 64})) ++most_octave;
  const int low = 1 << random.integer(0, most_octave);
  const int stages = std::min({count, layers, random.integer(low, 2 * low - 1)});
  const int64_t most =
      std::min<int64_t>(count / stages, num_microbatches(plan.global_batch, plan.microbatch));
  const int replicas =
      random.chance(0.7) ? static_cast<int>(most) : random.integer(1, static_cast<int>(most));
  const bool by_stage = random.chance(0.5);
  plan.pipelines.resize(static_cast<size_t>(replicas));
  for (int d = 0; d < replicas; ++d) {
    PlanPipeline& pipeline = plan.pipelines[static_cast<size_t>(d)];
    for (int s = 0; s < stages; ++s) {
      PlanStage stage;
      stage.recompute = recompute;
      put(stage, groups[static_cast<size_t>(by_stage ? s * replicas + d : d * stages + s)]);
      pipeline.stages.push_back(std::move(stage));
    }
    cut_evenly(pipeline, layers);
  }
  if (!share_by_weight(plan, std::vector<double>(plan.pipelines.size(), 1))) return std::nullopt;
  if (allowed.contains(PlanFeature::hybrid_zero) && plan.zero != Zero::none && random.chance(0.5))
    draw_zero_group(plan, context.job.model, random);
  return plan;
}

}  // namespace sailor::bench
