#include "trainer/elastic/supervisor.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/plan/rank_layout.h"
#include "planner/process/subprocess.h"

namespace sailor {
namespace {

// Maximum (microbatch, chunk) pairs whose activations a stage holds: those of its warm-up in 1F1B and one
// more.
int in_flight_limit(const Plan& plan, const PlanPipeline& pipeline, int stage) {
  const int stages = num_groups(plan, pipeline), behind = stages - 1 - stage;
  const int warm_up = plan.interleave == 1 ? behind : 2 * behind + (plan.interleave - 1) * stages;
  return std::min(warm_up + 1, plan.interleave * pipeline.microbatches);
}

}  // namespace

Supervisor::Supervisor(const JobSpec& job, const Plan& plan)
    : job_(job), plan_(plan), num_ranks_(num_ranks(plan)), progress_(num_ranks_) {}

std::string Supervisor::describe(int rank) const {
  auto it = ranks_.find(rank);
  if (it == ranks_.end()) return fmt::format("rank {}", rank);
  return fmt::format("rank {} on {} (pid {})", rank, it->second.node, it->second.pid);
}

void Supervisor::begin_generation(int number, const Plan& plan, const std::vector<Hello>& ranks) {
  generation_ = number;
  plan_ = plan;
  num_ranks_ = num_ranks(plan);
  ranks_.clear();
  for (size_t rank = 0; rank < ranks.size(); ++rank) ranks_[static_cast<int>(rank)] = ranks[rank];
  finished_.clear();
  progress_.begin_generation(num_ranks_);
}

void Supervisor::receive(const std::string& peer, const ControlMessage& message) {
  if (const Hello* hello = std::get_if<Hello>(&message)) {
    peers_[peer] = *hello;
    if (hello->role != ControlRole::rank || hello->rank < 0) return;
    ranks_[hello->rank] = *hello;
    if (early_ends_.contains({hello->node, hello->pid}))
      fail(fmt::format("{} ended at once; see its log", describe(hello->rank)));
  } else if (const StepReport* step = std::get_if<StepReport>(&message)) {
    if (step->generation == generation_) progress_.reported(*step);
  } else if (const Failure* failure = std::get_if<Failure>(&message)) {
    if (failure->generation == generation_)
      fail(fmt::format("{}: {}", describe(failure->rank), failure->text));
  } else if (const Note* note = std::get_if<Note>(&message)) {
    if (note->generation == generation_) progress_.noted(*note);
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
    if (hello.role != ControlRole::agent || hello.step_pid != pid) continue;
    cause_.node_lost(fmt::format("the agent on {} and its ranks are gone: its Slurm step {}", hello.node,
                                 describe_wait_status(wait_status)));
  }
}

void Supervisor::unreachable(const std::string&, const Failure& failure) {
  if (failure.generation == generation_)
    cause_.echo(failure.rank, failure.lost_peer, fmt::format("{}: {}", describe(failure.rank), failure.text));
}

void Supervisor::device_failed(const std::string& peer, const Failure& failure) {
  receive(peer, failure);
}

void Supervisor::peer_silent(const std::string& peer, double silence_s) {
  auto it = peers_.find(peer);
  if (it == peers_.end()) return;
  const Hello& hello = it->second;
  if (hello.role == ControlRole::rank && finished_.contains(hello.rank)) return;
  fail(fmt::format("{}: no answer for {:.0f} s",
                   hello.role == ControlRole::rank ? describe(hello.rank) : "the agent on " + hello.node,
                   silence_s));
}

void Supervisor::peer_dropped(const std::string&, const std::string& reason) {
  fail("the control channel: " + reason);
}

void Supervisor::no_children() {
  fail("all processes of the job have ended");
}

std::vector<int> Supervisor::missing_ranks() const {
  std::vector<int> missing;
  for (int rank = 0; rank < num_ranks_; ++rank) {
    if (!ranks_.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

RunSummary Supervisor::summarize() const {
  RunSummary summary;
  progress_.summarize(job_.training.global_batch * job_.model.sequence, summary);
  if (plan_.prediction) summary.predicted_iteration_s = plan_.prediction->iteration_s;
  const RankLayout layout(plan_);
  for (const RankSlot& slot : layout.slots()) {
    auto hello = ranks_.find(slot.rank);
    auto finished = finished_.find(slot.rank);
    if (hello == ranks_.end()) continue;
    const PlanPipeline& pipeline = plan_.pipelines[slot.pipeline];
    RankSummary rank{.rank = slot.rank,
                     .node = hello->second.node,
                     .gpu_type = pipeline.stages[slot.stage].gpu_type,
                     .pipeline = slot.pipeline,
                     .stage = slot.stage,
                     .in_flight_limit = in_flight_limit(plan_, pipeline, slot.stage)};
    if (finished != finished_.end()) {
      rank.peak_rss_bytes = finished->second.peak_rss_bytes;
      rank.max_in_flight = finished->second.max_in_flight;
      rank.paced_tasks = finished->second.paced_tasks;
      rank.overrun_tasks = finished->second.overrun_tasks;
      rank.overrun_s = finished->second.overrun_s;
      rank.paced_s = finished->second.paced_s;
    } else if (const StepReport* report = progress_.last_report(slot.rank)) {
      rank.peak_rss_bytes = report->peak_rss_bytes;
      rank.max_in_flight = report->max_in_flight;
    }
    summary.ranks.push_back(std::move(rank));
  }
  return summary;
}

}  // namespace sailor
