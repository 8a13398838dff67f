// What the trace of a training program says of its parts and the time that they take, whatever recorded it
// (kineto_trace.h, nsys_trace.h). Value types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace sailor {

// Of a thread of the host, or of a stream of a GPU.
struct TraceSpan {
  double begin_us = 0, end_us = 0;
  int64_t thread = 0;

  bool holds(const TraceSpan& other) const { return begin_us <= other.begin_us && other.end_us <= end_us; }
};

// An operator of PyTorch.
struct TracedOperator : TraceSpan {
  int64_t id = -1;           // that of the kernels that it launches
  int64_t sequence = -1;     // of the autograd node that it makes, or, in a backward, is
  bool backward = false;     // runs a node of autograd's graph
  bool accumulates = false;  // stores the gradient of a parameter; data parallelism sums from there
};

// A call of a torch.nn.Module.
struct ModuleCall : TraceSpan {
  std::string of;  // the name of its class and the number of its object: "GPTBlock_3"

  std::string class_name() const { return of.substr(0, of.rfind('_')); }
};

// The call of the host that launches a kernel.
struct TracedLaunch : TraceSpan {
  int64_t correlation = -1;
};

// What a GPU does: a kernel, a copy or a memset.
struct TracedKernel : TraceSpan {
  int64_t launched_by = -1;   // the operator's id; -1 = unknown
  int64_t correlation = -1;   // that of its launch
  bool communicates = false;  // a kernel of NCCL
};

struct ProgramTrace {
  std::string file;
  std::string recorded_by;                // for people: "torch.profiler"
  std::string module_names;               // what a program does to have its modules' calls in such a trace
  std::string device;                     // the first GPU, by its own name; empty if not known
  std::vector<TracedOperator> operators;  // of each list: by begin, the longer first
  std::vector<ModuleCall> modules;
  std::vector<TracedKernel> kernels;
  std::vector<TracedLaunch> launches;
  std::vector<TraceSpan> optimizer_steps;
};

// In the order of ProgramTrace.
template <typename Span>
void sort_by_begin(std::vector<Span>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.begin_us != b.begin_us ? a.begin_us < b.begin_us : a.end_us > b.end_us;
  });
}
inline void sort_by_begin(ProgramTrace& trace) {
  sort_by_begin(trace.operators);
  sort_by_begin(trace.modules);
  sort_by_begin(trace.kernels);
  sort_by_begin(trace.launches);
  sort_by_begin(trace.optimizer_steps);
}

}  // namespace sailor
