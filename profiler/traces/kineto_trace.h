// A trace of PyTorch's profiler (Kineto, https://github.com/pytorch/kineto): Chrome's format as
// torch.profiler writes it, plain or compressed with gzip. It has the calls of modules if the profiler
// records stacks.
#pragma once

#include <string>

#include "profiler/traces/program_trace.h"

namespace sailor {

// Throws InputError: not such a trace, damaged, or without operators.
ProgramTrace read_kineto_trace(const std::string& path);

}  // namespace sailor
