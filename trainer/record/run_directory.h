// The output of a run: sailor-JOBID/ in the directory where the job was submitted.
//
//     plan.json      the plan in force          job.yaml       the job spec as submitted
//     metrics.jsonl, metrics.csv, tensorboard/  one line or event per step
//     trace-step-N.json  timeline of step N     summary.json   written once, when the run has ended
//     events.jsonl   of an elastic job: what happened to its processes and plans (event_log.h)
//     planning/      what the plan was made with, for `sailor report`, `explain` and `simulate`
//                    (planner/inputs/planning_record.h); cluster.yaml has the nodes of the plan in force
//     run.json       the run as measured, for `sailor validate`; written with the summary
//     secrets        of a run that goes on, for its own processes (trainer/control/job_secrets.h)
//     logs/          launch.log, agents, rank-N.log    links/    state of emulated network interfaces
//
// Files are never incomplete: documents are written to a temporary file and renamed, metrics are appended a
// whole line at a time. After a power cut the last lines may be missing or torn; readers skip torn ones.
#pragma once

#include <string>

namespace sailor {

class RunDirectory {
 public:
  // Creates `path`, its logs/ and an empty links/. Throws std::runtime_error.
  explicit RunDirectory(std::string path);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string log(const std::string& name) const { return path_ + "/logs/" + name; }

  // Throws std::runtime_error with file and reason.
  void write_document(const std::string& name, const std::string& text) const;
  // Does nothing if there is no such file.
  void remove(const std::string& name) const;
  void append_line(const std::string& name, const std::string& line) const;
  // Puts the lines of a file on the disk.
  void sync(const std::string& name) const;

 private:
  std::string path_;
};

// The last line of a file that is not blank; empty if there is none.
std::string last_line(const std::string& path);

}  // namespace sailor
