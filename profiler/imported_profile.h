// A layer profile from a trace of another trainer, so that jobs of that trainer are planned with its own
// kernels' times. A trace has no sizes of tensors: those are the estimates for the job's trainer.
#pragma once

#include <string>

#include "planner/profile/layer_profile.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/job_spec.h"

namespace sailor {

struct TraceImport {
  std::string trace;              // file of torch.profiler (.json, .json.gz) or report of nsys (.csv)
  std::string gpu_type;           // catalog name
  int microbatch = 1;             // sequences in a pass of the trace
  int tp = 1;                     // ranks that share each layer in it
  std::string block_class;        // of modules that are blocks; empty: the one that fits
  int64_t base_memory_bytes = 0;  // of the type
  bool on_processors = false;     // the type's ranks compute there
};

struct ImportedProfile {
  ProfileFile profile;
  std::string block_class;
  bool on_gpu = false;
};

// `earlier` is the file that gets the times, or empty. Throws InputError: the trace (traced_layers.h), a
// job with adapters, or an earlier file of something else.
ImportedProfile import_trace(const JobSpec& job, const TraceImport& import, const FrameworkStyle& framework,
                             const ProfileFile& earlier);

}  // namespace sailor
