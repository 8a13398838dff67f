// A plan as the configuration of the framework that runs it: one format per framework, each in a file of its
// own. Configurations have what the plan and the job spec say; data, tokenizers and checkpoints are left to
// the user. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"

namespace sailor {

struct FrameworkConfig {
  std::string why_not;  // one line: why the framework cannot run the plan; then nothing else is set
  std::string text;     // the file
  std::vector<std::string> notes;  // what the file does not say, one line each
};

struct ConfigFormat {
  const char* name;       // of `sailor plan --format`
  const char* framework;  // in messages
  const char* trainer;    // the kind whose plans it is for ...
  std::vector<std::string>
      also_for;  // ... unless the job is for one of these; empty name: for any but our own
  FrameworkConfig (*emit)(const JobSpec& job, const Plan& plan);

  // The kind to plan for when the job's trainer is of this kind (empty = Sailor's own).
  std::string trainer_for(const std::string& kind) const;
};

const std::vector<ConfigFormat>& config_formats();
// Null if there is none of this name.
const ConfigFormat* find_config_format(const std::string& name);

// All require a plan that check_plan(plan, job) accepts. The megatron_flags() as a text, a flag per line.
FrameworkConfig megatron_config(const JobSpec& job, const Plan& plan);
// TOML of TorchTitan 0.2.
FrameworkConfig torchtitan_config(const JobSpec& job, const Plan& plan);
// JSON for deepspeed.initialize().
FrameworkConfig deepspeed_config(const JobSpec& job, const Plan& plan);
// YAML of `accelerate launch --config_file`: DistributedDataParallel; where the plan shards FSDP for a job of
// that, else DeepSpeed.
FrameworkConfig accelerate_config(const JobSpec& job, const Plan& plan);
// YAML that changes a recipe of NeMo 2: `nemo llm pretrain --factory RECIPE --yaml FILE`.
FrameworkConfig nemo_config(const JobSpec& job, const Plan& plan);
// JSON with the arguments of torch.distributed.device_mesh.init_device_mesh().
FrameworkConfig mesh_config(const JobSpec& job, const Plan& plan);

// Settings of the job that no format has, as a note; empty if there are none. `optimizer` and `schedule`:
// whether the file has those.
std::string unsaid_note(const TrainingSpec& training, bool optimizer, bool schedule);
// A number that TOML and YAML 1.1 read as one with a fraction.
std::string real_text(double value);

}  // namespace sailor
