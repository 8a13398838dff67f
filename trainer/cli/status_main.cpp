// `sailor status [JOBID|DIRECTORY]`: how a run is going: generation, plan, step, loss, throughput against
// prediction, and what happened. Reads the files of the run's directory, and so works from any node that sees
// them, while the job runs and after it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "planner/cli/program.h"
#include "planner/spec/error.h"
#include "trainer/elastic/run_status.h"
#include "trainer/elastic/subprocess.h"

namespace {

namespace fs = std::filesystem;
using namespace sailor;

bool is_run(const fs::path& directory) {
  return fs::exists(directory / "plan.json");
}

// The newest run below the present directory.
fs::path newest_run() {
  fs::path newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(".")) {
    if (!entry.is_directory() || !entry.path().filename().string().starts_with("sailor-") ||
        !is_run(entry.path()))
      continue;
    if (newest.empty() ||
        fs::last_write_time(entry.path() / "plan.json") > fs::last_write_time(newest / "plan.json"))
      newest = entry.path();
  }
  if (newest.empty())
    throw InputError("there is no run here (sailor-JOBID/); say which: sailor status JOBID or DIRECTORY");
  return newest;
}

// Where a job of that number was submitted, as far as Slurm still knows it.
std::string directory_of_job(const std::string& job) {
  if (job.find_first_not_of("0123456789") != std::string::npos) return "";
  try {
    const std::string text =
        run_and_read({"sh", "-c", "exec timeout 10 scontrol show job -o \"$0\" 2>/dev/null", job});
    const std::string key = " WorkDir=";
    const size_t begin = text.find(key);
    if (begin == std::string::npos) return "";
    return text.substr(begin + key.size(), text.find_first_of(" \n", begin + 1) - begin - key.size());
  } catch (const std::runtime_error&) {
    return "";
  }
}

fs::path find_run(const std::string& run) {
  if (run.empty()) {
    const char* job = std::getenv("SLURM_JOB_ID");
    return job && is_run(fmt::format("sailor-{}", job)) ? fs::path(fmt::format("sailor-{}", job))
                                                        : newest_run();
  }
  if (is_run(run)) return run;
  const fs::path by_id = fmt::format("sailor-{}", run);
  if (is_run(by_id)) return by_id;
  if (const std::string submitted = directory_of_job(run); is_run(fs::path(submitted) / by_id))
    return fs::path(submitted) / by_id;
  throw InputError(
      fmt::format("{}: no run's directory (it would have a plan.json), and neither is {}; a job "
                  "writes to the directory it was submitted in",
                  run, by_id.string()));
}

}  // namespace

int main(int argc, char** argv) {
  std::string run;
  size_t events = 10;
  bool json = false;
  CLI::App app{"How a run is going: generation, plan, step, loss, throughput against prediction, events",
               "sailor status"};
  app.add_option("RUN", run, "job id, or the run's directory (default: the newest run here)");
  app.add_option("--events", events, "events to show, from the last (default: 10)");
  app.add_flag("--json", json, "as JSON");
  return cli::run_program(app, argc, argv, [&] {
    const RunStatus status = read_run_status(find_run(run).string());
    std::cout << (json ? status_json(status, events) : status_text(status, events));
    return kDone;
  });
}
