#include "planner/scheduler/simulated_scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace sailor {
namespace {

constexpr int kBadEnd = 1 << 8;  // wait status of exit code 1

SimulatedCourse course_of(const std::string& script) {
  std::istringstream words(script);
  std::string word;
  words >> word;
  if (word == "true" || word == "false") return {.takes_s = 0, .fails = word == "false"};
  int64_t seconds = 0;
  if (word == "sleep" && words >> seconds) return {.takes_s = seconds};
  return {};
}

SimulatedCourse course_of(const std::vector<std::string>& command) {
  return course_of(fmt::format("{}", fmt::join(command, " ")));
}

std::string helper_name(const std::string& main_job) {
  return fmt::format("helper of {}", main_job);
}

}  // namespace

void SimulatedScheduler::enter(const std::string& job, std::map<std::string, std::string> carried) {
  const std::optional<QueuedJob> found = cluster_.find_job(job);
  if (!found || found->state != JobState::running)
    throw std::runtime_error(fmt::format("job {} does not run", job));
  own_id_ = job;
  own_node_ = found->head_node;
  carried_ = std::move(carried);
}

std::optional<OwnJob> SimulatedScheduler::own_job() const {
  if (own_id_.empty()) return std::nullopt;
  OwnJob own;
  own.id = own_id_;
  if (const auto job = cluster_.find_job(own_id_)) own.restarts = job->restarts;
  return own;
}

std::optional<std::string> SimulatedScheduler::carried_value(const std::string& name) const {
  const auto found = carried_.find(name);
  if (found == carried_.end()) return std::nullopt;
  return found->second;
}

Allocation SimulatedScheduler::own_allocation() {
  const std::optional<QueuedJob> job = cluster_.find_job(own_id_);
  if (!job) throw std::runtime_error("this process is in no job");
  Allocation allocation{job->id, {}, job->end_s};
  for (const std::string& name : job->nodes) {
    AllocatedNode node{.name = name, .het_group = -1, .cpus = find_node(name)->cpus};
    if (const auto held = job->gpus_on.find(name); held != job->gpus_on.end()) node.gpus = held->second;
    allocation.nodes.push_back(std::move(node));
  }
  return allocation;
}

void SimulatedScheduler::forget_own_job() {
  own_id_.clear();
  own_node_.clear();
  carried_.clear();
}

std::optional<NodeInfo> SimulatedScheduler::find_node(const std::string& name) {
  for (const NodeInfo& node : cluster_.nodes()) {
    if (node.name == name) return node;
  }
  return std::nullopt;
}

std::string SimulatedScheduler::submit(const JobRequest& request) {
  const std::string id = cluster_.submit(request, course_of(request.script));
  cluster_.advance_to(cluster_.now_s());  // what takes no time is done
  return id;
}

std::string SimulatedScheduler::submit_next_part(const std::string&) {
  const std::optional<QueuedJob> own = cluster_.find_job(own_id_);
  if (!own) throw std::runtime_error("this process is in no job");
  JobRequest request{.name = own->name, .partition = own->partition, .script = "next part"};
  request.node_names = own->nodes;
  if (own->start_s && own->end_s) request.time_limit_s = static_cast<int>(*own->end_s - *own->start_s);
  forget_own_job();
  return submit(request);
}

std::string SimulatedScheduler::submit_helper(const HelperRequest& request) {
  JobRequest job{.name = helper_name(request.main_job), .partition = request.partition};
  if (request.after_others) job.nice = std::numeric_limits<int>::max();
  if (!request.node.empty()) job.node_names = {request.node};
  job.excluded_nodes = request.excluded_nodes;
  job.feature = request.feature;
  if (const size_t type = request.gres.find(':'); type != std::string::npos)
    job.gpu_type = request.gres.substr(type + 1);
  job.requeue = false;
  job.deadline_s = request.end_s;
  job.least_s = request.least_s;
  job.script = request.script;
  return submit(job);
}

void SimulatedScheduler::give_back_helpers(const std::string& main_job) {
  for (const QueuedJob& job : cluster_.jobs()) {
    if (job.name == helper_name(main_job)) give_back(job.id);
  }
}

StepId SimulatedScheduler::start_step(const StepSpec& step) {
  const std::optional<QueuedJob> job = cluster_.find_job(own_id_);
  if (!job || job->state != JobState::running ||
      std::find(job->nodes.begin(), job->nodes.end(), step.node.name) == job->nodes.end())
    throw std::runtime_error(fmt::format("node {} does not belong to job {}", step.node.name, own_id_));
  const auto course = course_of(step.command);
  Running running{.restarts = job->restarts, .status = course.fails ? kBadEnd : 0};
  if (course.takes_s) running.ends_s = cluster_.now_s() + *course.takes_s;
  steps_[next_step_] = {own_id_, step.node.name, step.command, step.environment};
  running_[next_step_] = running;
  return next_step_++;
}

StepId SimulatedScheduler::start_program(const NodeProgram& program) {
  JobRequest request{.name = program.job_name, .partition = program.partition};
  request.node_names = {program.node};
  request.requeue = false;
  request.time_limit_s = program.limit_s;
  const auto course = course_of(program.command);
  const std::optional<std::string> job = program.immediate_s
                                             ? cluster_.submit_at_once(request, course)
                                             : std::optional(cluster_.submit(request, course));
  Running running{.is_program = true, .status = 0};
  steps_[next_step_] = {job.value_or(""), program.node, program.command};
  running_[next_step_] = running;
  if (!job) ended_[next_step_] = kBadEnd;
  cluster_.advance_to(cluster_.now_s());  // what takes no time is done
  return next_step_++;
}

void SimulatedScheduler::end_step(StepId step, int wait_status) {
  const auto running = running_.find(step);
  if (running == running_.end() || status_now(step, running->second)) return;
  ended_[step] = wait_status;
  if (running->second.is_program)
    cluster_.end_job(steps_.at(step).job, wait_status == 0 ? JobState::completed : JobState::failed);
}

std::optional<int> SimulatedScheduler::status_now(StepId step, const Running& running) const {
  if (const auto ended = ended_.find(step); ended != ended_.end()) return ended->second;
  const std::optional<QueuedJob> job = cluster_.find_job(steps_.at(step).job);
  if (running.is_program) {
    if (job->state == JobState::completed) return 0;
    if (job->state == JobState::failed) return kBadEnd;
    if (job->state != JobState::pending && job->state != JobState::running) return SIGTERM;
    return std::nullopt;
  }
  const bool by_itself = running.ends_s && *running.ends_s <= cluster_.now_s();
  if (by_itself) return running.status;
  const bool gone = job->state != JobState::running || job->restarts != running.restarts;
  return gone ? std::optional(SIGTERM) : std::nullopt;
}

std::optional<int> SimulatedScheduler::step_end(StepId step) {
  const auto running = running_.find(step);
  if (running == running_.end()) return std::nullopt;
  const std::optional<int> status = status_now(step, running->second);
  if (status) {
    ended_.erase(step);
    running_.erase(running);
  }
  return status;
}

}  // namespace sailor
