#include "profiler/overhead_bench.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "planner/plan/plan.h"
#include "planner/process/seconds_since.h"
#include "trainer/comm/thread_plane.h"
#include "trainer/data/token_data.h"
#include "trainer/gpu/gpu.h"
#include "trainer/model/torch_device.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {
namespace {

// The whole model on one GPU, one sequence per iteration.
Plan single_rank_plan(const JobSpec& job) {
  PlanStage stage;
  stage.end_layer = job.model.num_all_layers();
  stage.gpu_type = "any";
  Plan plan;
  plan.model = job.model.name;
  plan.global_batch = 1;
  plan.microbatch = 1;
  plan.pipelines = {{1, {stage}}};
  return plan;
}

std::vector<uint16_t> random_tokens(const ModelSpec& model) {
  std::mt19937 generator(1);
  std::uniform_int_distribution<int> token(0, std::min(model.vocabulary, 65536) - 1);
  std::vector<uint16_t> tokens(static_cast<size_t>(model.sequence) * 16 + 1);
  for (uint16_t& t : tokens) t = static_cast<uint16_t>(token(generator));
  return tokens;
}

}  // namespace

Estimate measure_iteration_overhead_s(const JobSpec& job, const MeasuringOptions& options, bool on_gpu) {
  using Clock = std::chrono::steady_clock;
  JobSpec small = job;
  small.training.global_batch = 1;
  small.model.from.clear();  // any weights do
  const Plan plan = single_rank_plan(small);
  const TokenData data = TokenData::from_tokens(random_tokens(job.model), job.model.sequence, 1,
                                                job.model.vocabulary, job.training.seed);
  ThreadHub hub(1);
  const auto factory = hub.factory(0);
  const std::unique_ptr<Gpu> gpu = on_gpu ? open_gpu({}) : nullptr;
  const std::unique_ptr<CommFactory> plane = gpu ? gpu->plane(*factory, CommOptions()) : nullptr;
  const DevicePlane on{gpu ? gpu->device() : host_device(), plane ? *plane : *factory};
  const ComputeOn computes(on.device);
  RankTrainer trainer(small, plan, 0, *factory, data, /*pacer=*/nullptr, gpu ? &on : nullptr);
  Samples overhead;
  for (int i = 0; i < options.warm_up; ++i) trainer.step();
  const auto begin = Clock::now();
  while (!enough(overhead, seconds_since(begin), options)) {
    const auto start = Clock::now();
    const StepResult step = trainer.step();
    const double step_s = seconds_since(start);
    overhead.add(std::max(0.0, step_s - step.forward_s - step.backward_s - step.update_s));
  }
  return {overhead.median(), overhead.size()};
}

}  // namespace sailor
