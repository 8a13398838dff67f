#include "trainer/pipeline/rank_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "planner/plan/rank_layout.h"
#include "planner/plan/validate.h"
#include "planner/spec/error.h"
#include "trainer/model/registry.h"
#include "trainer/optim/square_sum.h"
#include "trainer/parallel/gradient_sync.h"
#include "trainer/parallel/stage_link.h"
#include "trainer/parallel/tensor_parallel.h"
#include "trainer/pipeline/executor.h"
#include "trainer/pipeline/tensor_cache.h"

namespace sailor {
namespace {

using Clock = Pacer::Clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<int> rank_range(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

void check_trainable(const JobSpec& job, const Plan& plan) {
  if (const auto violations = check_plan(plan, job); !violations.empty()) {
    throw InputError(fmt::format("plan: {}", violations.front()));
  }
  if (job.training.optimizer.name != "adamw") {
    throw InputError(fmt::format("training.optimizer.name: the trainer does not know \"{}\" (known: adamw)",
                                 job.training.optimizer.name));
  }
  if (plan.zero1)
    throw InputError("plan: zero1: the trainer cannot shard optimizer state yet; set it to false");
  if (plan.interleave != 1)
    throw InputError("plan: interleave: the trainer runs plain 1F1B only; set it to 1");
  const ModelFamily& family = model_family(job.model.family);
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (const PlanStage& stage : pipeline.stages) {
      if (stage.recompute != "none") {
        throw InputError("plan: recompute: the trainer cannot recompute activations yet; set it to \"none\"");
      }
      family.check(job.model, stage.tp);
    }
  }
}

double sum_of_squares(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return flat.scalar_type() == at::kDouble ? square_sum(flat.data_ptr<double>(), flat.numel())
                                           : square_sum(flat.data_ptr<float>(), flat.numel());
}

}  // namespace

// Members that others refer to stand before them.
struct RankTrainer::Impl {
  const JobSpec job;
  const Plan plan;
  const RankLayout layout;
  const RankSlot slot;
  const TokenData& data;
  Pacer* const pacer;
  StagePosition position;

  std::unique_ptr<Communicator> tp;     // nullptr when the stage has one GPU
  std::unique_ptr<Communicator> world;  // all ranks, for a few numbers per step
  std::unique_ptr<StageLink> previous, next;
  std::vector<std::unique_ptr<Layer>> layers;
  std::unique_ptr<GradientSync> gradient_sync;
  std::unique_ptr<AdamW> optimizer;
  std::unique_ptr<PipelineExecutor> executor;
  int64_t next_step = 0;

  Impl(const JobSpec& j, const Plan& p, int rank, CommFactory& factory, const TokenData& d, Pacer* pc)
      : job(j),
        plan((check_trainable(j, p), p)),
        layout(plan),
        slot(layout.slots().at(static_cast<std::size_t>(rank))),
        data(d),
        pacer(pc) {
    const PlanPipeline& pipeline = plan.pipelines[static_cast<std::size_t>(slot.pipeline)];
    const PlanStage& stage = pipeline.stages[static_cast<std::size_t>(slot.stage)];
    position = {slot.pipeline,     slot.stage,      static_cast<int>(pipeline.stages.size()),
                stage.first_layer, stage.end_layer, stage.tp};

    // Communicators in one global order: TP groups, boundaries from the first to the last, gradient groups,
    // everybody.
    if (stage.tp > 1) {
      tp = factory.create(fmt::format("tp/{}.{}", slot.pipeline, slot.stage),
                          rank_range(layout.base(slot.pipeline, slot.stage), stage.tp));
    }
    if (pacer) pacer->joins(tp.get());
    if (!position.first()) previous = link(factory, slot.stage - 1);
    if (!position.last()) next = link(factory, slot.stage);
    build_layers();
    const std::vector<Parameter*> all = parameters();
    gradient_sync = std::make_unique<GradientSync>(plan, layout, rank, factory, tp.get(), all);
    world = factory.create("world", rank_range(0, layout.size()));

    optimizer = std::make_unique<AdamW>(job.training.optimizer, all);
    std::vector<Layer*> raw;
    for (const auto& layer : layers) raw.push_back(layer.get());
    executor = std::make_unique<PipelineExecutor>(position, job.model, scalar_type(job.training.precision),
                                                  raw, previous.get(), next.get(), pacer);
    release_cached_tensors();  // initial values were drawn in sizes of their own
  }

  // The boundary between stage `lower` of this pipeline and the one after it.
  std::unique_ptr<StageLink> link(CommFactory& factory, int lower) {
    const auto& stages = plan.pipelines[static_cast<std::size_t>(slot.pipeline)].stages;
    const int lower_tp = stages[static_cast<std::size_t>(lower)].tp;
    const int upper_tp = stages[static_cast<std::size_t>(lower) + 1].tp;
    std::vector<int> ranks = rank_range(layout.base(slot.pipeline, lower), lower_tp);
    const std::vector<int> upper = rank_range(layout.base(slot.pipeline, lower + 1), upper_tp);
    ranks.insert(ranks.end(), upper.begin(), upper.end());
    return std::make_unique<StageLink>(factory.create(fmt::format("link/{}.{}", slot.pipeline, lower), ranks),
                                       tp.get(), lower_tp, upper_tp);
  }

