// `sailor profile JOB.yaml`: measures the job's layers and the data plane on this machine.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/site_config.h"
#include "profiler/base_memory.h"
#include "profiler/profile_job.h"
#include "trainer/pipeline/host_memory.h"
#include "trainer/pipeline/tensor_cache.h"

namespace {

using namespace sailor;

// Where this site keeps its profiles, so that the planner finds what was measured.
std::string default_directory() {
  if (!std::filesystem::exists(site_config_path())) return "profiles";
  const SiteConfig site = load_site_config(site_config_path());
  return site.profiles.empty() ? "profiles" : site.profiles.front();
}

int run(const std::string& job_file, ProfileRequest request) {
  const JobSpec job = load_job_spec(job_file);
  if (request.directory.empty()) request.directory = default_directory();
  request.base_memory_bytes = measure_base_memory_bytes(job);
  // One rank has one core to itself; so has the measurement.
  at::set_num_threads(1);
  std::cerr << "layer times are forward + backward + update\n";
  const ProfileOutcome outcome =
      profile_job(job, request, [](const std::string& line) { std::cerr << line << std::endl; });
  for (const std::string& note : outcome.notes) std::cerr << "note: " << note << '\n';
  std::cout << outcome.layer_file << '\n' << outcome.network_file << '\n';
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  std::string job_file;
  ProfileRequest request;
  CLI::App app{"Measures the layers of JOB.yaml's model on this machine, for the planner", "sailor profile"};
  app.add_option("JOB", job_file, "job spec (YAML)")->required();
  app.add_option("--gpu-type", request.gpu_type, "name of what is measured, as in the catalog")
      ->capture_default_str();
  app.add_option("--out", request.directory, "directory of profiles (default: the site config's first)");
  app.add_option("--microbatches", request.microbatches, "sequences per microbatch")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--tp", request.tps, "TP degrees")->delimiter(',')->check(CLI::Range(1, 64));
  app.add_option("--ranks", request.ranks,
                 "ranks that a job has on this machine at once (default: one per core)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--seconds", request.seconds, "about how long it may take")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    std::cerr << "sailor: " << e.what() << " (see `sailor profile --help`)\n";
    return kBadInput;
  }
  keep_freed_memory();  // as a rank does
  use_tensor_cache();
  try {
    return run(job_file, std::move(request));
  } catch (const InputError& e) {
    std::cerr << "sailor: " << e.what() << '\n';
    return kBadInput;
  } catch (const std::exception& e) {
    std::cerr << "sailor: " << e.what() << '\n';
    return kFailed;
  }
}
