#include "tests/checkpoint_crash/training.h"

#include <cstring>
#include <mutex>
#include <random>

#include "planner/plan/rank_layout.h"
#include "planner/spec/model_family.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "tests/unit/trainer/small_training.h"

namespace sailor::checkpoint_crash {
namespace {

constexpr int64_t kSteps = 40;

template <class Function>
void on_threads(const Training& training, const Function& function) {
  TestJob ranks("thread", num_ranks(training.plan));
  ranks.run([&](CommFactory& factory) {
    RankTrainer trainer(training.job, training.plan, factory.rank(), factory, training.data);
    function(factory.rank(), trainer);
  });
}

uint64_t mix(uint64_t hash, const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous();
  const auto* bytes = static_cast<const unsigned char*>(whole.data_ptr());
  for (std::size_t i = 0; i < whole.nbytes(); ++i) hash = (hash ^ bytes[i]) * 1099511628211ULL;  // FNV-1a
  return hash;
}

}  // namespace

Training draw_training(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&random](auto list) { return list[random() % list.size()]; };
  using Shape = std::pair<std::vector<std::vector<int>>, std::vector<int>>;
  const std::vector<Shape> shapes = {
      {{{1}}, {8}},    {{{2}}, {8}},        {{{1}, {1}}, {4, 4}}, {{{1, 1}}, {8}}, {{{2, 1}, {1}}, {5, 3}},
      {{{1, 2}}, {8}}, {{{2}, {1}}, {5, 3}}};
  JobSpec job = small_job(pick(model_families()).name, /*layers=*/4, /*global_batch=*/8);
  job.model.hidden = static_cast<int>(16 * (1 + random() % 4));  // shards of 60 KB to 1 MB
  job.model.feed_forward = 4 * job.model.hidden;
  job.training.seed = seed;
  job.training.steps = kSteps;
  const auto [pipelines, microbatches] = pick(shapes);
  Plan plan = make_plan(job, /*microbatch=*/1, pipelines, microbatches);
  if (pipelines.size() > 1 && random() % 2 == 0) plan.zero = Zero::optimizer;
  return {job, plan, repeating_data(job)};
}

uint64_t fingerprint(RankTrainer& trainer) {
  uint64_t hash = 14695981039346656037ULL;
  for (const Parameter* parameter : trainer.parameters()) hash = mix(hash, parameter->value);
  Optimizer& optimizer = trainer.optimizer();
  for (std::size_t i = 0; i < optimizer.slices().size(); ++i)
    for (const OptimizerState& state : optimizer.state(i)) hash = mix(hash, state.tensor);
  return hash * 31 + static_cast<uint64_t>(optimizer.steps_done());
}

Fingerprints uninterrupted(const Training& training) {
  const auto ranks = static_cast<std::size_t>(num_ranks(training.plan));
  Fingerprints all(static_cast<std::size_t>(training.job.training.steps) + 1, std::vector<uint64_t>(ranks));
  on_threads(training, [&](int rank, RankTrainer& trainer) {
    const auto r = static_cast<std::size_t>(rank);
    all[0][r] = fingerprint(trainer);
    for (std::size_t step = 1; step < all.size(); ++step) {
      trainer.step();
      all[step][r] = fingerprint(trainer);
    }
  });
  return all;
}

Loaded load(const Training& training, const std::string& directory) {
  Loaded loaded;
  loaded.fingerprints.resize(static_cast<std::size_t>(num_ranks(training.plan)));
  on_threads(training, [&](int rank, RankTrainer& trainer) {
    const LoadedCheckpoint found = trainer.load(directory);
    loaded.fingerprints[static_cast<std::size_t>(rank)] = fingerprint(trainer);
    if (rank != 0) return;
    if (!found.path.empty()) loaded.step = found.steps_done;
    loaded.skipped = found.skipped;
  });
  return loaded;
}

}  // namespace sailor::checkpoint_crash
