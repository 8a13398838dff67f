// A plan as flags of Megatron-LM's training scripts, if Megatron-LM can run it. Pure.
//
// Megatron-LM has one tensor-parallel size, one layer split and one number of microbatches for all pipelines.
// It numbers ranks in the order TP, then pipelines, then stages; the trainer's launcher starts each on its
// GPU.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"

namespace sailor {

struct MegatronFlags {
  std::string why_not;             // one line: why Megatron-LM cannot run the plan; then nothing else is set
  std::vector<std::string> flags;  // `--NAME` or `--NAME VALUE`
  std::vector<std::string> notes;  // what the flags do not cover, one line each
};

// Requires a plan that check_plan(plan, job) accepts. Flags describe the shape of the model, batch, precision
// and parallelism; data, learning rate and checkpoints are left to the user.
MegatronFlags megatron_flags(const JobSpec& job, const Plan& plan);

}  // namespace sailor
