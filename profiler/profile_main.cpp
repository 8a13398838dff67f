// `sailor profile JOB.yaml`: measures the job's layers and the data plane on this machine.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "planner/cli/program.h"
#include "planner/cli/progress_line.h"
#include "planner/inputs/load_inputs.h"
#include "planner/process/program_path.h"
#include "planner/profile/layer_profile.h"
#include "planner/report/profile_table.h"
#include "planner/spec/catalog.h"
#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/site_config.h"
#include "profiler/base_memory.h"
#include "profiler/imported_profile.h"
#include "profiler/live_cluster.h"
#include "profiler/node_jobs.h"
#include "profiler/profile_directory.h"
#include "profiler/profile_job.h"
#include "trainer/comm/host_memory.h"
#include "trainer/gpu/gpu.h"
#include "trainer/pipeline/tensor_cache.h"

namespace {

using namespace sailor;

int show(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const std::string table = profile_table(load_profile_file(file));
    std::cout << "profile    " << file << '\n' << table << '\n';
  }
  return kDone;
}

// On one node of every GPU type of the cluster. Links are not measured: a node says nothing about others.
int run_on_nodes(const std::string& job_file, const ProfileRequest& request) {
  load_job_spec(job_file);  // a mistake is told once
  const SiteConfig site = load_site_config(site_config_path());
  std::vector<std::string> notes;
  const std::vector<NodeJob> jobs =
      one_node_of_each_type(read_live_cluster(), load_catalog(site.catalog), notes);
  for (const std::string& note : notes) std::cerr << "note: " << note << '\n';
  if (jobs.empty()) throw std::runtime_error("no node of a GPU type of " + site.catalog + " is free");
  std::vector<std::string> command = {
      program_path("sailor-profile"), std::filesystem::absolute(job_file), "--layers-only", "--out",
      std::filesystem::absolute(request.directory.empty() ? default_profile_directory() : request.directory)};
  command.insert(command.end(), {"--seconds", fmt::format("{}", request.seconds)});
  for (const auto& [option, values] :
       {std::pair("--microbatches", request.microbatches), {"--tp", request.tps}})
    if (!values.empty()) command.insert(command.end(), {option, fmt::format("{}", fmt::join(values, ","))});
  if (request.ranks > 0) command.insert(command.end(), {"--ranks", std::to_string(request.ranks)});
  for (const NodeJob& job : jobs)
    std::cerr << fmt::format("type {}: measured on {}\n", job.gpu_type, job.node);
  const int failed = run_node_jobs(site_scheduler(), jobs, command,
                                   [](const std::string& line) { std::cerr << line << std::endl; });
  return failed == 0 ? kDone : kFailed;
}

SiteConfig site_if_any() {
  const std::string config = site_config_path();
  return std::filesystem::exists(config) ? load_site_config(config) : SiteConfig{};
}

// The job once in each precision that its plans may have on the type.
std::vector<JobSpec> in_each_precision(const JobSpec& job, const std::string& gpu_type) {
  if (!job.training.fallback_precision) return {job};
  const Catalog catalog = load_catalog(site_if_any().catalog);
  const auto type = catalog.gpu_types.find(gpu_type);
  std::vector<JobSpec> jobs;
  for (const Precision precision : {job.training.precision, *job.training.fallback_precision}) {
    if (type != catalog.gpu_types.end() && type->second.lacks(precision)) continue;
    JobSpec& one = jobs.emplace_back(job);
    one.training.precision = precision;
    one.training.fallback_precision.reset();
  }
  if (jobs.empty())
    throw InputError({job.file, 0}, fmt::format("training.precision: {}: the matrix units of {} have neither",
                                                job.training.precision_name(), gpu_type));
  return jobs;
}

void measure(const JobSpec& job, ProfileRequest request, bool quiet) {
  request.base_memory_bytes =
      request.gpus > 0 ? measure_gpu_base_memory_bytes(job) : measure_base_memory_bytes(job);
  // One rank has one core to itself; so has the measurement. A GPU's times do not depend on it.
  if (request.gpus == 0) at::set_num_threads(1);
  if (!quiet)
    std::cerr << fmt::format("layer times are forward + backward + update in {}\n",
                             to_string(job.training.precision));
  cli::ProgressLine line("profile", quiet, {"cells", 1});
  const ProfileOutcome outcome = profile_job(
      job, request,
      [&](const std::string& text) {
        line.clear();
        if (!quiet) std::cerr << text << std::endl;
      },
      [&](double done, double total) { line.at(done, total); });
  for (const std::string& note : outcome.notes) std::cerr << "note: " << note << '\n';
  std::cout << outcome.layer_file << '\n';
  if (!outcome.network_file.empty()) std::cout << outcome.network_file << '\n';
}

