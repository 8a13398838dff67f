// Times training steps of one job under one plan: the whole step as a rank runs it, on one thread or more,
// alone or, started by mpirun, as ranks over sockets. Rank 0 prints one CSV row. trainer_speed.sh compares.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "planner/cli/program.h"
#include "tests/bench/trainer/training.h"
#include "trainer/comm/bootstrap.h"
#include "trainer/comm/host_memory.h"
#include "trainer/comm/thread_plane.h"
#include "trainer/gpu/gpu.h"
#include "trainer/model/torch_device.h"
#include "trainer/pipeline/rank_trainer.h"
#include "trainer/pipeline/tensor_cache.h"

namespace sailor::bench {
namespace {

// Median seconds of a step after the warm-up.
double median_step_s(const JobSpec& job, const Plan& plan, int rank, CommFactory& factory, int warm_up,
                     int steps, const DevicePlane* on = nullptr) {
  const TokenData data = random_tokens(job);
  RankTrainer trainer(job, plan, rank, factory, data, /*pacer=*/nullptr, on);
  std::vector<double> seconds;
  for (int step = 0; step < warm_up + steps; ++step) {
    const StepResult result = trainer.step();
    if (step >= warm_up) seconds.push_back(result.step_s);
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

// One rank on a GPU. What it takes of the device's memory goes to `used_bytes`.
double median_step_on_gpu_s(const JobSpec& job, const Plan& plan, int warm_up, int steps,
                            int64_t& used_bytes) {
  const std::unique_ptr<Gpu> gpu = open_gpu({});
  if (!gpu) throw InputError("--gpu: there is none");
  const ComputeOn computes(gpu->device());
  ThreadHub hub(1);
  const auto factory = hub.factory(0);
  const auto plane = gpu->plane(*factory, CommOptions());
  const DevicePlane on{gpu->device(), *plane};
  const double step_s = median_step_s(job, plan, 0, *factory, warm_up, steps, &on);
  used_bytes = gpu->device().used_bytes();
  return step_s;
}

int run(int argc, char** argv) {
  std::string job_file;
  Shape shape;
  int threads = 1, warm_up = 2, steps = 5, batch = 0;
  CLI::App app{"Times training steps; under mpirun each process is a rank", "bench_trainer"};
  app.add_option("job", job_file, "job YAML")->required();
  app.add_option("--stages", shape.stages)->check(CLI::PositiveNumber);
  app.add_option("--tp", shape.tp)->check(CLI::PositiveNumber);
  app.add_option("--batch", batch, "sequences per step (default: the job's)")->check(CLI::PositiveNumber);
  app.add_option("--microbatches", shape.microbatches)->check(CLI::PositiveNumber);
  bool on_gpu = false;
  app.add_flag("--gpu", on_gpu, "on a GPU; the row then has the device's used MiB, too");
  app.add_option("--threads", threads, "of each rank")->check(CLI::PositiveNumber);
  app.add_option("--warm-up", warm_up, "steps that are not timed")->check(CLI::NonNegativeNumber);
  app.add_option("--steps", steps, "steps that are")->check(CLI::PositiveNumber);
  return cli::run_program(app, argc, argv, [&]() -> int {
    JobSpec job = load_job_spec(job_file);
    if (batch > 0) job.training.global_batch = batch;
    if (shape.stages > job.model.num_all_layers()) throw InputError("--stages: more than layers");
    if (job.training.global_batch % shape.microbatches != 0)
      throw InputError("--microbatches: does not divide the sequences of a step");
    const Plan plan = even_plan(job, shape);
    at::set_num_threads(threads);

    double step_s = 0;
    int64_t used_bytes = 0;
    if (on_gpu && shape.ranks() > 1) throw InputError("--gpu: one rank only");
    if (on_gpu) {
      step_s = median_step_on_gpu_s(job, plan, warm_up, steps, used_bytes);
    } else if (shape.ranks() == 1) {
      ThreadHub hub(1);
      step_s = median_step_s(job, plan, 0, *hub.factory(0), warm_up, steps);
    } else {
      Listener listener("127.0.0.1");
      const BootstrapResult boot = bootstrap(to_text(RankCard{{"127.0.0.1", listener.port()}, "", 0}));
      if (boot.size != shape.ranks())
        throw InputError(fmt::format("this plan wants mpirun -n {}, not {}", shape.ranks(), boot.size));
      listener.start(boot.secret);
      std::vector<Endpoint> endpoints;
      for (const std::string& card : boot.cards) endpoints.push_back(parse_rank_card(card).endpoint);
      SocketFactory factory(boot.rank, endpoints, boot.secret, listener);
      step_s = median_step_s(job, plan, boot.rank, factory, warm_up, steps);
      if (boot.rank != 0) return kDone;
    }
    const auto tokens = static_cast<double>(job.training.global_batch * job.model.sequence);
    fmt::print("{},{},{},{},{:.4f},{:.1f}{}\n", shape.stages, shape.tp, shape.microbatches, threads, step_s,
               tokens / step_s, on_gpu ? fmt::format(",{}", used_bytes >> 20) : "");
    return kDone;
  });
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  // As a rank does.
  sailor::keep_freed_memory();
  sailor::use_tensor_cache();
  return sailor::bench::run(argc, argv);
}