  void build_layers() {
    std::vector<int> tps;
    for (const RankSlot& s : layout.slots()) tps.push_back(s.tp);
    LayerContext context;
    context.model = job.model;
    context.padded_vocabulary = padded_vocabulary(job.model.vocabulary, tps);
    context.dtype = scalar_type(job.training.precision);
    context.seed = job.training.seed;
    context.tp = tp.get();
    const ModelFamily& family = model_family(job.model.family);
    for (int i = position.first_layer; i < position.end_layer; ++i)
      layers.push_back(family.build(context, i));
    for (Parameter* parameter : parameters()) {
      parameter->value.mutable_grad() = at::zeros_like(parameter->value.detach());
    }
  }

  std::vector<Parameter*> parameters() {
    std::vector<Parameter*> all;
    for (const auto& layer : layers) {
      for (Parameter& parameter : layer->parameters()) all.push_back(&parameter);
    }
    return all;
  }

  Batch load(int microbatch) const {
    const MicrobatchRange range = microbatch_range(plan, slot.pipeline, microbatch);
    const int64_t tokens = job.model.sequence;
    Batch batch;
    batch.inputs = at::empty({range.sequences, tokens}, at::kLong);
    batch.targets = at::empty({range.sequences, tokens}, at::kLong);
    if (!position.first() && !position.last()) return batch;  // the shape is all that a middle stage looks at
    for (int i = 0; i < range.sequences; ++i) {
      const std::vector<int64_t> sequence = data.sequence(next_step, range.first_sequence + i);
      const auto bytes = static_cast<std::size_t>(tokens) * sizeof(int64_t);
      std::memcpy(batch.inputs.data_ptr<int64_t>() + i * tokens, sequence.data(), bytes);
      std::memcpy(batch.targets.data_ptr<int64_t>() + i * tokens, sequence.data() + 1, bytes);
    }
    return batch;
  }

  // Every parameter once: replicas agree by now, so the first pipeline speaks for all.
  double own_sum_of_squares() {
    double sum = 0;
    if (slot.pipeline != 0) return sum;
    for (const Parameter* parameter : parameters()) {
      if (parameter->sharded || slot.tp_rank == 0) sum += sum_of_squares(parameter->value.grad());
    }
    return sum;
  }

  StepResult step() {
    const auto begin = Clock::now();
    if (pacer) pacer->iteration_begins();
    StepResult result;
    result.step = next_step;
    result.tokens = job.training.global_batch * job.model.sequence;
    auto start = Clock::now();
    for (Parameter* parameter : parameters()) parameter->value.mutable_grad().zero_();
    Clock::duration per_parameter = Clock::now() - start;  // work of the update that is done elsewhere

    const int microbatches = plan.pipelines[static_cast<std::size_t>(slot.pipeline)].microbatches;
    const PipelineRun run = executor->run(microbatches, result.tokens, [this](int m) { return load(m); });
    result.max_in_flight = run.max_in_flight;
    result.forward_s = run.forward_s;
    result.backward_s = run.backward_s;
    result.wait_s = run.wait_s;

    start = Clock::now();
    gradient_sync->run();
    result.gradient_sync_s = seconds_since(start);
    start = Clock::now();
    double numbers[2] = {position.last() && slot.tp_rank == 0 ? run.loss : 0.0, own_sum_of_squares()};
    per_parameter += Clock::now() - start;
    start = Clock::now();
    world->all_reduce(numbers, 2, ElementType::f64, ReduceOp::sum);
    result.loss = numbers[0];
    result.grad_norm = std::sqrt(numbers[1]);
    result.gradient_sync_s += seconds_since(start);

    start = Clock::now() - per_parameter;
    optimizer->step();
    if (pacer) {
      pacer->computed({Phase::update, position.pipeline, position.stage, position.first_layer,
                       position.end_layer, position.tp, 0},
                      start);
    }
    result.update_s = seconds_since(start);
    ++next_step;
    if (pacer) pacer->iteration_ends(begin);
    result.step_s = seconds_since(begin);
    return result;
  }
};

RankTrainer::RankTrainer(const JobSpec& job, const Plan& plan, int rank, CommFactory& factory,
                         const TokenData& data, Pacer* pacer)
    : impl_(std::make_unique<Impl>(job, plan, rank, factory, data, pacer)) {}
RankTrainer::~RankTrainer() = default;

StepResult RankTrainer::step() {
  return impl_->step();
}
int64_t RankTrainer::next_step() const {
  return impl_->next_step;
}
void RankTrainer::set_next_step(int64_t step) {
  impl_->next_step = step;
}
std::vector<Parameter*> RankTrainer::parameters() {
  return impl_->parameters();
}
AdamW& RankTrainer::optimizer() {
  return *impl_->optimizer;
}

}  // namespace sailor
