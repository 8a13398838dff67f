#include "profiler/base_memory.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "planner/plan/plan_json.h"
#include "planner/process/program_path.h"
#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"
#include "planner/spec/text_file.h"
#include "profiler/overhead_bench.h"
#include "trainer/gpu/gpu.h"
#include "trainer/record/run_directory.h"

namespace sailor {
namespace {

constexpr int kLayers = 2, kHidden = 32, kSequence = 16, kBatch = 4;

std::string small_job(const JobSpec& job) {
  return fmt::format(
      "model: {{family: {}, layers: {}, hidden: {}, heads: 2, sequence: {}, vocabulary: 256}}\n"
      "training: {{global_batch: {}, steps: 3, precision: {}}}\n"
      "data: {{train: text.txt, format: bytes}}\n",
      job.model.family, kLayers, kHidden, kSequence, kBatch, to_string(job.training.precision));
}

Plan small_plan(const JobSpec& job) {
  Plan plan;
  plan.model = fmt::format("{}-{}x{}", job.model.family, kLayers, kHidden);
  plan.global_batch = kBatch;
  plan.microbatch = 1;
  PlanStage first, second;
  first.gpu_type = second.gpu_type = "any";
  first.zone = second.zone = "here";
  first.end_layer = second.first_layer = (kLayers + 2) / 2;
  second.end_layer = kLayers + 2;
  plan.pipelines = {{kBatch, {first, second}}};
  return plan;
}

int64_t train(const JobSpec& job, const std::string& directory) {
  write_file_atomically(directory + "/text.txt", std::string(4096, 'a'));
  write_file_atomically(directory + "/job.yaml", small_job(job));
  write_file_atomically(directory + "/plan.json", to_json(small_plan(job)));
  SpawnOptions options;
  options.output_file = directory + "/log";
  options.environment["SAILOR_CONFIG"] = directory + "/none";  // nothing is emulated
  const pid_t pid = spawn({program_path("sailor-run"), directory + "/job.yaml", "--local", "--plan",
                           directory + "/plan.json", "--directory", directory + "/run"},
                          options);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0)
    throw std::runtime_error(fmt::format("two small ranks, to measure the memory that every rank needs: {}",
                                         last_line(options.output_file)));
  int64_t bytes = 0;
  const auto summary = nlohmann::json::parse(read_text_file(directory + "/run/summary.json"));
  for (const auto& rank : summary.at("ranks"))
    bytes = std::max(bytes, rank.at("peak_rss_bytes").get<int64_t>());
  return bytes;
}

}  // namespace

int64_t measure_gpu_base_memory_bytes(const JobSpec& job) {
  const ScratchDirectory scratch;
  write_file_atomically(scratch.path() + "/job.yaml", small_job(job));
  MeasuringOptions few;
  few.max_seconds = 0;
  few.min_samples = 3;
  // The memory of the tensors stays with libtorch, and is negligible.
  measure_iteration_overhead_s(load_job_spec(scratch.path() + "/job.yaml"), few, /*gpu=*/true);
  return open_gpu({})->device().used_bytes();
}

int64_t measure_base_memory_bytes(const JobSpec& job) {
  const ScratchDirectory scratch;
  return train(job, scratch.path());
}

}  // namespace sailor
