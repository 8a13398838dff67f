// Slurm as the site's scheduler: through its programs and the job's environment, so that our programs do not
// need Slurm's library. Slurm's programs retry forever when slurmctld does not answer, so they get a limit of
// 10 s.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <sstream>
#include <stdexcept>

#include "planner/process/program_path.h"
#include "planner/process/subprocess.h"
#include "planner/scheduler/scheduler.h"
#include "spank_plugin/slurm/commands/command_lines.h"
#include "spank_plugin/slurm/commands/job_environment.h"
#include "spank_plugin/slurm/commands/scontrol.h"

namespace sailor {
namespace {

std::vector<std::string> in_time(std::vector<std::string> command) {
  command.insert(command.begin(), {"timeout", "10"});
  return command;
}

// The output of scontrol, without its errors. Empty if it does not answer, or does not know the object.
std::string ask(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"sh", "-c", "exec timeout 10 scontrol \"$@\" 2>/dev/null", "sh"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  try {
    return run_and_read(command);
  } catch (const std::runtime_error&) {
    return "";
  }
}

// All that a program prints, and how it ended.
struct Said {
  std::string text;
  int status = 0;
};
Said say(const std::vector<std::string>& program) {
  std::vector<std::string> command = {"sh", "-c", "exec \"$@\" 2>&1", "sh"};
  command.insert(command.end(), program.begin(), program.end());
  const FileDescriptor printed = memory_file(program.front().c_str());
  const pid_t child = spawn(command, {.environment = {}, .stdout_descriptor = printed.get()});
  Said said;
  while (waitpid(child, &said.status, 0) < 0 && errno == EINTR) continue;
  said.text = read_all(printed.get());
  return said;
}

void cancel(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"scancel", "-Q"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  try {
    run_and_read(in_time(command));
  } catch (const std::runtime_error&) {  // its end has come already, or comes with its time limit
  }
}

template <typename T>
std::vector<T> all_lines(const std::string& text, std::optional<T> (*read)(const std::string& line)) {
  std::vector<T> result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (std::optional<T> one = read(line)) result.push_back(std::move(*one));
  }
  return result;
}

std::vector<std::string> expand_by_scontrol(const std::string& list) {
  std::vector<std::string> result;
  std::istringstream names(run_and_read({"scontrol", "show", "hostnames", list}));
  for (std::string name; std::getline(names, name);) result.push_back(name);
  return result;
}

// Returns the job's id.
std::string submit_by(const std::vector<std::string>& sbatch) {
  const Said said = say(in_time(sbatch));
  const std::optional<std::string> id = submitted_id(said.text);  // among warnings
  if (said.status == 0 && id) return *id;
  throw std::runtime_error(said.text.substr(0, said.text.find('\n')));
}

class SlurmScheduler final : public Scheduler {
 public:
  std::optional<OwnJob> own_job() const override { return slurm_own_job(); }
  std::string own_node() const override { return slurm_own_node(); }
  std::optional<int> own_task() const override { return slurm_own_task(); }
  std::optional<std::string> carried_value(const std::string& name) const override {
    return job_variable(name);
  }
  void forget_carried_value(const std::string& name) override { forget_job_variable(name); }
  Allocation own_allocation() override;
  void forget_step_defaults() override { forget_srun_defaults(); }
  void forget_own_job() override { forget_slurm_job(); }

  std::vector<NodeInfo> nodes() override {
    return all_lines(run_and_read(in_time({"scontrol", "show", "node", "-o"})), node_in_scontrol);
  }
  std::vector<QueuedJob> queue() override {
    return all_lines(run_and_read(in_time({"scontrol", "show", "job", "-o"})), job_in_scontrol);
  }
  std::optional<NodeInfo> find_node(const std::string& name) override {
    return node_in_scontrol(ask({"show", "node", "-o", name}));
  }
  std::optional<QueuedJob> find_job(const std::string& id) override {
    return job_in_scontrol(ask({"show", "job", "-d", "-o", id}));
  }
  std::optional<int64_t> could_start(const JobRequest& request) override;

  std::string submit(const JobRequest& request) override { return submit_by(sbatch_script(request, false)); }
  std::string submit_next_part(const std::string& run_directory) override;
  std::string submit_helper(const HelperRequest& request) override {
    return submit_by(sbatch_helper(request, std::time(nullptr)));
  }
  void give_back(const std::string& job) override { cancel({job}); }
  void give_back_helpers(const std::string& main_job) override {
    cancel({"--user=" + std::to_string(getuid()), "--jobname=" + helper_job_name(main_job)});
  }
  // scontrol refuses it for the first component of a heterogeneous job.
  void forget_node_names(const std::string& job) override {
    try {
      run_and_read(in_time({program_path("sailor-cluster"), "--forget-nodes=" + job}));
    } catch (const std::runtime_error&) {  // the job then waits for them
    }
  }
  void requeue(const std::string& job) override { ask({"requeue", job}); }

