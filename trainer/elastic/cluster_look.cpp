#include "trainer/elastic/cluster_look.h"

#include "planner/process/subprocess.h"
#include "planner/spec/error.h"

namespace sailor {

void ClusterLook::start(const std::vector<std::string>& program) {
  printed_ = memory_file("snapshot");
  std::vector<std::string> command = {"timeout", "30"};
  command.insert(command.end(), program.begin(), program.end());
  child_ = spawn(command, {.environment = {}, .output_file = log_file_, .stdout_descriptor = printed_.get()});
}

bool ClusterLook::ended(pid_t child, int wait_status, std::optional<Snapshot>& snapshot) {
  if (child != child_) return false;
  child_ = -1;
  const std::string text = read_all(printed_.get());
  printed_.reset();
  found_more_ = !text.empty();
  if (wait_status != 0) return true;
  try {
    if (!text.empty()) last_ = parse_snapshot(text, "slurm");
    snapshot = last_;
  } catch (const InputError&) {  // the program was stopped while it printed
  }
  return true;
}

}  // namespace sailor
