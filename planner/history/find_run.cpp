#include "planner/history/find_run.h"

#include <fmt/format.h>

#include <filesystem>

#include "planner/spec/error.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& directory) {
  return fs::exists(directory / "plan.json");
}

// The newest run below the present directory; empty when there is none.
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
  return newest;
}

}  // namespace

std::string find_run(const std::string& run, const std::string& own_job, const std::string& command,
                     const SubmittedIn& submitted_in) {
  if (run.empty()) {
    const std::string own_run = fmt::format("sailor-{}", own_job);
    if (!own_job.empty() && is_run(own_run)) return own_run;
    const fs::path newest = newest_run();
    if (newest.empty())
      throw InputError(
          fmt::format("there is no run here (sailor-JOBID/); say which: {} JOBID or DIRECTORY", command));
    return newest.string();
  }
  if (is_run(run)) return run;
  const fs::path by_id = fmt::format("sailor-{}", run);
  if (is_run(by_id)) return by_id.string();
  if (submitted_in) {
    const fs::path there = fs::path(submitted_in(run)) / by_id;
    if (is_run(there)) return there.string();
  }
  throw InputError(
      fmt::format("{}: no run's directory (it would have a plan.json), and neither is {}; a job "
                  "writes to the directory it was submitted in",
                  run, by_id.string()));
}

}  // namespace sailor
