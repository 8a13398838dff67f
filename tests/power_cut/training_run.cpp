#include "tests/power_cut/training_run.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <stdexcept>
#include <string_view>

#include "planner/process/subprocess.h"
#include "planner/spec/text_file.h"
#include "tests/power_cut/disk_model.h"

namespace sailor::power_cut {
namespace {

constexpr const char* kJob = R"(
model: {{name: tiny, family: gpt2, layers: 4, hidden: 32, heads: 2, sequence: 32, vocabulary: 256}}
training: {{global_batch: 4, steps: {}}}
data: {{train: text.bin, format: bytes}}
checkpoint: {{directory: {}/saved, every_steps: 1, keep: 2}}
elastic: {{enabled: true}}
)";
constexpr const char* kPlan = R"({"sailor_plan": 1, "model": "tiny", "global_batch": 4, "microbatch": 1,
 "pipelines": [
  {"microbatches": 2, "stages": [{"layers": [0, 3], "gpu_type": "any", "zone": "here", "tp": 1},
                                 {"layers": [3, 6], "gpu_type": "any", "zone": "here", "tp": 1}]},
  {"microbatches": 2, "stages": [{"layers": [0, 6], "gpu_type": "any", "zone": "here", "tp": 1}]}],
 "zero1": true, "interleave": 1})";

}  // namespace

void TrainingRun::prepare() const {
  std::string text;
  for (int i = 0; i < 400; ++i) text += std::to_string(i) + "\n";
  write_file_atomically(inputs + "/text.bin", text);
  write_file_atomically(inputs + "/plan.json", kPlan);
}

int TrainingRun::train(const std::string& directory, int64_t steps, const std::string& recording) const {
  const std::string job = inputs + "/job.yaml";
  write_file_atomically(job, fmt::format(kJob, steps, directory));
  setenv("SAILOR_CONFIG", "none", 1);
  setenv("SAILOR_MPIRUN", "none", 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  if (!recording.empty()) {
    setenv("POWER_CUT_DIRECTORY", directory.c_str(), 1);
    setenv("POWER_CUT_RECORDING", recording.c_str(), 1);
    setenv("LD_PRELOAD", POWER_CUT_RECORDER, 1);
  }
  const int status = run_with_output(
      {run_program, "--local", job, "--plan", inputs + "/plan.json", "--directory", directory + "/run"},
      [&](std::string_view text) {
        if (!recording.empty()) record_output(recording, text);
      });
  for (const char* name : {"POWER_CUT_DIRECTORY", "POWER_CUT_RECORDING", "LD_PRELOAD"}) unsetenv(name);
  return exit_code_of(status);
}

}  // namespace sailor::power_cut