// `named`: the user has said what is measured.
int run(const std::string& job_file, ProfileRequest request, bool named, bool quiet) {
  const JobSpec job = load_job_spec(job_file);
  if (request.directory.empty()) request.directory = default_profile_directory();
  request.gpus = gpu_count();
  if (request.gpus > 0 && !named)
    throw InputError("--gpu-type: name the GPUs of this node as the catalog does, or set SAILOR_DEVICE=cpu");
  const std::vector<JobSpec> jobs = in_each_precision(job, request.gpu_type);
  request.seconds /= static_cast<double>(jobs.size());
  for (const JobSpec& one : jobs) {
    measure(one, request, quiet);
    request.links = false;
  }
  return kDone;
}

// From a trace of another trainer.
int run_on_trace(const std::string& job_file, TraceImport import, std::string directory, bool quiet) {
  const JobSpec job = load_job_spec(job_file);
  if (directory.empty()) directory = default_profile_directory();
  const SiteConfig site = site_if_any();
  const Catalog catalog = load_catalog(site.catalog);
  const GpuType& type = catalog.at(import.gpu_type);
  import.base_memory_bytes = type.base_memory_bytes;
  import.on_processors = type.on_processors;
  const std::string file = layer_profile_path(directory, job, import.gpu_type);
  const ImportedProfile imported =
      import_trace(job, import, framework_of(job, site, catalog, {import.gpu_type}),
                   std::filesystem::exists(file) ? load_profile_file(file) : ProfileFile{});
  std::filesystem::create_directories(directory);
  save_profile_file(imported.profile, file);
  if (!quiet)
    std::cerr << fmt::format("blocks are the modules {}; times are those of {}\n", imported.block_class,
                             imported.on_gpu ? "kernels" : "operators on processors");
  std::cout << file << '\n';
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  std::string job_file;
  std::vector<std::string> shown;
  ProfileRequest request;
  CLI::App app{"Measures the layers of a job's model on this machine, for the planner", "sailor profile"};
  CLI::Option* job = app.add_option("JOB", job_file, "job spec (YAML)");
  app.add_option("--show", shown, "print layer profiles as tables")->excludes(job)->type_name("FILE");
  bool on_nodes = false, layers_only = false, quiet = false;
  CLI::Option* nodes = app.add_flag(
      "--on-nodes", on_nodes, "measure on one free node of every GPU type of the cluster, as Slurm jobs");
  app.add_flag("--layers-only", layers_only, "do not measure links");
  CLI::Option* type = app.add_option("--gpu-type", request.gpu_type,
                                     "catalog name of the measured type: the GPUs of this node, or its CPUs");
  type->excludes(nodes)->capture_default_str();
  app.add_option("--out", request.directory, "profile directory (default: the first of the site config)");
  app.add_option(
         "--microbatches", request.microbatches,
         "sequences per microbatch (default: 1, 2, 4, 8; on GPUs 1, 2, 4 ... 64 while memory and time last)")
      ->delimiter(',')
      ->check(cli::within(1, 1 << 16));
  app.add_option("--tp", request.tps,
                 "TP degrees (default: 1, 2, 4 ... that divide the model, up to the GPUs of this node)")
      ->delimiter(',')
      ->check(cli::within(1, 64));
  app.add_option("--ranks", request.ranks,
                 "concurrent ranks, as a job has on this machine (default: one per core)")
      ->check(cli::within(1, 4096));
  app.add_option("--seconds", request.seconds, "approximate time limit in seconds")
      ->check(cli::within(1.0, 86400.0))
      ->capture_default_str();
  TraceImport import;
  CLI::Option* trace = app.add_option(
      "--trace", import.trace,
      "take the times from a trace of another trainer (torch.profiler or a report of nsys), at "
      "the one value of --microbatches and --tp (default: 1) that it ran with");
  trace->excludes(nodes)->needs(type)->type_name("FILE");
  app.add_option("--blocks", import.block_class,
                 "class of the modules in the trace that are the model's blocks (default: the one that fits)")
      ->needs(trace)
      ->type_name("CLASS");
  app.add_flag("-q,--quiet", quiet, "print only notes and errors on stderr");
  keep_freed_memory();  // as a rank does
  use_tensor_cache();
  return cli::run_program(app, argc, argv, [&] {
    if (!shown.empty()) return show(shown);
    if (job_file.empty())
      throw InputError("JOB is required: a job spec (YAML) (see `sailor profile --help`)");
    if (trace->count() > 0) {
      if (request.microbatches.size() != 1 || request.tps.size() > 1)
        throw InputError("--trace: say with --microbatches and --tp what it ran with, one value each");
      import.gpu_type = request.gpu_type;
      import.microbatch = request.microbatches.front();
      if (!request.tps.empty()) import.tp = request.tps.front();
      return run_on_trace(job_file, std::move(import), request.directory, quiet);
    }
    request.links = !layers_only;
    return on_nodes ? run_on_nodes(job_file, request)
                    : run(job_file, std::move(request), type->count() > 0, quiet);
  });
}
