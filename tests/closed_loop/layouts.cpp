#include "tests/closed_loop/layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "planner/plan/features.h"
#include "planner/plan/validate.h"

namespace sailor::closed_loop {
namespace {

uint64_t next(Random& state) {  // splitmix64: the standard's distributions differ between libraries
  uint64_t x = state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

int between(Random& random, int low, int high) {
  return low + static_cast<int>(next(random) % static_cast<uint64_t>(high - low + 1));
}

template <class T>
const T& pick(Random& random, const std::vector<T>& values) {
  return values[static_cast<size_t>(between(random, 0, static_cast<int>(values.size()) - 1))];
}

// `parts` numbers of at least one that add up to `total`; `extra` parts are moved at random from even shares.
std::vector<int> uneven_shares(Random& random, int total, int parts, int extra) {
  std::vector<int> shares(static_cast<size_t>(parts), total / parts);
  for (int i = 0; i < total % parts; ++i) ++shares[static_cast<size_t>(i)];
  for (int i = 0; i < extra && parts > 1; ++i) {
    auto& from = shares[static_cast<size_t>(between(random, 0, parts - 1))];
    auto& to = shares[static_cast<size_t>(between(random, 0, parts - 1))];
    if (from > 1) {
      --from;
      ++to;
    }
  }
  return shares;
}

using Layout = ShapeLayout;

int ranks_of(const Layout& layout) {
  int ranks = 0;
  for (const auto& stages : layout) {
    for (const ReplicaShape& shape : stages) ranks += shape.gpus();
  }
  return ranks;
}

// Kinds in turn: one GPU, TP, pipeline, data-parallel, everything at once.
Layout draw_layout(Random& random, const Model& model, const Limits& limits, int index) {
  const int most_stages = std::min(6, model.job.model.num_all_layers() / 2);
  if (limits.max_ranks <= 2) {
    const std::vector<const char*> small = {"1,1", "1/1", "2", limits.features ? "1x2" : "1"};
    const Layout chosen = parse_layout(small[static_cast<size_t>(index) % small.size()]);
    return ranks_of(chosen) <= limits.max_ranks ? chosen : parse_layout("1");
  }
  // Every fourth is a large one.
  const int least_ranks = index % 4 == 2 ? limits.max_ranks * 3 / 4 : limits.min_ranks;
  while (true) {
    Layout layout;
    const int pipelines = index % 4 == 0 ? 1 : between(random, 2, 4);
    for (int p = 0; p < pipelines; ++p) {
      const int stages = index % 4 == 1 ? 1 : between(random, index % 4 == 0 ? 2 : 1, most_stages);
      layout.emplace_back();
      for (int s = 0; s < stages; ++s) {
        ReplicaShape& shape = layout.back().emplace_back(ReplicaShape{.tp = pick(random, model.tps)});
        if (!limits.features || between(random, 0, 3) != 0 || 2 * shape.tp > model.job.model.heads) continue;
        shape.cp = shape.tp == 1 && between(random, 0, 2) == 0 ? 3 : 2;  // heads are 4: three are a ring
      }
    }
    const int ranks = ranks_of(layout);
    if (ranks >= least_ranks && ranks <= limits.max_ranks) return layout;
  }
}

// Stages fill nodes of four GPUs of one type; a TP group never spans two.
void place(Plan& plan) {
  constexpr int kGpusPerNode = 4;
  std::map<std::string, std::pair<int, int>> last;  // by GPU type: number of its nodes, GPUs used of the last
  for (PlanPipeline& pipeline : plan.pipelines) {
    for (PlanStage& stage : pipeline.stages) {
      auto& [nodes, used] = last.try_emplace(stage.gpu_type, 0, kGpusPerNode).first->second;
      if (used + stage.shape.gpus() > kGpusPerNode) {
        ++nodes;
        used = 0;
      }
      stage.node = fmt::format("{}-{}", stage.gpu_type, nodes);
      for (int i = 0; i < stage.shape.gpus(); ++i) stage.gpus.push_back(used++);
    }
  }
}

// May groups of GPUs have two chunks of the model each?
bool can_interleave(const Plan& plan, int layers) {
  return std::all_of(plan.pipelines.begin(), plan.pipelines.end(), [&](const PlanPipeline& pipeline) {
    const auto groups = static_cast<int>(pipeline.stages.size());
    return groups > 1 && 2 * groups <= layers && pipeline.microbatches >= groups;
  });
}

// Two chunks for every group; all cut alike if the pipelines have as many groups. Microbatches go in rounds
// of as many as there are groups.
void interleave(Random& random, Plan& plan, int layers) {
  plan.interleave = 2;
  plan.global_batch = 0;
  for (PlanPipeline& pipeline : plan.pipelines) {
    const size_t groups = pipeline.stages.size();
    const std::vector<PlanStage> chunks = pipeline.stages;
    pipeline.stages.insert(pipeline.stages.end(), chunks.begin(), chunks.end());
    const std::vector<PlanStage>& first = plan.pipelines.front().stages;
    const std::vector<int> cut = uneven_shares(random, layers, static_cast<int>(2 * groups), 1);
    int layer = 0;
    for (size_t i = 0; i < pipeline.stages.size(); ++i) {
      pipeline.stages[i].first_layer = layer;
      pipeline.stages[i].end_layer = layer += cut[i];
      if (&pipeline == &plan.pipelines.front() || first.size() != pipeline.stages.size()) continue;
      pipeline.stages[i].first_layer = first[i].first_layer;
      pipeline.stages[i].end_layer = first[i].end_layer;
    }
    pipeline.microbatches -= pipeline.microbatches % static_cast<int>(groups);
    plan.global_batch += int64_t{pipeline.microbatches} * microbatch_of(plan, pipeline);
  }
}

// If the pipelines have as many stages.
void cut_alike(Plan& plan) {
  const std::vector<PlanStage> first = plan.pipelines.front().stages;
  for (PlanPipeline& pipeline : plan.pipelines) {
    for (size_t i = 0; i < pipeline.stages.size() && pipeline.stages.size() == first.size(); ++i) {
      pipeline.stages[i].first_layer = first[i].first_layer;
      pipeline.stages[i].end_layer = first[i].end_layer;
    }
  }
}

// At one level, or with the first blocks at a higher one than the others.
StageRecompute draw_recompute(Random& random, const PlanStage& stage, int layers) {
  const int blocks = std::min(stage.end_layer, layers - 1) - std::max(stage.first_layer, 1);
  const int deep = between(random, 1, static_cast<int>(trained_levels(false).size()) - 1);
  if (blocks < 2 || between(random, 0, 1) == 0) return kTrainedLevels[deep];
  return {kTrainedLevels[deep], between(random, 1, blocks - 1), kTrainedLevels[between(random, 0, deep - 1)]};
}

// Of every other group of GPUs; and the inputs of the blocks that most stages compute again whole.
void draw_offload(Random& random, Plan& plan) {
  for (PlanPipeline& pipeline : plan.pipelines) {
    const auto groups = static_cast<size_t>(num_groups(plan, pipeline));
    for (size_t s = 0; s < pipeline.stages.size(); ++s)
      pipeline.stages[s].offload = s >= groups                  ? pipeline.stages[s % groups].offload
                                   : between(random, 0, 1) == 0 ? Offload::optimizer
                                                                : Offload::none;
    for (PlanStage& stage : pipeline.stages) {
      const StageRecompute& of = stage.recompute;
      if (of.deepest() == Recompute::full && between(random, 0, 3) > 0)
        stage.recompute = of.deep_blocks() > 0
                              ? StageRecompute(Recompute::offload, of.deep_blocks(), of.level())
                              : StageRecompute(Recompute::offload);
    }
  }
}

// Features beyond unlike cuts and shares, about every other one that the plan can have.
void draw_features(Random& random, Plan& plan, int layers, bool may_offload) {
  if (between(random, 0, 2) == 0 && can_interleave(plan, layers)) interleave(random, plan, layers);
  const std::span<const Zero> degrees = zero_degrees(all_plan_features(), has_replicas(plan) ? 2 : 1);
  plan.zero = degrees[static_cast<size_t>(between(random, 0, static_cast<int>(degrees.size()) - 1))];
  if (plan.zero == Zero::parameters) cut_alike(plan);
  if (!can_sum_in_one_order(plan)) plan.zero = Zero::optimizer;
  if (between(random, 0, 1) == 0) plan.sequence_parallel = has_tensor_parallelism(plan);
  if (has_context_parallelism(plan)) plan.sequence_parallel = true;
  const int recomputing = between(random, 0, 3) - 1;  // of four stages; in every other plan none
  for (PlanPipeline& pipeline : plan.pipelines)
    for (PlanStage& stage : pipeline.stages)
      if (between(random, 1, 4) <= recomputing) stage.recompute = draw_recompute(random, stage, layers);
  if (may_offload && between(random, 0, 1) == 0) draw_offload(random, plan);
  if (plan.interleave > 1 || plan.zero >= Zero::gradients || between(random, 0, 1) == 0) return;
  for (PlanPipeline& pipeline : plan.pipelines)
    for (size_t s = 1; s < pipeline.stages.size(); ++s)
      pipeline.stages[s].weight_delay = between(random, kWholeBackward, static_cast<int>(s));
}

// In every other plan that can have them. Of numbers of its own: other plans stay as they are.
void draw_zero_group(Random random, const ModelSpec& model, Plan& plan) {
  if (plan.zero == Zero::none || between(random, 0, 1) == 0) return;
  std::vector<int> sizes = {0};
  for (int size = 1; size < static_cast<int>(plan.pipelines.size()); ++size) {
    plan.zero_group = size;
    if (zero_groups_match(plan, model)) sizes.push_back(size);
  }
  plan.zero_group = sizes.size() > 1
                        ? sizes[static_cast<size_t>(between(random, 1, static_cast<int>(sizes.size()) - 1))]
                        : 0;
}

// Of every pipeline its own, and their sum as the global batch.
void draw_microbatch_sizes(Random& random, Plan& plan, const std::vector<int>& sizes) {
  for (PlanPipeline& pipeline : plan.pipelines) pipeline.microbatch = pick(random, sizes);
  plan.global_batch = sequences_of_microbatches(plan);
}

}  // namespace

Model draw_model(Random& random, bool emulated, const Limits& limits) {
  Model model;
  size_t most_stages = 1;
  for (const auto& stages : limits.layout) most_stages = std::max(most_stages, stages.size());
  ModelSpec& m = model.job.model;
  m.family = "gpt2";
  m.heads = 4;
  if (emulated) {
    // Real computation must be next to nothing; every layer kind still has its own time and size.
    m.layers = between(random, 6, 12);
    m.hidden = pick<int>(random, {32, 48, 64});
    m.sequence = pick<int>(random, {16, 32});
    m.vocabulary = pick<int>(random, {256, 512});
    model.microbatches = {1, 2};
  } else {
    m.layers = between(random, 4, 8);
    m.hidden = pick<int>(random, {192, 256, 320, 384});
    m.sequence = pick<int>(random, {96, 128, 192});
    m.vocabulary = pick<int>(random, {1024, 2048, 4096});
    model.microbatches = {1, 2, 4};
  }
  m.layers = std::max(m.layers, static_cast<int>(most_stages));
  m.feed_forward = m.hidden * between(random, 2, 4);
  m.name = fmt::format("gpt2-{}x{}", m.layers, m.hidden);
  for (int tp = 1; tp <= std::min(limits.max_tp, m.heads); tp *= 2) model.tps.push_back(tp);
  TrainingSpec& training = model.job.training;
  training.optimizer.lr = 3e-4;
  training.seed = next(random) % 1000000;
  return model;
}

Plan draw_plan(Random& random, const Model& model, const Limits& limits, int index) {
  const Layout layout = limits.layout.empty() ? draw_layout(random, model, limits, index) : limits.layout;
  Plan plan;
  plan.model = model.job.model.name;
  plan.microbatch = pick(random, model.microbatches);
  const int pipelines = static_cast<int>(layout.size());
  const int per_pipeline = between(random, 3, 8);
  const std::vector<int> counts =
      uneven_shares(random, pipelines * per_pipeline, pipelines, between(random, 0, 2));
  plan.global_batch = int64_t{pipelines} * per_pipeline * plan.microbatch;
  for (int p = 0; p < pipelines; ++p) {
    const std::vector<ReplicaShape>& shapes = layout[static_cast<size_t>(p)];
    const std::vector<int> cut = uneven_shares(random, model.job.model.num_all_layers(),
                                               static_cast<int>(shapes.size()), between(random, 0, 3));
    PlanPipeline pipeline;
    pipeline.microbatches = counts[static_cast<size_t>(p)];
    int layer = 0;
    for (size_t s = 0; s < shapes.size(); ++s) {
      PlanStage stage;
      stage.first_layer = layer;
      stage.end_layer = layer += cut[s];
      stage.shape = shapes[s];
      stage.gpu_type = pick(random, limits.gpu_types);
      stage.zone = "here";
      pipeline.stages.push_back(stage);
    }
    plan.pipelines.push_back(pipeline);
  }
  if (limits.placed) place(plan);
  if (limits.features) {
    draw_features(random, plan, model.job.model.num_all_layers(), limits.offload);
    if (between(random, 0, 1) == 0) draw_microbatch_sizes(random, plan, model.microbatches);
    draw_zero_group(random, model.job.model, plan);
  }
  return plan;
}

std::string layout_text(const Plan& plan) {
  ShapeLayout layout;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    layout.emplace_back();
    for (const PlanStage& stage : pipeline.stages) layout.back().push_back(stage.shape);
  }
  return to_text(layout);
}

}  // namespace sailor::closed_loop
