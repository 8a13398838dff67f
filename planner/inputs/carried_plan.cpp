#include "planner/inputs/carried_plan.h"

#include <fmt/format.h>

#include <stdexcept>

#include "planner/plan/packed_plan.h"

namespace sailor {
namespace {

// Below the kernel's 128 KiB per environment string, and in total below the 1 MB that Slurm was seen to
// carry.
constexpr size_t kMaxChunkBytes = size_t{112} << 10;
constexpr size_t kMaxTotalBytes = 1'000'000;
constexpr const char* kPlan = "SAILOR_PLAN";
constexpr const char* kPlanning = "SAILOR_PLANNING";
constexpr const char* kNodes = "SAILOR_EQUAL_NODES";
constexpr const char* kQueued = "SAILOR_QUEUED_NODES";

std::string chunk_name(const std::string& name, size_t index) {
  return fmt::format("{}_{}", name, index);
}

void add_chunks(EnvironmentVariables& variables, const std::string& name, const std::string& packed) {
  for (size_t begin = 0, index = 0; begin < packed.size(); begin += kMaxChunkBytes, ++index)
    variables.emplace_back(chunk_name(name, index), packed.substr(begin, kMaxChunkBytes));
}

// Empty if the job has none.
std::string chunks_of(const Scheduler& scheduler, const std::string& name) {
  std::string packed;
  for (size_t index = 0;; ++index) {
    const std::optional<std::string> chunk = scheduler.carried_value(chunk_name(name, index));
    if (!chunk) return packed;
    packed += *chunk;
  }
}

}  // namespace

EnvironmentVariables plan_environment(const Plan& plan, const PlanningFiles& planning) {
  const std::string packed = pack_plan(plan);
  if (packed.size() > kMaxTotalBytes) {
    throw std::runtime_error(
        fmt::format("the plan of {} ranks is too large to be sent with the job ({} bytes, at most {})",
                    num_ranks(plan), packed.size(), kMaxTotalBytes));
  }
  EnvironmentVariables variables;
  add_chunks(variables, kPlan, packed);
  if (planning.empty()) return variables;
  if (const std::string inputs = pack_text(to_json(planning));
      packed.size() + inputs.size() <= kMaxTotalBytes)
    add_chunks(variables, kPlanning, inputs);
  return variables;
}

void add_node_groups(EnvironmentVariables& variables, const std::vector<NodeGroup>& groups) {
  add_chunks(variables, kNodes, pack_text(to_json(groups)));
}

void add_queued_nodes(EnvironmentVariables& variables, const std::vector<QueuedNodes>& queued) {
  if (!queued.empty()) variables.emplace_back(kQueued, to_json(queued));
}

std::optional<Plan> carried_plan(const Scheduler& scheduler) {
  const std::string packed = chunks_of(scheduler, kPlan);
  if (packed.empty()) return std::nullopt;
  return unpack_plan(packed, "the job's SAILOR_PLAN_0");
}

std::vector<NodeGroup> carried_node_groups(const Scheduler& scheduler) {
  const std::string packed = chunks_of(scheduler, kNodes);
  if (packed.empty()) return {};
  const std::string source = "the job's SAILOR_EQUAL_NODES_0";
  return parse_node_groups(unpack_text(packed, "the nodes of the plan's shape", source), source);
}

std::vector<QueuedNodes> carried_queued_nodes(const Scheduler& scheduler) {
  const std::optional<std::string> json = scheduler.carried_value(kQueued);
  return json ? parse_queued_nodes(*json, "the job's SAILOR_QUEUED_NODES") : std::vector<QueuedNodes>{};
}

PlanningFiles take_carried_planning(Scheduler& scheduler) {
  std::string packed;
  for (size_t index = 0;; ++index) {
    const std::string name = chunk_name(kPlanning, index);
    const std::optional<std::string> chunk = scheduler.carried_value(name);
    if (!chunk) break;
    packed += *chunk;
    scheduler.forget_carried_value(name);
  }
  if (packed.empty()) return {};
  const std::string source = "the job's SAILOR_PLANNING_0";
  return parse_planning_files(unpack_text(packed, "what the plan was made with", source), source);
}

}  // namespace sailor
