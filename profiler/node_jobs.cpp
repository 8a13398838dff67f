#include "profiler/node_jobs.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"

namespace sailor {
namespace {

// Hands on the whole lines that a program has written since the last call.
class LogReader {
 public:
  LogReader(const std::string& path, std::string prefix) : stream_(path), prefix_(std::move(prefix)) {}

  void read(bool all, const std::function<void(const std::string&)>& line) {
    stream_.clear();
    for (char c = 0; stream_.get(c);) {
      if (c != '\n') {
        pending_ += c;
        continue;
      }
      line(prefix_ + pending_);
      pending_.clear();
    }
    if (all && !pending_.empty()) line(prefix_ + pending_);
  }

 private:
  std::ifstream stream_;
  std::string prefix_, pending_;
};

struct Running {
  NodeJob job;
  LogReader log;
};

// A signal that asks this process to end must end the jobs too.
volatile std::sig_atomic_t interrupted_by = 0;

class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted_by = 0;
    struct sigaction action {};
    action.sa_handler = [](int signal) { interrupted_by = signal; };
    sigaction(SIGINT, &action, &old_interrupt_);
    sigaction(SIGTERM, &action, &old_terminate_);
  }
  ~InterruptGuard() {
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGTERM, &old_terminate_, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
};

NodeProgram program_of(const NodeJob& job, const std::vector<std::string>& command, const std::string& log) {
  // The whole node, unbound: the program places its ranks itself.
  NodeProgram program{.job_name = "sailor-measure",
                      .node = job.node,
                      .partition = job.partition,
                      .command = command,
                      .gpus = job.gpus,
                      .output_file = log};
  program.command.insert(program.command.end(), {"--gpu-type", job.gpu_type});
  return program;
}

}  // namespace

std::vector<NodeJob> one_node_of_each_type(const Snapshot& snapshot, const Catalog& catalog,
                                           std::vector<std::string>& notes) {
  std::map<std::string, NodeJob> jobs;
  std::set<std::string> busy;
  for (const SnapshotNode& node : snapshot.nodes) {
    if (!catalog.gpu_types.contains(node.gpu_type)) continue;
    const std::string& type = profiled_as(node.gpu_type, catalog.at(node.gpu_type));
    if (static_cast<int>(node.free_gpus.size()) < node.gpus) {
      busy.insert(type);
      continue;
    }
    const NodeJob job{type, node.name, node.partition,
                      catalog.at(node.gpu_type).on_processors ? 0 : node.gpus};
    const auto [found, is_new] = jobs.emplace(type, job);
    if (!is_new && node.name < found->second.node) found->second = job;
  }
  for (const std::string& type : busy)
    if (!jobs.contains(type)) notes.push_back("type " + type + ": no node is free");
  std::vector<NodeJob> result;
  for (auto& [type, job] : jobs) result.push_back(std::move(job));
  return result;
}

int run_node_jobs(Scheduler& scheduler, const std::vector<NodeJob>& jobs,
                  const std::vector<std::string>& command,
                  const std::function<void(const std::string&)>& line) {
  const ScratchDirectory scratch;
  const InterruptGuard guard;
  std::map<StepId, Running> running;
  for (const NodeJob& job : jobs) {
    const std::string log = scratch.path() + "/" + job.node;
    std::ofstream(log).close();
    const StepId id = scheduler.start_program(program_of(job, command, log));
    running.emplace(id, Running{job, LogReader(log, job.node + ": ")});
  }
  int failed = 0;
  for (bool told = false; !running.empty();) {
    if (interrupted_by != 0 && !told) {
      for (const auto& [id, one] : running) scheduler.signal_step(id, SIGTERM);
      told = true;
    }
    for (auto it = running.begin(); it != running.end();) {
      const std::optional<int> status = scheduler.step_end(it->first);
      it->second.log.read(status.has_value(), line);
      if (status.value_or(0) != 0) {
        ++failed;
        line(fmt::format("{}: type {}: {}", it->second.job.node, it->second.job.gpu_type,
                         describe_wait_status(*status)));
      }
      it = status ? running.erase(it) : std::next(it);
    }
    if (!running.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (interrupted_by != 0) throw std::runtime_error("interrupted; finished measurements are kept");
  return failed;
}

}  // namespace sailor
