#include "planner/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "planner/plan/feature_text.h"

namespace sailor {

int num_groups(const Plan& plan, const PlanPipeline& pipeline) {
  return static_cast<int>(pipeline.stages.size()) / std::max(1, plan.interleave);
}

std::set<std::string> gpu_types_of(const Plan& plan) {
  std::set<std::string> types;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) types.insert(stage.gpu_type);
  return types;
}

std::map<std::string, std::map<std::string, int>> gpu_counts_of(const Plan& plan) {
  std::map<std::string, std::map<std::string, int>> gpus;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (int i = 0; i < num_groups(plan, pipeline); ++i) {
      const PlanStage& stage = pipeline.stages[static_cast<size_t>(i)];
      gpus[stage.gpu_type][stage.zone] += stage.shape.gpus();
    }
  return gpus;
}

bool has_tensor_parallelism(const Plan& plan) {
  return std::any_of(plan.pipelines.begin(), plan.pipelines.end(), [](const PlanPipeline& pipeline) {
    return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                       [](const PlanStage& stage) { return stage.shape.tp > 1; });
  });
}

bool has_context_parallelism(const Plan& plan) {
  return std::any_of(plan.pipelines.begin(), plan.pipelines.end(), [](const PlanPipeline& pipeline) {
    return std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                       [](const PlanStage& stage) { return stage.shape.cp > 1; });
  });
}

bool offloads(const Plan& plan) {
  return std::ranges::any_of(plan.pipelines, [](const PlanPipeline& pipeline) {
    return std::ranges::any_of(pipeline.stages, [](const PlanStage& stage) { return offloads(stage); });
  });
}

bool has_replicas(const Plan& plan) {
  return plan.pipelines.size() > 1 || has_context_parallelism(plan);
}

int num_zero_groups(const Plan& plan) {
  return plan.zero_group > 0 ? static_cast<int>(plan.pipelines.size()) / plan.zero_group : 1;
}

PipelineRange zero_group_of(const Plan& plan, int pipeline) {
  if (plan.zero_group == 0) return {0, static_cast<int>(plan.pipelines.size())};
  const int first = pipeline / plan.zero_group * plan.zero_group;
  return {first, first + plan.zero_group};
}

std::set<int> microbatch_sizes(const Plan& plan) {
  std::set<int> sizes;
  for (const PlanPipeline& pipeline : plan.pipelines) sizes.insert(microbatch_of(plan, pipeline));
  return sizes;
}

int64_t sequences_of_microbatches(const Plan& plan) {
  int64_t sequences = 0;
  for (const PlanPipeline& pipeline : plan.pipelines)
    sequences += int64_t{pipeline.microbatches} * microbatch_of(plan, pipeline);
  return sequences;
}

int num_ranks(const Plan& plan) {
  int ranks = 0;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    for (int group = 0; group < num_groups(plan, pipeline); ++group)
      ranks += pipeline.stages[static_cast<size_t>(group)].shape.gpus();
  }
  return ranks;
}

int64_t num_microbatches(int64_t global_batch, int microbatch) {
  if (global_batch < 0 || microbatch < 1) {
    throw std::invalid_argument(
        fmt::format("num_microbatches: global batch {} in microbatches of {}", global_batch, microbatch));
  }
  return global_batch / microbatch + (global_batch % microbatch != 0 ? 1 : 0);
}

std::vector<int> share_microbatches(int64_t total, int pipelines) {
  if (total < 0 || pipelines < 1) {
    throw std::invalid_argument(fmt::format("share_microbatches: {} among {} pipelines", total, pipelines));
  }
  std::vector<int> shares(static_cast<size_t>(pipelines), static_cast<int>(total / pipelines));
  std::fill_n(shares.begin(), total % pipelines, static_cast<int>(total / pipelines + 1));
  return shares;
}

void share_batch(Plan& plan) {
  const auto count = static_cast<int>(plan.pipelines.size());
  if (!has_unlike_microbatches(plan)) {
    const std::vector<int> shares = share_microbatches(
        num_microbatches(plan.global_batch, microbatch_of(plan, plan.pipelines.at(0))), count);
    for (size_t p = 0; p < shares.size(); ++p) plan.pipelines[p].microbatches = shares[p];
    return;
  }
  const auto all = static_cast<double>(sequences_of_microbatches(plan));
  std::vector<double> owed;  // sequences
  int64_t left = plan.global_batch;
  for (PlanPipeline& pipeline : plan.pipelines) {
    const int size = microbatch_of(plan, pipeline);
    const double share = static_cast<double>(plan.global_batch) * pipeline.microbatches * size / all;
    pipeline.microbatches = std::max(1, static_cast<int>(share / size));
    left -= int64_t{pipeline.microbatches} * size;
    owed.push_back(share - static_cast<double>(pipeline.microbatches) * size);
  }
  while (left > 0) {
    size_t next = plan.pipelines.size() - 1;  // the last microbatch may be smaller
    bool fits = false;
    for (size_t p = 0; p < plan.pipelines.size(); ++p) {
      if (microbatch_of(plan, plan.pipelines[p]) > left || (fits && owed[p] <= owed[next])) continue;
      next = p;
      fits = true;
    }
    const int size = microbatch_of(plan, plan.pipelines[next]);
    ++plan.pipelines[next].microbatches;
    left -= size;
    owed[next] -= size;
  }
}

JobSpec job_under(const Plan& plan, JobSpec job) {
  job.training.precision = precision_of(plan, job);
  job.training.fallback_precision.reset();
  return job;
}

std::string summary(const Plan& plan) {
  // Consecutive equal pipelines are written once.
  auto describe = [](const PlanPipeline& pipeline) {
    std::string text;
    for (const PlanStage& stage : pipeline.stages) {
      text += fmt::format("{}{}x{} tp{}", text.empty() ? "" : " | ", stage.shape.gpus(), stage.gpu_type,
                          to_string(stage.shape));
    }
    return text;
  };
  std::string text;
  int64_t microbatches = 0;
  for (size_t i = 0; i < plan.pipelines.size();) {
    std::string one = describe(plan.pipelines[i]);
    size_t end = i;
    for (; end < plan.pipelines.size() && describe(plan.pipelines[end]) == one; ++end) {
      microbatches += plan.pipelines[end].microbatches;
    }
    if (!text.empty()) text += "; ";
    text += end - i > 1 ? fmt::format("{} x ({})", end - i, one) : one;
    i = end;
  }
  const std::string features = feature_text(plan);
  return fmt::format("{} pipeline{}: {}, {} microbatches of {}{}{}", plan.pipelines.size(),
                     plan.pipelines.size() == 1 ? "" : "s", text, microbatches,
                     fmt::join(microbatch_sizes(plan), " or "), features.empty() ? "" : ", ", features);
}

}  // namespace sailor
