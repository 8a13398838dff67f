#include "trainer/record/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "planner/plan/rank_layout.h"
#include "planner/report/trace_events.h"

namespace sailor {
namespace {

std::string name_of(const TracedTask& task) {
  if (task.microbatch < 0) return to_string(task.kind);
  switch (task.kind) {
    case TaskKind::forward:
      return fmt::format("F{}", task.microbatch);
    case TaskKind::backward:
      return fmt::format("B{}", task.microbatch);
    case TaskKind::weights:
      return fmt::format("W{}", task.microbatch);
    default:
      return fmt::format("{} {}", to_string(task.kind), task.microbatch);
  }
}

}  // namespace

std::string rank_trace(const Plan& plan, const std::map<int, std::vector<TracedTask>>& tasks) {
  double zero_s = std::numeric_limits<double>::infinity();
  for (const auto& entry : tasks) {
    for (const TracedTask& task : entry.second) zero_s = std::min(zero_s, task.start_s);
  }
  TraceEvents trace;
  for (std::size_t p = 0; p < plan.pipelines.size(); ++p)
    trace.name_process(static_cast<int>(p), fmt::format("pipeline {}", p));
  const RankLayout layout(plan);
  for (const RankSlot& slot : layout.slots()) {
    auto it = tasks.find(slot.rank);
    if (it == tasks.end()) continue;
    const PlanStage& stage = stage_of(plan, slot);
    trace.name_thread(slot.pipeline, slot.rank,
                      fmt::format("rank {}: stage {}, {}{}", slot.rank, slot.stage, stage.gpu_type,
                                  slot.node.empty() ? "" : " on " + slot.node));
    for (const TracedTask& task : it->second) {
      trace.span(slot.pipeline, slot.rank, name_of(task), to_string(task.kind), task.start_s - zero_s,
                 task.end_s - zero_s);
    }
  }
  return trace.json();
}

}  // namespace sailor
