#include "planner/simulator/change_memory.h"

#include <algorithm>
#include <cmath>

namespace sailor {
namespace {

// What is updated, and what updates it: 16-bit weights follow from their master copies, and frozen ones are
// read again.
int64_t kept_state(const MemoryBreakdown& memory) {
  const int64_t values =
      memory.master_bytes > 0 ? memory.master_bytes : memory.weights_bytes - memory.frozen_bytes;
  return values + memory.optimizer_bytes;
}

}  // namespace

int64_t change_bytes(const MemoryBreakdown& before, const MemoryBreakdown& after,
                     const FrameworkStyle& style) {
  const int64_t old_state = style.change_moves_state ? 0 : kept_state(before);
  const int64_t tensors =
      old_state + after.weights_bytes + after.gradients_bytes + after.master_bytes + after.optimizer_bytes;
  return std::max(before.base_bytes, after.base_bytes) +
         static_cast<int64_t>(std::ceil(static_cast<double>(tensors) * (1 + style.fragmentation)));
}

const StagePrediction* restarts_on_change(const JobSpec& job, const Prediction& prediction,
                                          const FrameworkStyle& style) {
  if (!job.changes_in_place()) return nullptr;
  const auto stage =
      std::find_if(prediction.stages.begin(), prediction.stages.end(), [&](const StagePrediction& one) {
        return change_bytes(one.memory, one.memory, style) > one.capacity_bytes;
      });
  return stage == prediction.stages.end() ? nullptr : &*stage;
}

const char* restart_source(const JobSpec& job) {
  return job.checkpoint.directory.empty()
             ? "a change may run out of memory: set checkpoint.directory, to resume from a checkpoint"
             : "after a change training resumes from the last checkpoint";
}

const char* loss_source(const JobSpec& job) {
  return job.checkpoint.directory.empty() || job.checkpoint.every_steps == 0
             ? "training ends: set checkpoint.directory and checkpoint.every_steps, to resume from a "
               "checkpoint"
             : "training resumes from the last checkpoint";
}

}  // namespace sailor
