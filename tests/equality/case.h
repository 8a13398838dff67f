// One comparison: a small job and a plan for it, drawn from a seed. The same arguments give the same case in
// every process. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/data/token_data.h"

namespace sailor::equality {

constexpr int kSteps = 20;  // under each plan

struct CaseOptions {
  uint64_t seed = 1;
  int index = 0;  // of the case
  Precision precision = Precision::fp32;
  std::string layout;  // empty: drawn too
  std::string family = "gpt2";
  bool resume = false;  // a second plan goes on from the first one's checkpoint
};

struct Case {
  JobSpec job;
  Plan plan;
  std::optional<Plan> second_plan;
  std::string layout;    // as on the command line; of two plans `FIRST > SECOND`
  std::string features;  // what makes it interesting, `;` between

  TokenData data() const;
};

// Every second case, from the first on, has messages between stages above 64 KiB; a given layout of single
// stages has none at all.
Case make_case(const CaseOptions& options);

}  // namespace sailor::equality
