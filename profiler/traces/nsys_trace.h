// A trace of NVIDIA Nsight Systems, as its report of NVTX ranges projected to the GPU (CSV, times in ns):
//
//     nsys profile --trace=cuda,nvtx --pytorch=autograd-nvtx -o run python train.py
//     nsys stats --report nvtx_gpu_proj_trace --format csv --output . run.nsys-rep
//
// PyTorch's ranges (torch.autograd.profiler.emit_nvtx) are the operators and the nodes of autograd's graph,
// those of sailor_steps.name_modules() the calls of modules. Ranges without work of a GPU are not in the
// report. Kernels are not either: the innermost ranges stand for them, from the begin of their first kernel
// to the end of their last.
#pragma once

#include <string>

#include "profiler/traces/program_trace.h"

namespace sailor {

// Does the file's name say that it is such a report? Throws InputError, with what to do, for a recording
// that has not been exported (.nsys-rep, .qdrep, .sqlite).
bool is_nsys_report(const std::string& path);

// Throws InputError: not such a report, damaged, of several processes, or without PyTorch's ranges.
ProgramTrace read_nsys_trace(const std::string& path);

}  // namespace sailor
