#include "tests/bench/trainer/training.h"

#include <numeric>
#include <random>

#include "planner/spec/transformer_shape.h"

namespace sailor::bench {
namespace {

// Multiplications per token that each layer does, forward: a lookup is none.
std::vector<double> work_of_layers(const ModelSpec& model) {
  const TransformerShape shape = shape_of(model);
  std::vector<double> work{0};
  for (int i = 0; i < shape.layers; ++i) {
    const TransformerShape block = shape.of_block(i);
    work.push_back(static_cast<double>(block.block_parameters()) +
                   2.0 * block.heads * block.head_width * block.keys());
  }
  work.push_back(static_cast<double>(shape.vocabulary) * shape.hidden);
  return work;
}

// Ends of `stages` runs of layers, none empty, the heaviest of which is as light as possible.
std::vector<int> even_cut(const std::vector<double>& work, int stages) {
  const int layers = static_cast<int>(work.size());
  std::vector<double> sums(work.size() + 1, 0);
  std::partial_sum(work.begin(), work.end(), sums.begin() + 1);
  // heaviest[s][l]: of the first l layers in s runs; begin[s][l]: where the last of these begins.
  const auto states = static_cast<std::size_t>(stages) + 1;
  std::vector<std::vector<double>> heaviest(states, std::vector<double>(sums.size(), 1e300));
  std::vector<std::vector<int>> begin(states, std::vector<int>(sums.size(), 0));
  heaviest[0][0] = 0;
  for (int s = 1; s <= stages; ++s) {
    for (int l = s; l <= layers; ++l) {
      for (int b = s - 1; b < l; ++b) {
        const double load = std::max(heaviest[s - 1][b], sums[l] - sums[b]);
        if (load >= heaviest[s][l]) continue;
        heaviest[s][l] = load;
        begin[s][l] = b;
      }
    }
  }
  std::vector<int> ends(static_cast<std::size_t>(stages));
  for (int s = stages, l = layers; s > 0; l = begin[s][l], --s) ends[s - 1] = l;
  return ends;
}

}  // namespace

Plan even_plan(const JobSpec& job, const Shape& shape) {
  Plan plan;
  plan.model = job.model.name;
  plan.global_batch = job.training.global_batch;
  plan.microbatch = static_cast<int>(job.training.global_batch / shape.microbatches);
  PlanPipeline pipeline;
  pipeline.microbatches = shape.microbatches;
  for (const int end : even_cut(work_of_layers(job.model), shape.stages)) {
    PlanStage stage;
    stage.first_layer = pipeline.stages.empty() ? 0 : pipeline.stages.back().end_layer;
    stage.end_layer = end;
    stage.gpu_type = stage.zone = "host";
    stage.shape.tp = shape.tp;
    pipeline.stages.push_back(stage);
  }
  plan.pipelines.push_back(pipeline);
  return plan;
}

TokenData random_tokens(const JobSpec& job) {
  std::mt19937 random(1);
  std::vector<uint16_t> tokens(static_cast<size_t>(job.model.sequence) * 64 + 1);
  for (uint16_t& token : tokens) token = static_cast<uint16_t>(random() % job.model.vocabulary);
  return TokenData::from_tokens(tokens, job.model.sequence, job.training.global_batch, job.model.vocabulary,
                                1);
}

}  // namespace sailor::bench
