#include "trainer/pipeline/rank_stage.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <string>

#include "planner/plan/validate.h"
#include "planner/spec/error.h"
#include "trainer/checkpoint/stored_model.h"
#include "trainer/model/element_types.h"
#include "trainer/model/registry.h"
#include "trainer/parallel/gradient_rounds.h"

namespace sailor {
namespace {

std::vector<int> ranks_of(const RankLayout& layout, const Plan& plan, int pipeline, int group) {
  const PlanPipeline& of = plan.pipelines[static_cast<std::size_t>(pipeline)];
  std::vector<int> ranks(static_cast<std::size_t>(of.stages[static_cast<std::size_t>(group)].shape.gpus()));
  std::iota(ranks.begin(), ranks.end(), layout.base(pipeline, group));
  return ranks;
}

// Builds the layers of a rank.
class LayerSource {
 public:
  LayerSource(const JobSpec& job, const RankLayout& layout, at::Device place, const RankStage& stage,
              bool unfilled) {
    context_.model = job.model;
    context_.padded_vocabulary = padded_vocabulary(job.model.vocabulary, layout);
    context_.dtype = scalar_type(job.training.precision);
    context_.device = place;
    context_.seed = job.training.seed;
    context_.lora = job.training.lora;
    context_.z_loss = job.training.z_loss;
    context_.tp = stage.tp.get();
    context_.cp = stage.cp.get();
    context_.shared = &shared_;
    context_.unfilled = unfilled;
    if (job.model.from.empty() || unfilled) return;
    weights_ = std::make_unique<StoredModel>(job.model);
    context_.weights = weights_.get();
  }

  std::unique_ptr<Layer> build(int layer) const { return build_layer(context_, layer); }

 private:
  LayerContext context_;
  std::map<std::string, at::Tensor> shared_;
  std::unique_ptr<StoredModel> weights_;
};

}  // namespace

void check_trainable(const JobSpec& job, const Plan& plan) {
  if (const auto violations = check_plan(plan, job); !violations.empty()) {
    throw InputError(fmt::format("plan: {}", violations.front()));
  }
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (const PlanStage& stage : pipeline.stages) check_split(job.model, stage.shape.tp);
  }
}

RankStage::RankStage(const JobSpec& job, const Plan& plan, const RankLayout& layout, int rank,
                     CommFactory& factory, at::Device place) {
  const RankSlot& slot = layout.slots().at(static_cast<std::size_t>(rank));
  const PlanPipeline& pipeline = plan.pipelines[static_cast<std::size_t>(slot.pipeline)];
  position = {slot.pipeline, slot.stage, num_groups(plan, pipeline), slot.shape, plan.sequence_parallel};
  connect(plan, layout, factory, place);
  build(job, plan, layout, place);
}

// Communicators in one global order: TP groups, context-parallel groups, then boundaries from the first to
// the last. Boundary i is from group i to the one after it; with interleaved chunks, one more is from the
// last group to the first.
void RankStage::connect(const Plan& plan, const RankLayout& layout, CommFactory& factory, at::Device place) {
  const ReplicaShape& shape = position.shape;
  const int gpu = factory.rank() - layout.base(position.pipeline, position.group);
  const auto members = [&](const auto& is_member) {
    std::vector<int> ranks;
    for (int other = 0; other < shape.gpus(); ++other)
      if (is_member(other)) ranks.push_back(layout.base(position.pipeline, position.group) + other);
    return ranks;
  };
  const int copy = shape.copy_of(gpu), part = shape.part_of(gpu);
  if (shape.tp > 1)
    tp = factory.create(fmt::format("tp/{}.{}{}", position.pipeline, position.group,
                                    shape.cp > 1 ? fmt::format(".{}", copy) : ""),
                        members([&](int other) { return shape.copy_of(other) == copy; }),
                        CommUse::collectives);
  if (shape.cp > 1)
    cp = factory.create(fmt::format("cp/{}.{}.{}", position.pipeline, position.group, part),
                        members([&](int other) { return shape.part_of(other) == part; }),
                        CommUse::layer_messages);
  const int boundaries = plan.interleave > 1 ? position.groups : position.groups - 1;
  for (int lower = 0; lower < boundaries; ++lower) {
    const int upper = (lower + 1) % position.groups;
    if (position.group != lower && position.group != upper) continue;
    std::vector<int> ranks = ranks_of(layout, plan, position.pipeline, lower);
    const std::vector<int> above = ranks_of(layout, plan, position.pipeline, upper);
    ranks.insert(ranks.end(), above.begin(), above.end());
    const auto shape_of = [&](int group) {
      return plan.pipelines[static_cast<std::size_t>(position.pipeline)]
          .stages[static_cast<std::size_t>(group)]
          .shape;
    };
    (position.group == lower ? next : previous) = std::make_unique<StageLink>(
        factory.create(fmt::format("link/{}.{}", position.pipeline, lower), ranks), tp.get(), shape_of(lower),
        shape_of(upper), place, plan.sequence_parallel);
  }
}

void RankStage::build(const JobSpec& job, const Plan& plan, const RankLayout& layout, at::Device place) {
  const bool has_others = plan.pipelines.size() > 1 || position.shape.copies() > 1;
  LayerSource source(job, layout, place, *this, has_others && gathers_every_microbatch(plan));
  const auto& stages = plan.pipelines[static_cast<std::size_t>(position.pipeline)].stages;
  for (std::size_t s = static_cast<std::size_t>(position.group); s < stages.size();
       s += static_cast<std::size_t>(position.groups)) {
    std::vector<Layer*> of_chunk;
    for (int i = stages[s].first_layer; i < stages[s].end_layer; ++i) {
      layers.push_back(source.build(i));
      of_chunk.push_back(layers.back().get());
    }
    chunks.emplace_back(of_chunk, stages[s].first_layer, job.model.num_all_layers(), stages[s].recompute,
                        stages[s].weight_delay != kWholeBackward);
  }
}

void RankStage::for_each_filled_layer(const JobSpec& job, const RankLayout& layout, at::Device place,
                                      const std::function<void(Layer&)>& function) const {
  LayerSource source(job, layout, place, *this, false);
  for (const Chunk& chunk : chunks) {
    for (int i = chunk.first_layer(); i < chunk.end_layer(); ++i) function(*source.build(i));
  }
}

void RankStage::settle() const {
  for (const auto* group : {&tp, &cp})
    if (*group) (*group)->settle();
  for (const auto* link : {&previous, &next}) {
    if (*link) (*link)->settle();
  }
}

std::vector<Parameter*> RankStage::parameters() {
  std::vector<Parameter*> all;
  for (const auto& layer : layers) {
    for (Parameter& parameter : layer->parameters()) all.push_back(&parameter);
  }
  return all;
}

std::vector<Parameter*> RankStage::trained() {
  std::vector<Parameter*> trained = parameters();
  std::erase_if(trained, [](const Parameter* parameter) { return parameter->frozen; });
  return trained;
}

}  // namespace sailor
