// Measures everything about this machine for planning one job, and stores it as it goes: a layer profile, and
// a network profile of the `socket` data plane. An interrupted run keeps its finished cells, and the next one
// continues from there (profile_journal.h). Every cell is measured in several rounds, and again until it is
// known to 2 % or the time is over. A microbatch that does not fit into memory ends the series of its TP
// degree; the planner estimates what was not measured (planner/profile/completed_profile.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"

namespace sailor {

struct ProfileRequest {
  std::string gpu_type = "cpu";  // name of the profile
  std::string directory;         // created if missing
  // Empty: 1, 2, 4, 8 on processors; on GPUs 1, 2, 4 ... 64 while memory and time last.
  std::vector<int> microbatches;
  // Empty: the powers of two that divide the model, up to the number of GPUs; on processors up to that of
  // ranks, at least to 4 and at most to 8.
  std::vector<int> tps;
  int ranks = 0;                  // concurrent ranks on this machine in a job; 0 = one per core, or per GPU
  int gpus = 0;                   // number of this machine's GPUs to measure; 0 = its processors
  double seconds = 40;            // approximate maximum for the whole run
  bool links = true;              // also store measurements of the socket data plane
  int64_t base_memory_bytes = 0;  // of a rank before any tensor: base_memory.h
};

struct ProfileOutcome {
  std::string layer_file;
  std::string network_file;        // empty without links
  std::vector<std::string> notes;  // e.g. TP degrees that do not divide the model
  int cells = 0;                   // (microbatch, TP degree) measured
};

// `tell` gets a line for every result, `advance` the number of measured cells and of all cells. Throws
// InputError (nothing could be measured for this job), std::runtime_error.
ProfileOutcome profile_job(const JobSpec& job, const ProfileRequest& request,
                           const std::function<void(const std::string&)>& tell,
                           const std::function<void(double done, double total)>& advance = {});

// The file of a job's layer profile in a directory: named by what the profile applies to, so that jobs with
// another number of blocks share it.
std::string layer_profile_path(const std::string& directory, const JobSpec& job, const std::string& gpu_type);

}  // namespace sailor
