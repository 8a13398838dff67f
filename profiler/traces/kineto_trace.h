// A trace of PyTorch's profiler (Kineto, https://github.com/pytorch/kineto): the events that say which part
// of a model took how long. Chrome's format as torch.profiler writes it, plain or compressed with gzip. Value
// types.
#pragma once

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

// An operator (category cpu_op).
struct TracedOperator : TraceSpan {
  int64_t id = -1;           // "External id": that of the kernels that it launches
  int64_t sequence = -1;     // "Sequence number": of the autograd node that it makes, or, in a backward, is
  bool backward = false;     // runs a node of autograd's graph
  bool accumulates = false;  // stores the gradient of a parameter; data parallelism sums from there
};

// A call of a torch.nn.Module. Traces have them if the profiler records stacks (with_stack=True).
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

struct KinetoTrace {
  std::string file;
  std::string device;                     // the first GPU, by its own name; empty without one
  std::vector<TracedOperator> operators;  // of each list: by begin, the longer first
  std::vector<ModuleCall> modules;
  std::vector<TracedKernel> kernels;
  std::vector<TracedLaunch> launches;
  std::vector<TraceSpan> optimizer_steps;
};

// Throws InputError: not such a trace, damaged, or without operators.
KinetoTrace read_kineto_trace(const std::string& path);

}  // namespace sailor
