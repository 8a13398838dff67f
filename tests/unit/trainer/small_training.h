// A model of a few kilobytes, plans for it and tokens to train it on: shared by tests of whole training
// steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/model_family.h"
#include "trainer/data/token_data.h"

namespace sailor {

inline JobSpec small_job(const std::string& family, int layers, int64_t global_batch) {
  JobSpec job;
  job.model.name = "tiny";
  set_family(job.model, family);
  job.model.layers = layers;
  job.model.hidden = 16;
  job.model.heads = 4;
  job.model.feed_forward = 32;
  job.model.sequence = 8;
  job.model.vocabulary = 11;
  job.training.global_batch = global_batch;
  job.training.optimizer.lr = 1e-2;
  return job;
}

// With everything that makes a step depend on previous ones, and on their number.
inline JobSpec scheduled_job(const std::string& family, int64_t steps) {
  JobSpec job = small_job(family, /*layers=*/4, /*global_batch=*/8);
  job.training.steps = steps;
  job.training.optimizer.weight_decay = 0.1;
  job.training.clip_grad_norm = 1.0;
  job.training.schedule.name = "cosine";
  job.training.schedule.warmup_steps = 2;
  return job;
}

// In fp64, for any TP degrees from 1 to 4.
inline JobSpec job_in_fp64(bool tied) {
  JobSpec job = small_job("gpt2", /*layers=*/4, /*global_batch=*/8);
  job.model.heads = 12;
  job.model.hidden = 24;
  job.model.feed_forward = 48;
  job.model.tied_embeddings = tied;
  job.training.precision = Precision::fp64;
  job.training.clip_grad_norm = 0.5;
  return job;
}

// Pipelines as TP degrees per stage; layers are divided as evenly as possible.
inline Plan make_plan(const JobSpec& job, int microbatch, const std::vector<std::vector<int>>& pipelines,
                      const std::vector<int>& microbatches) {
  Plan plan;
  plan.model = job.model.name;
  plan.global_batch = job.training.global_batch;
  plan.microbatch = microbatch;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    PlanPipeline pipeline;
    pipeline.microbatches = microbatches[p];
    const int stages = static_cast<int>(pipelines[p].size());
    for (int s = 0; s < stages; ++s) {
      PlanStage stage;
      stage.first_layer = job.model.num_all_layers() * s / stages;
      stage.end_layer = job.model.num_all_layers() * (s + 1) / stages;
      stage.shape.tp = pipelines[p][static_cast<std::size_t>(s)];
      pipeline.stages.push_back(stage);
    }
    plan.pipelines.push_back(pipeline);
  }
  return plan;
}

// Tokens with period eleven, so that a model learns them within a few steps. The documents of jobs that mask
// them have five tokens, of which the answers of fine-tuning are the last three.
inline TokenData repeating_data(const JobSpec& job) {
  TokensInMemory data;
  for (int i = 0; i < 1001; ++i) data.tokens.push_back(static_cast<uint16_t>(i * i % 11));
  for (int64_t start = 0; start < 1000; start += 5) {
    data.document_starts.push_back(start);
    data.answers.emplace_back(start + 2, start + 5);
  }
  return TokenData::in_memory(data, job);
}

}  // namespace sailor