  StepId start_step(const StepSpec& step) override {
    return spawn(srun_step(step), {.environment = step.environment});
  }
  StepId start_program(const NodeProgram& program) override {
    return spawn(srun_program(program), {.environment = {}, .output_file = program.output_file});
  }
  std::optional<int> step_end(StepId step) override {
    int status = 0;
    const auto pid = static_cast<pid_t>(step);
    if (pid <= 0 || waitpid(pid, &status, WNOHANG) != pid) return std::nullopt;
    return status;
  }
  void signal_step(StepId step, int signal) override {
    if (step > 0) kill(static_cast<pid_t>(step), signal);  // never a process group
  }

  std::vector<std::string> step_command(const StepSpec& step) override { return srun_step(step); }
  std::vector<std::string> job_command(const std::string& name, const std::vector<JobPart>& parts,
                                       const std::vector<std::string>& command) override {
    return salloc_over_parts(name, parts, command);
  }
};

Allocation SlurmScheduler::own_allocation() {
  Allocation allocation;
  allocation.nodes = nodes_of_job(expand_by_scontrol);
  allocation.job_id = slurm_job_id();
  allocation.end_s = job_end_in_environment();
  // Nothing if Slurm does not answer. There is a line for each component.
  for (const QueuedJob& component :
       all_lines(ask({"show", "job", "-d", "-o", allocation.job_id}), job_in_scontrol)) {
    if (!allocation.end_s) allocation.end_s = component.end_s;
    for (AllocatedNode& node : allocation.nodes) {
      if (const auto held = component.gpus_on.find(node.name); held != component.gpus_on.end())
        node.gpus = held->second;
    }
  }
  return allocation;
}

std::optional<int64_t> SlurmScheduler::could_start(const JobRequest& request) {
  constexpr int kTimedOut = 124;  // of timeout(1)
  const Said said = say(in_time(sbatch_script(request, true)));
  if (WIFEXITED(said.status) && WEXITSTATUS(said.status) == kTimedOut)
    throw std::runtime_error("slurmctld does not answer");
  return promised_start(said.text);
}

struct Submitted {
  int status = 0;  // wait status of sbatch
  std::optional<std::string> id;
};

// Runs sbatch for the next part in the directory of the first submission. The plan goes to standard error,
// which is the log of this job.
Submitted submit_again(const Resubmission& submission, const OwnJob& own, const std::string& name,
                       const std::string& script) {
  std::vector<std::string> command = {"timeout",           "300", "sh", "-c", "cd \"$0\" && exec \"$@\"",
                                      own.submit_directory};
  for (const std::string& word : sbatch_next_part(submission, name, own.id, script)) command.push_back(word);
  const FileDescriptor printed = memory_file("sbatch");
  const pid_t child =
      spawn(command, {.environment = submission.environment, .stdout_descriptor = printed.get()});
  Submitted submitted;
  while (waitpid(child, &submitted.status, 0) < 0 && errno == EINTR) continue;
  submitted.id = submitted_id(read_all(printed.get()));
  return submitted;
}

std::string SlurmScheduler::submit_next_part(const std::string& run_directory) {
  constexpr int kNoPlan = 3;
  const std::optional<OwnJob> own = slurm_own_job();
  const std::optional<std::string> sent = job_variable("SAILOR_SUBMISSION");
  if (!own || !sent) throw std::runtime_error("this job was not submitted in a way that can be repeated");
  Resubmission submission = parse_resubmission(*sent);
  const PreviousPart part{own->id, job_variable("SAILOR_JOB").value_or(""), run_directory};
  const std::string name = slurm_job_name(), script = run_directory + "/next-part";
  run_and_read(in_time({"scontrol", "write", "batch_script", own->id, script}));
  forget_slurm_job();
  submission.environment["SAILOR_CONTINUES"] = to_json(part);
  Submitted submitted = submit_again(submission, *own, name, script);
  if (!submitted.id && WIFEXITED(submitted.status) && WEXITSTATUS(submitted.status) == kNoPlan) {
    submission.options.push_back({"sailor-wait", "nodes"});  // after the user's, which it overrides
    submitted = submit_again(submission, *own, name, script);
  }
  if (!submitted.id) throw std::runtime_error("sbatch " + describe_wait_status(submitted.status));
  return *submitted.id;
}

}  // namespace

Scheduler& site_scheduler() {
  static SlurmScheduler slurm;
  return slurm;
}

}  // namespace sailor
