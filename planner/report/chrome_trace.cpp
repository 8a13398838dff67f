#include "planner/report/chrome_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "planner/report/timeline_pipelines.h"

namespace sailor {
namespace {

using Kind = TimelineEvent::Kind;

// The threads of a stage. Messages and gradient sync may overlap with its computation, so that they cannot
// stand on the same one.
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
  name += fmt::format("{}{}", forward ? 'F' : 'B', event.microbatch);
  if (chunks) name += fmt::format(".{}", event.chunk);
  return name;
}

class Trace {
 public:
  void metadata(const char* what, int process, int thread, const std::string& name, int order) {
    append(fmt::format(R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                       process, thread, nlohmann::json(name).dump(-1, ' ', true)));
    append(fmt::format(R"({{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                       what, process, thread, order));
  }
  // Times in microseconds, to the nanosecond.
  void span(int process, const TimelineEvent& event, bool chunks) {
    append(fmt::format(R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})",
                       name_of(event, chunks), category(event.kind), process,
                       event.stage * threads_per_stage + thread_of(event.kind), event.start_s * 1e6,
                       (event.end_s - event.start_s) * 1e6));
  }
  std::string finish() { return out_ + "\n]}\n"; }

 private:
  void append(const std::string& event) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    out_ += event;
  }

  std::string out_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
  bool first_ = true;
};

}  // namespace

std::string chrome_trace(const Plan& plan, const std::vector<Timeline>& timelines) {
  if (timelines.size() != plan.pipelines.size())
    throw std::invalid_argument("chrome_trace: not one timeline per pipeline");
  Trace trace;
  for (size_t j = 0; j < timelines.size(); ++j) {
    const PlanPipeline& pipeline = plan.pipelines[j];
    const int process = static_cast<int>(j);
    const int stages = num_gpu_groups(plan, pipeline);
    trace.metadata("process", process, 0, fmt::format("pipeline {}", j), process);
    std::vector<bool> used(static_cast<size_t>(stages) * threads_per_stage, false);
    for (const std::vector<TimelineEvent>* events : {&timelines[j].events, &timelines[j].transfers})
      for (const TimelineEvent& event : *events)
        used.at(static_cast<size_t>(event.stage * threads_per_stage + thread_of(event.kind))) = true;
    for (int i = 0; i < stages; ++i) {
      const int first = i * threads_per_stage;
      trace.metadata("thread", process, first, gpu_group_name(plan, pipeline, i), first);
      if (used[first + activations])
        trace.metadata("thread", process, first + activations, fmt::format("stage {} sends activations", i),
                       first + activations);
      if (used[first + gradients])
        trace.metadata("thread", process, first + gradients, fmt::format("stage {} sends gradients", i),
                       first + gradients);
      if (used[first + sync])
        trace.metadata("thread", process, first + sync, fmt::format("stage {} gradient sync", i),
                       first + sync);
    }
    for (const TimelineEvent& event : timelines[j].events) trace.span(process, event, plan.interleave > 1);
    for (const TimelineEvent& event : timelines[j].transfers) trace.span(process, event, plan.interleave > 1);
  }
  return trace.finish();
}

}  // namespace sailor
