#include "tests/equality/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include "planner/spec/error.h"

namespace sailor::equality {
namespace {

using Random = std::mt19937_64;
using Layout = std::vector<std::vector<int>>;

int between(Random& random, int low, int high) {  // the standard's distributions differ between libraries
  return low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1));
}

Layout draw_layout(Random& random, bool several_stages) {
  constexpr int kMaxRanks = 12;
  const bool threes = random() % 3 == 0;
  while (true) {
    Layout layout;
    int ranks = 0;
    std::size_t most_stages = 0;
    const int pipelines = between(random, 1, 4);
    for (int p = 0; p < pipelines; ++p) {
      layout.emplace_back();
      const int stages = between(random, 1, 4);
      for (int s = 0; s < stages; ++s) {
        constexpr int kDegrees[] = {1, 1, 2, 4, 3};
        layout.back().push_back(kDegrees[between(random, 0, threes ? 4 : 3)]);
        ranks += layout.back().back();
      }
      most_stages = std::max(most_stages, layout.back().size());
    }
    if (ranks >= 2 && ranks <= kMaxRanks && (most_stages > 1 || !several_stages)) return layout;
  }
}

// `parts` positive numbers that add up to `total`.
std::vector<int> draw_shares(Random& random, int total, int parts) {
  std::vector<int> shares(static_cast<std::size_t>(parts), 1);
  for (int left = total - parts; left > 0; --left) ++shares[random() % shares.size()];
  return shares;
}

std::string to_text(const Layout& layout) {
  std::vector<std::string> pipelines;
  for (const auto& stages : layout) pipelines.push_back(fmt::format("{}", fmt::join(stages, ",")));
  return fmt::format("{}", fmt::join(pipelines, "/"));
}

}  // namespace

Layout parse_layout(const std::string& text) {
  Layout layout;
  std::istringstream pipelines(text);
  for (std::string pipeline; std::getline(pipelines, pipeline, '/');) {
    layout.emplace_back();
    std::istringstream stages(pipeline);
    for (std::string stage; std::getline(stages, stage, ',');) {
      int tp = 0;
      const auto parsed = std::from_chars(stage.data(), stage.data() + stage.size(), tp);
      if (parsed.ec != std::errc() || parsed.ptr != stage.data() + stage.size() || tp < 1 || tp > 64) break;
      layout.back().push_back(tp);
    }
  }
  if (layout.empty() || to_text(layout) != text ||
      std::any_of(layout.begin(), layout.end(), [](const auto& stages) { return stages.empty(); })) {
    throw InputError("--layout: " + text + " is no layout; write pipelines as TP degrees, such as 4,1/2");
  }
  return layout;
}

Case make_case(const CaseOptions& options) {
  Random random(options.seed * 1000003 + static_cast<uint64_t>(options.index));
  const bool large = options.index % 2 == 0;  // messages above 64 KiB
  const Layout layout = options.layout.empty() ? draw_layout(random, large) : parse_layout(options.layout);
  std::size_t most_stages = 1;
  int heads = 1;  // every TP degree divides them
  for (const auto& stages : layout) {
    most_stages = std::max(most_stages, stages.size());
    for (const int tp : stages) {
      const int64_t multiple = std::lcm<int64_t>(heads, tp);
      if (multiple > 4096)
        throw InputError("--layout: the least common multiple of the TP degrees is above 4096");
      heads = static_cast<int>(multiple);
    }
  }
  while (heads < 4) heads *= 2;

  Case result;
  result.layout = to_text(layout);
  std::set<std::string> features;

  ModelSpec& model = result.job.model;
  model.family = options.family;
  model.name = "equality";
  model.layers = std::max(between(random, 2, 4), static_cast<int>(most_stages) - 2);
  model.heads = heads;
  model.hidden = heads * (large ? (heads <= 4 ? 24 : 8) : 8);
  model.feed_forward = model.hidden * between(random, 2, 4);
  model.vocabulary = between(random, 50, 130);

  TrainingSpec& training = result.job.training;
  training.precision = options.precision;
  training.seed = random();
  training.steps = kSteps;
  training.optimizer.lr = 3e-4;
  training.optimizer.epsilon = 1e-3;  // not the usual 1e-8: see main.cpp
  training.optimizer.weight_decay = 0.1;

  Plan& plan = result.plan;
  plan.model = model.name;
  plan.microbatch = between(random, 2, 3);
  const int64_t row_bytes = int64_t{plan.microbatch} * model.hidden * element_bytes(options.precision);
  model.sequence =
      large ? static_cast<int>(65536 / row_bytes) + between(random, 1, 8) : between(random, 12, 40);

  const int pipelines = static_cast<int>(layout.size());
  const int microbatches = between(random, std::max(2, pipelines), pipelines + 4);
  const int missing = random() % 2 ? between(random, 1, plan.microbatch - 1) : 0;
  training.global_batch = plan.global_batch = int64_t{microbatches} * plan.microbatch - missing;
  const std::vector<int> shares = draw_shares(random, microbatches, pipelines);
  for (int p = 0; p < pipelines; ++p) {
    const auto& degrees = layout[static_cast<std::size_t>(p)];
    const std::vector<int> cut =
        draw_shares(random, model.num_all_layers(), static_cast<int>(degrees.size()));
    PlanPipeline pipeline;
    pipeline.microbatches = shares[static_cast<std::size_t>(p)];
    int next = 0;
    for (std::size_t s = 0; s < degrees.size(); ++s) {
      PlanStage stage;
      stage.first_layer = next;
      stage.end_layer = next += cut[s];
      stage.gpu_type = "cpu";
      stage.zone = "here";
      stage.tp = degrees[s];
      pipeline.stages.push_back(stage);
    }
    if (std::set<int>(cut.begin(), cut.end()).size() > 1) features.insert("uneven_split");
    plan.pipelines.push_back(pipeline);
  }

  std::set<std::vector<int>> cuts;
  std::set<int> degrees;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    std::vector<int> cut;
    for (const PlanStage& stage : pipeline.stages) {
      cut.push_back(stage.end_layer);
      degrees.insert(stage.tp);
    }
    cuts.insert(cut);
  }
  if (cuts.size() > 1) features.insert("cuts_differ");
  if (degrees.size() > 1) features.insert("mixed_tp");
  if (std::set<int>(shares.begin(), shares.end()).size() > 1) features.insert("microbatches_differ");
  if (missing) features.insert("smaller_last");
  for (const int tp : degrees) {
    if (model.vocabulary % tp) features.insert("padded_vocabulary");
  }
  const int64_t message = row_bytes * model.sequence;
  if (most_stages > 1) features.insert(fmt::format("message_{}KiB", message / 1024));
  result.features = fmt::format("{}", fmt::join(features, ";"));
  return result;
}

TokenData Case::data() const {
  Random random(job.training.seed ^ 0x5eed);
  std::vector<uint16_t> tokens(static_cast<std::size_t>(job.model.sequence) * 97 + 1);
  for (uint16_t& token : tokens)
    token = static_cast<uint16_t>(random() % static_cast<uint64_t>(job.model.vocabulary));
  return TokenData::from_tokens(std::move(tokens), job.model.sequence, job.training.global_batch,
                                job.model.vocabulary, job.training.seed);
}

}  // namespace sailor::equality
