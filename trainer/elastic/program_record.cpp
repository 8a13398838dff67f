#include "trainer/elastic/program_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "planner/spec/training_flops.h"
#include "trainer/launch/rank_environment.h"

namespace sailor {
namespace {

constexpr double kLookEvery_s = 1;
constexpr double kStoodStill_s = 10;
constexpr size_t kFewSteps = 5;  // before their median means something

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

StepFacts facts_of(const JobSpec& job, const ControllerOptions& options) {
  const int64_t tokens = job.training.global_batch * job.model.sequence;
  return {job.training.steps, tokens,
          static_cast<double>(tokens) * training_flops_per_token(job.model, job.training.lora),
          options.peak_flops};
}

}  // namespace

ProgramRecord::ProgramRecord(const JobSpec& job, const Plan& plan, const FrameworkStyle& framework,
                             const RunDirectory& directory, const ControllerOptions& options)
    : job_(job),
      plan_(plan),
      framework_(framework),
      directory_(directory),
      options_(options),
      facts_(facts_of(job, options)),
      metrics_(directory, facts_, ""),
      steps_(directory.file("steps")),
      ranks_(job, plan) {
  directory.remove("summary.json");  // of a previous start in the same directory
  ranks_.progress().continue_from(read_steps(directory.path()));
  begin_ranks(1);
}

void ProgramRecord::begin_ranks(int number) {
  const RankLayout layout(plan_);
  std::vector<Hello> hellos;
  for (const RankSlot& slot : layout.slots())
    hellos.push_back({.rank = slot.rank, .node = slot.node, .generation = number});
  ranks_.begin_generation(number, plan_, hellos);
}

void ProgramRecord::begin_generation(int number, const Plan& plan) {
  read();  // the last steps of the generation before
  generation_ = number;
  plan_ = plan;
  first_.reset();
  first_taken_ = false;
  last_read_s_ = seconds();
  begin_ranks(number);
}

std::optional<StepReport> ProgramRecord::look() {
  // Who calls this stood still, as when Slurm suspends the job: so did the ranks.
  if (const double still_s = seconds() - last_look_s_; last_look_s_ > 0 && still_s > kStoodStill_s)
    last_read_s_ += still_s;
  last_look_s_ = seconds();
  if (seconds() >= next_look_s_) {
    next_look_s_ = seconds() + kLookEvery_s;
    read();
  }
  if (!first_ || std::exchange(first_taken_, true)) return std::nullopt;
  return first_;
}

void ProgramRecord::read() {
  for (const StepReport& step : steps_.take()) {
    if (step.generation != generation_) continue;
    if (first_) longest_step_s_ = std::max(longest_step_s_, seconds() - last_read_s_);
    last_read_s_ = seconds();
    if (!first_) first_ = step;
    if (first_step_ == 0) first_step_ = step.step;
    ranks_.receive("", step);
  }
  for (const auto& progress : ranks_.progress().take())
    if (const auto* step = std::get_if<StepReport>(&progress)) metrics_.write(*step);
}

std::optional<double> ProgramRecord::hangs_s(double timeout_s) const {
  const double quiet_s = seconds() - last_read_s_;
  if (first_step_ == 0 || last_step() >= job_.training.steps) return std::nullopt;
  if (quiet_s < std::max(timeout_s, 2 * longest_step_s_)) return std::nullopt;
  return quiet_s;
}

std::vector<std::string> ProgramRecord::stragglers() const {
  const std::vector<StepReport> last = steps_.last_of_all(generation_);
  int64_t furthest = 0;
  for (const StepReport& report : last) furthest = std::max(furthest, report.step);
  const RankLayout layout(plan_);
  const std::vector<int> framework_rank = framework_ranks(layout, framework_.rank_order);
  std::vector<std::string> out;
  for (const StepReport& report : last) {
    if (report.step == furthest) continue;
    for (size_t i = 0; i < framework_rank.size(); ++i)
      if (framework_rank[i] == report.rank)
        out.push_back(fmt::format("rank {} on {} has done step {}, others {}", report.rank,
                                  layout.slots()[i].node, report.step, furthest));
  }
  return out;
}

std::optional<double> ProgramRecord::iteration_s() const {
  const std::vector<double>& steps_s = ranks_.progress().steps_s();
  return steps_s.size() < kFewSteps ? std::nullopt : steady_iteration_s(steps_s);
}

std::string ProgramRecord::conclude(RunSummary given) {
  read();
  const std::vector<int> framework_rank = framework_ranks(RankLayout(plan_), framework_.rank_order);
  const std::vector<StepReport> last = steps_.last_of_all(generation_);
  RunSummary summary = ranks_.summarize();
  for (RankSummary& rank : summary.ranks)
    for (const StepReport& report : last)
      if (report.rank == framework_rank[static_cast<size_t>(rank.rank)])
        rank.peak_rss_bytes = report.peak_rss_bytes;
  summary.job_id = given.job_id;
  summary.status = given.status;
  summary.error = given.error;
  summary.moved = given.moved;
  summary.next_job = given.next_job;
  summary.catalog = options_.catalog;
  summary.profiles = options_.profiles;
  if (summary.measured_iteration_s) summary.mfu = facts_.mfu(*summary.measured_iteration_s);
  directory_.write_document("summary.json", summary_json(summary));
  MeasuredRun run = measured_run(summary, job_, plan_);
  run.framework = framework_.name;
  directory_.write_document("run.json", to_json(run, 2));
  if (summary.steps == 0) return "";
  summary.ranks.clear();  // for the table of Sailor's own trainer
  return summary_text(summary);
}

}  // namespace sailor
