#include "planner/report/chrome_trace.h"

#include <fmt/format.h>

#include <stdexcept>

#include "planner/report/timeline_pipelines.h"
#include "planner/report/trace_events.h"

namespace sailor {
namespace {

using Kind = TimelineEvent::Kind;

// The threads of a stage. Messages and gradient sync may overlap with its computation, so they need threads
// of their own.
enum Thread { compute, activations, gradients, sync, threads_per_stage };

Thread thread_of(Kind kind) {
  switch (kind) {
    case Kind::send_forward:
      return activations;
    case Kind::send_backward:
      return gradients;
    case Kind::sync:
      return sync;
    default:
      return compute;
  }
}

const char* category(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return "forward";
    case Kind::backward:
      return "backward";
    case Kind::weights:
      return "weights";
    case Kind::send_forward:
    case Kind::send_backward:
      return "send";
    case Kind::sync:
      return "sync";
    case Kind::update:
      return "update";
  }
  return "";
}

std::string name_of(const TimelineEvent& event, bool chunks) {
  if (event.kind == Kind::sync || event.kind == Kind::update) return category(event.kind);
  const bool forward = event.kind == Kind::forward || event.kind == Kind::send_forward;
  std::string name = category(event.kind) == std::string("send") ? "send " : "";
  name += fmt::format("{}{}", forward ? 'F' : event.kind == Kind::weights ? 'W' : 'B', event.microbatch);
  if (chunks) name += fmt::format(".{}", event.chunk);
  return name;
}

void add(TraceEvents& trace, int process, const TimelineEvent& event, bool chunks) {
  trace.span(process, event.stage * threads_per_stage + thread_of(event.kind), name_of(event, chunks),
             category(event.kind), event.start_s, event.end_s);
}

}  // namespace

std::string chrome_trace(const Plan& plan, const std::vector<Timeline>& timelines) {
  if (timelines.size() != plan.pipelines.size())
    throw std::invalid_argument("chrome_trace: not one timeline per pipeline");
  TraceEvents trace;
  for (size_t j = 0; j < timelines.size(); ++j) {
    const PlanPipeline& pipeline = plan.pipelines[j];
    const int process = static_cast<int>(j);
    const int stages = num_gpu_groups(plan, pipeline);
    trace.name_process(process, fmt::format("pipeline {}", j));
    std::vector<bool> used(static_cast<size_t>(stages) * threads_per_stage, false);
    for (const std::vector<TimelineEvent>* events : {&timelines[j].events, &timelines[j].transfers})
      for (const TimelineEvent& event : *events)
        used.at(static_cast<size_t>(event.stage * threads_per_stage + thread_of(event.kind))) = true;
    for (int i = 0; i < stages; ++i) {
      const int first = i * threads_per_stage;
      trace.name_thread(process, first, gpu_group_name(plan, pipeline, i));
      if (used[first + activations])
        trace.name_thread(process, first + activations, fmt::format("stage {} sends activations", i));
      if (used[first + gradients])
        trace.name_thread(process, first + gradients, fmt::format("stage {} sends gradients", i));
      if (used[first + sync])
        trace.name_thread(process, first + sync, fmt::format("stage {} gradient sync", i));
    }
    for (const TimelineEvent& event : timelines[j].events) add(trace, process, event, plan.interleave > 1);
    for (const TimelineEvent& event : timelines[j].transfers) add(trace, process, event, plan.interleave > 1);
  }
  return trace.json();
}

}  // namespace sailor
