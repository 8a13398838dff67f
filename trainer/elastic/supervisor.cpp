#include "trainer/elastic/supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/plan/rank_layout.h"
#include "planner/process/subprocess.h"
#include "trainer/record/step_metrics.h"

namespace sailor {

Supervisor::Supervisor(const JobSpec& job, const Plan& plan)
    : job_(job), plan_(plan), num_ranks_(num_ranks(plan)) {}

std::string Supervisor::describe(int rank) const {
  auto it = ranks_.find(rank);
  if (it == ranks_.end()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} on {} (pid {})", rank, it->second.node, it->second.pid);
}

void Supervisor::begin_generation(int number, const Plan& plan, const std::vector<Hello>& ranks) {
  for (const auto& [rank, report] : last_reports_) {
    if (report.step > last_step_) add_progress(report);
  }
  generation_ = number;
  plan_ = plan;
  num_ranks_ = num_ranks(plan);
  ranks_.clear();
  for (size_t rank = 0; rank < ranks.size(); ++rank) ranks_[static_cast<int>(rank)] = ranks[rank];
  finished_.clear();
  last_reports_.clear();
  trace_.clear();
  steps_s_.clear();
}

void Supervisor::add_progress(const StepReport& step) {
  progress_.emplace_back(step);
  steps_s_.push_back(step.step_s);
  training_s_ += step.step_s;
  ++steps_done_;
  last_step_ = step.step;
  if (step.loss && !first_loss_) first_loss_ = step.loss;
  if (step.loss) last_loss_ = step.loss;
  if (step.validation_loss) validation_loss_ = step.validation_loss;
}

void Supervisor::receive(const std::string& peer, const ControlMessage& message) {
  if (const Hello* hello = std::get_if<Hello>(&message)) {
    peers_[peer] = *hello;
    if (hello->role != ControlRole::rank || hello->rank < 0) return;
    ranks_[hello->rank] = *hello;
    if (early_ends_.contains({hello->node, hello->pid}))
      fail(fmt::format("{} ended at once; see its log", describe(hello->rank)));
  } else if (const StepReport* step = std::get_if<StepReport>(&message)) {
    if (step->generation != generation_) return;
    last_reports_[step->rank] = *step;
    last_reports_[step->rank].tasks.clear();
    if (!step->tasks.empty()) trace_[step->rank] = step->tasks;
    if (step->rank == 0) add_progress(*step);
  } else if (const Failure* failure = std::get_if<Failure>(&message)) {
    if (failure->generation != generation_) return;
    const std::string text = fmt::format("{}: {}", describe(failure->rank), failure->text);
    if (failure->peer_lost) {
      echoes_.push_back({failure->rank, failure->lost_peer, text});
    } else {
      fail(text);
    }
  } else if (const ProcessEnded* ended = std::get_if<ProcessEnded>(&message)) {
    process_ended(ended->node, ended->pid, ended->wait_status);
  } else if (const Note* note = std::get_if<Note>(&message)) {
    if (note->rank != 0 || note->generation != generation_) return;
    progress_.emplace_back(*note);
    last_step_ = note->step;
  } else if (const Finished* finished = std::get_if<Finished>(&message)) {
    if (finished->generation == generation_) finished_[finished->rank] = *finished;
  }
}

void Supervisor::process_ended(const std::string& node, int64_t pid, int wait_status) {
  for (const auto& [rank, hello] : ranks_) {
    if (hello.node != node || hello.pid != pid) continue;
    if (!finished_.contains(rank))
      fail(fmt::format("{} {}", describe(rank), describe_wait_status(wait_status)));
    return;
  }
  if (wait_status != 0) early_ends_.insert({node, pid});
}

void Supervisor::child_ended(int64_t pid, int wait_status) {
  for (const auto& [peer, hello] : peers_) {
    if (hello.role != ControlRole::agent || hello.step_pid != pid || node_lost_) continue;
    node_lost_ = fmt::format("the agent on {} and its ranks are gone: its Slurm step {}", hello.node,
                             describe_wait_status(wait_status));
  }
}

void Supervisor::peer_silent(const std::string& peer, double silence_s) {
  auto it = peers_.find(peer);
  if (it == peers_.end()) return;
  const Hello& hello = it->second;
  if (hello.role == ControlRole::rank && finished_.contains(hello.rank)) return;
  fail(fmt::format("{}: no sign of life for {:.0f} s",
                   hello.role == ControlRole::rank ? describe(hello.rank) : "the agent on " + hello.node,
                   silence_s));
}

void Supervisor::fail(const std::string& text) {
  if (!cause_) cause_ = text;
}

std::vector<int> Supervisor::missing_ranks() const {
  std::vector<int> missing;
  for (int rank = 0; rank < num_ranks_; ++rank) {
    if (!ranks_.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

std::optional<std::string> Supervisor::failure() const {
  if (told_to_end_) return verdict_;
  if (cause_) return cause_;
  if (node_lost_) return node_lost_;
  if (echoes_.empty()) return std::nullopt;
  // Who waits for a rank that waits itself says so as well: the one that has nothing to say is to blame.
  const auto silent = [&](const Echo& echo) {
    return echo.lost_peer >= 0 && std::none_of(echoes_.begin(), echoes_.end(), [&](const Echo& other) {
             return other.rank == echo.lost_peer;
           });
  };
  const auto telling = std::find_if(echoes_.begin(), echoes_.end(), silent);
  return (telling == echoes_.end() ? echoes_.front() : *telling).text;
}

std::vector<std::variant<StepReport, Note>> Supervisor::take_progress() {
  return std::exchange(progress_, {});
}

std::optional<std::map<int, std::vector<TracedTask>>> Supervisor::take_trace() {
  if (static_cast<int>(trace_.size()) < num_ranks_) return std::nullopt;
  return std::exchange(trace_, {});
}

RunSummary Supervisor::summarize() const {
  RunSummary summary;
  summary.steps = steps_done();
  summary.first_loss = first_loss_;
  summary.last_loss = last_loss_;
  summary.validation_loss = validation_loss_;
  summary.measured_iteration_s = steady_iteration_s(steps_s_);
  summary.mean_iteration_s = mean_iteration_s(steps_s_);
  if (plan_.prediction) summary.predicted_iteration_s = plan_.prediction->iteration_s;
  if (summary.measured_iteration_s && *summary.measured_iteration_s > 0)
    summary.tokens_per_s =
        static_cast<double>(job_.training.global_batch * job_.model.sequence) / *summary.measured_iteration_s;
  summary.training_s = training_s_;
  const RankLayout layout(plan_);
  for (const RankSlot& slot : layout.slots()) {
    auto hello = ranks_.find(slot.rank);
    auto finished = finished_.find(slot.rank);
    auto report = last_reports_.find(slot.rank);
    if (hello == ranks_.end()) continue;
    const PlanPipeline& pipeline = plan_.pipelines[slot.pipeline];
    RankSummary rank{.rank = slot.rank,
                     .node = hello->second.node,
                     .gpu_type = pipeline.stages[slot.stage].gpu_type,
                     .pipeline = slot.pipeline,
                     .stage = slot.stage,
                     .in_flight_limit = std::min(static_cast<int>(pipeline.stages.size()) - slot.stage,
                                                 pipeline.microbatches)};
    if (finished != finished_.end()) {
      rank.peak_rss_bytes = finished->second.peak_rss_bytes;
      rank.max_in_flight = finished->second.max_in_flight;
      rank.paced_tasks = finished->second.paced_tasks;
      rank.overrun_tasks = finished->second.overrun_tasks;
      rank.overrun_s = finished->second.overrun_s;
      rank.paced_s = finished->second.paced_s;
    } else if (report != last_reports_.end()) {
      rank.peak_rss_bytes = report->second.peak_rss_bytes;
      rank.max_in_flight = report->second.max_in_flight;
    }
    summary.ranks.push_back(std::move(rank));
  }
  return summary;
}

}  // namespace sailor
