// The training that is killed: a small model under a random plan, and the state of every rank after each step
// without a kill.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/data/token_data.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor::checkpoint_crash {

struct Training {
  JobSpec job;
  Plan plan;
  TokenData data;
};

// Plans differ in TP degrees, pipelines, stages and ZeRO-1, models in family and size.
Training draw_training(uint64_t seed);

// A hash of the exact bits of all values and optimizer states of a rank.
uint64_t fingerprint(RankTrainer& trainer);

// By step (0 = before the first), then by rank.
using Fingerprints = std::vector<std::vector<uint64_t>>;
Fingerprints uninterrupted(const Training& training);

struct Loaded {
  int64_t step = -1;  // -1: no checkpoint
  std::vector<uint64_t> fingerprints;
  std::vector<std::string> skipped;
};
// Loads the newest complete checkpoint on the ranks of the plan.
Loaded load(const Training& training, const std::string& directory);

}  // namespace sailor::checkpoint_crash
