// `sailor status [JOBID|DIRECTORY]`: how a run is going: generation, plan, step, loss, throughput against
// prediction, and what happened. Reads the files of the run's directory, and so works from any node that sees
// them, while the job runs and after it.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "planner/cli/program.h"
#include "planner/history/find_run.h"
#include "planner/history/run_status.h"
#include "planner/scheduler/scheduler.h"
#include "planner/spec/error.h"

namespace {

using namespace sailor;

// Where a job of that number was submitted, as far as the scheduler still knows it.
std::string directory_of_job(const std::string& job) {
  if (job.find_first_not_of("0123456789") != std::string::npos) return "";
  return site_scheduler().find_job(job).value_or(QueuedJob{}).submit_directory;
}

}  // namespace

int main(int argc, char** argv) {
  std::string run;
  size_t events = 10;
  bool json = false;
  CLI::App app{
      "Shows the state of a run: generation, plan, step, loss, measured and predicted throughput, events",
      "sailor status"};
  app.add_option("RUN", run, "job id, or the run's directory (default: the newest run here)");
  app.add_option("--events", events, "number of latest events to show (default: 10)");
  app.add_flag("--json", json, "print JSON");
  return cli::run_program(app, argc, argv, [&] {
    const RunStatus status =
        read_run_status(find_run(run, own_job_id(site_scheduler()), "sailor status", directory_of_job));
    std::cout << (json ? status_json(status, events) : status_text(status, events));
    return kDone;
  });
}
