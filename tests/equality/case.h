// One comparison: a small random job and a plan for it. The same arguments give the same case in every
// process. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "planner/plan/features.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/data/token_data.h"

namespace sailor::equality {

// Under each plan. A loss scale that starts far too high needs more to come down, and to grow too far again.
constexpr int kSteps = 8, kStepsWithOverflow = 16;

// A number in [low, high]; the standard's distributions differ between libraries.
inline int between(std::mt19937_64& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1));
}

struct CaseOptions {
  uint64_t seed = 1;
  int index = 0;  // of the case
  Precision precision = Precision::fp32;
  std::string layout;  // empty: random
  std::string family = "gpt2";
  std::optional<Zero> zero{};      // what the plan shards; empty: random
  bool sequence_parallel = false;  // the plan is, as about every second one with TP degrees is anyway
  // Of the case, where its layout is drawn: these, each in every plan, and no others. Empty: any of them.
  std::optional<PlanFeatures> features{};
  bool resume = false;          // a second plan resumes from the first one's checkpoint
  bool force_overflow = false;  // fp16: gradients overflow in the first steps, and now and then later
  bool lora = false;            // adapters are trained, as in about every fourth case anyway
  bool muon = false;            // the optimizer, as in about every fourth case anyway
  int most_ranks = 12;          // of further plans
  bool lose_ranks = false;      // further plans continue with the state in memory of the remaining ranks
};

struct Case {
  JobSpec job;
  Plan plan;
  std::optional<Plan> second_plan;
  std::optional<Plan> third_plan;  // for ranks that are lost twice
  int steps = kSteps;              // under each plan
  std::string layout;              // as on the command line; of several plans `FIRST > SECOND`
  std::string features;            // interesting features, separated by `;`

  TokenData data() const;
};

// Every second case, from the first on, has messages above 64 KiB between stages, except given layouts of
// single stages, which have no messages.
Case make_case(const CaseOptions& options);

}  // namespace sailor::equality
