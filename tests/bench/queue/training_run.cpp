#include "tests/bench/queue/training_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/simulator/cost.h"
#include "planner/start/choose_start.h"

namespace sailor::bench {
namespace {

constexpr double kChange_s = 15;        // training pauses when the plan changes
constexpr double kCheckpoint_s = 1800;  // between checkpoints of `fixed`
constexpr double kBetter = 0.98;        // of the iteration time, for a change to another plan

PlanPrediction prediction_of(const Candidate& candidate) {
  return {candidate.prediction.iteration_s, totals(candidate.prediction.spent), {}, {}, 0};
}

// Plans of the study's cache.
class CachedPlans : public GrowthPlanner {
 public:
  CachedPlans(StudyWorld& world, size_t model) : world_(world), model_(model) {}

  std::shared_ptr<const GrowthPlanner> copy() const override { return std::make_shared<CachedPlans>(*this); }
  Objective objective() const override { return {}; }
  bool could_use(const SnapshotNode&) const override { return true; }
  std::optional<PlanPrediction> prediction_of(const Plan& plan) const override { return plan.prediction; }
  std::optional<Plan> plan_with(std::vector<LiveGpu> gpus, const std::vector<SnapshotNode>& more,
                                const Plan&) const override {
    std::vector<std::string> names;
    for (const LiveGpu& gpu : gpus)
      if (names.empty() || names.back() != gpu.node) names.push_back(gpu.node);
    for (const SnapshotNode& node : more) names.push_back(node.name);
    return plan_on(names);
  }
  std::optional<Plan> plan_on(const std::vector<std::string>& nodes) const {
    const SearchResult found = world_.plans.search(model_, world_.cluster.only(nodes));
    if (found.status != SearchStatus::found) return std::nullopt;
    Plan plan = found.candidates.front().plan;
    plan.prediction = bench::prediction_of(found.candidates.front());
    return plan;
  }

 private:
  StudyWorld& world_;
  const size_t model_;
};

}  // namespace

TrainingRun::TrainingRun(const Training& training, StudyWorld& world)
    : training_(training), world_(world), steps_left_(static_cast<double>(training.steps)) {}

void TrainingRun::tick() {
  if (ended_s_) return;
  if (job_.empty()) return submit();
  const QueuedJob job = *world_.cluster.scheduler().find_job(job_);
  if (job.state == JobState::pending) return;
  if (!since_s_) begin_part(job);
  if (job.state != JobState::running) return end_part(job);
  if (growth_) grow();
}

// --- submission

void TrainingRun::submit() {
  if (world_.policy == QueuePolicy::fixed) return submit_fixed();
  const std::vector<std::string> idle = world_.cluster.idle_for(training_.limit_s);
  const auto plan = [&](const Snapshot& nodes, double) {
    return world_.plans.search(training_.model, nodes);
  };
  const Snapshot cluster = world_.cluster.view(idle);
  SearchResult now;
  if (!idle.empty()) now = plan(cluster, 0);
  if (world_.policy == QueuePolicy::now) {
    if (now.status == SearchStatus::found) submit_plan(now.candidates.front());
    return;
  }
  StartQuestion question;
  question.steps = std::max<int64_t>(1, std::llround(steps_left_));
  question.length_s = static_cast<double>(training_.limit_s);
  question.grows = question.queues = question.shortens = true;
  const StartChoice choice =
      choose_start(cluster, now, question, plan, [&](const StartOption& option) -> std::optional<double> {
        const auto start_s =
            world_.cluster.scheduler().could_start(request_of(option.candidate.plan, option.least_s));
        if (!start_s) return std::nullopt;
        return static_cast<double>(*start_s) - now_s();
      });
  if (choice.options.empty()) return;
  queued_ = choice.options.front().queued;
  submit_plan(choice.options.front().candidate, choice.options.front().least_s);
}

void TrainingRun::submit_fixed() {
  const NodeKind& kind = world_.study.kinds[training_.kind];
  const Snapshot nodes = world_.cluster.only({kind.names.begin(), kind.names.begin() + kFixedNodes});
  submit_plan(*hand_written(world_.study.models[training_.model].inputs->context(nodes)));
}

// The nodes of a kind if all are of one, else these.
JobRequest TrainingRun::request_of(const Plan& plan, double least_s) const {
  const std::vector<std::string> names = node_names(plan);
  JobRequest request{.nodes = static_cast<int>(names.size()),
                     .time_limit_s = static_cast<int>(training_.limit_s)};
  if (least_s > 0) request.least_s = static_cast<int>(least_s);
  const std::set<std::string> types = gpu_types_of(plan);
  if (types.size() == 1)
    request.gpu_type = *types.begin();
  else
    request.node_names = names;
  return request;
}

void TrainingRun::submit_plan(const Candidate& candidate, double least_s) {
  plan_ = candidate.plan;
  plan_.prediction = prediction_of(candidate);
  iteration_s_ = candidate.prediction.iteration_s;
  const bool by_itself = world_.policy == QueuePolicy::fixed;
  const auto takes_s = std::llround(std::ceil(steps_left_ * step_s()));
  job_ = world_.cluster.submit(request_of(plan_, least_s),
                               by_itself ? std::optional<int64_t>(takes_s) : std::nullopt);
}

// --- parts

void TrainingRun::begin_part(const QueuedJob& job) {
  since_s_ = static_cast<double>(*job.start_s);
  ++parts_;
  if (!started_s_) started_s_ = *job.start_s;
  // The plan was made for equal nodes.
  std::map<std::string, std::string> moved;
  const std::vector<std::string> planned = node_names(plan_);
  for (size_t i = 0; i < planned.size(); ++i) moved[planned[i]] = job.nodes[i];
  const bool same = std::set(planned.begin(), planned.end()) == std::set(job.nodes.begin(), job.nodes.end());
  for (PlanPipeline& pipeline : plan_.pipelines)
    for (PlanStage& stage : pipeline.stages)
      if (!same) stage.node = moved.at(stage.node);
  own_nodes_ = job.nodes;
  if (world_.policy == QueuePolicy::fixed) return;
  growth_.emplace(growth_options(job), world_.events, "", [](const std::string&) {});
  set_end();
}

double TrainingRun::steps_left_at(double time_s) const {
  return steps_left_ - std::max(0.0, time_s - *since_s_) / step_s();
}

std::vector<std::string> TrainingRun::nodes() const {
  std::vector<std::string> nodes = own_nodes_;
  for (const auto& [keeper, node] : joined_) nodes.push_back(node);
  return nodes;
}

// Steps, GPU hours and money up to a time.
void TrainingRun::count_until(double time_s) {
  const PlanningContext context = world_.study.models[training_.model].inputs->context();
  steps_left_ = steps_left_at(time_s);
  for (const std::string& name : nodes()) {
    const SnapshotNode& node = world_.cluster.node(name);
    const double gpu_s = node.gpus * (time_s - *since_s_);
    gpu_s_ += gpu_s;
    usd_ += gpu_s / 3600 * usd_per_gpu_hour(context, node).value_or(0);
  }
  since_s_ = time_s;
}

void TrainingRun::set_end() {
  const double end_s = *since_s_ + std::ceil(std::max(0.0, steps_left_ * step_s()));
  world_.cluster.scheduler().at(std::max<int64_t>(world_.cluster.now_s(), std::llround(end_s)),
                                [this, generation = ++generation_] {
                                  if (generation != generation_) return;
                                  release_helpers();
                                  world_.cluster.scheduler().end_job(job_, JobState::completed);
                                });
}

void TrainingRun::end_part(const QueuedJob& job) {
  const double part_s = static_cast<double>(*job.end_s - *job.start_s);
  count_until(static_cast<double>(*job.end_s));
  since_s_.reset();
  ++generation_;
  release_helpers();
  joined_.clear();
  helpers_.clear();
  growth_.reset();
  own_nodes_.clear();
  if (job.state == JobState::completed) {
    ended_s_ = *job.end_s;
    return;
  }
  if (world_.policy == QueuePolicy::fixed) {
    const double lost_s = std::fmod(part_s, kCheckpoint_s);
    steps_left_ += lost_s / step_s();
    lost_steps_ += std::llround(lost_s / step_s());
  }
  job_.clear();
  submit();
}

// --- growth

Growth::Options TrainingRun::growth_options(const QueuedJob& job) {
  constexpr double kEvery_s = 60;
  Growth::Options options{.every_s = kEvery_s, .yields = true, .queued = queued_};
  options.own_nodes = {job.nodes.begin(), job.nodes.end()};
  options.end_s = static_cast<double>(*job.end_s);
  options.in_thread = false;
  options.clock_s = [this] { return now_s(); };
  options.look = [this, end_s = *job.end_s] {
    std::vector<std::string> helpers;
    for (const auto& [keeper, id] : helpers_) helpers.push_back(id);
    Snapshot seen = world_.cluster.view(world_.cluster.idle_for(end_s - world_.cluster.now_s(), 1));
    seen.wanted = world_.cluster.wanted_of(helpers);
    return seen;
  };
  options.start_keeper = [this, end_s = *job.end_s](const Growth::Wish& wish) {
    return start_helper(wish, end_s);
  };
  options.end_keeper = [this](pid_t keeper) { told_to_end_.insert(keeper); };
  return options;
}

pid_t TrainingRun::start_helper(const Growth::Wish& wish, int64_t end_s) {
  helpers_[next_keeper_] = world_.cluster.submit_helper({.main_job = job_,
                                                         .excluded_nodes = wish.not_on,
                                                         .end_s = end_s,
                                                         .least_s = static_cast<int>(wish.least_s),
                                                         .gres = wish.node.host.gres,
                                                         .after_others = !wish.in_turn,
                                                         .script = "helper"});
  return next_keeper_++;
}

void TrainingRun::grow() {
  bool changed = see_helpers();
  const CachedPlans plans(world_, training_.model);
  std::vector<LiveGpu> gpus;
  for (const std::string& name : nodes())
    for (int gpu = 0; gpu < world_.cluster.node(name).gpus; ++gpu) gpus.push_back({name, gpu});
  do {
    growth_->tick({.plan = plan_,
                   .gpus = gpus,
                   .nodes = own_nodes_.size() + joined_.size(),
                   .iteration_s = step_s(),
                   .steps_left = std::llround(steps_left_at(now_s())),
                   .change_s = kChange_s},
                  plans, now_s());
  } while (growth_->undecided());
  changed = end_helpers() || changed;
  if (changed) change_plan();
}

// Nodes that have joined, and helper jobs that have ended. Returns whether the job has other nodes.
bool TrainingRun::see_helpers() {
  bool changed = false;
  for (const auto& [keeper, id] : std::map(helpers_)) {
    const QueuedJob helper = *world_.cluster.scheduler().find_job(id);
    if (helper.state == JobState::pending) continue;
    if (helper.state != JobState::running) {
      if (joined_.contains(keeper)) {
        count_until(now_s());
        changed = joined_.erase(keeper) > 0;
      }
      growth_->child_ended(keeper, 0, now_s());
      helpers_.erase(keeper);
    } else if (!joined_.contains(keeper) && growth_->came(helper.nodes.front(), keeper, now_s())) {
      count_until(now_s());
      joined_[keeper] = helper.nodes.front();
      changed = true;
    }
  }
  return changed;
}

bool TrainingRun::end_helpers() {
  bool changed = false;
  for (const pid_t keeper : std::exchange(told_to_end_, {})) {
    const auto helper = helpers_.find(keeper);
    if (helper == helpers_.end()) continue;
    if (joined_.contains(keeper)) {
      count_until(now_s());
      joined_.erase(keeper);
      changed = true;
    }
    world_.cluster.scheduler().end_job(helper->second, JobState::cancelled);
    growth_->child_ended(keeper, 0, now_s());
    helpers_.erase(helper);
  }
  return changed;
}

void TrainingRun::change_plan() {
  const CachedPlans plans(world_, training_.model);
  const std::vector<std::string> held = nodes();
  const std::vector<std::string> used = node_names(plan_);
  const bool complete = std::all_of(used.begin(), used.end(), [&](const std::string& name) {
    return std::find(held.begin(), held.end(), name) != held.end();
  });
  const std::optional<Plan> plan = plans.plan_on(held);
  if (plan && (!complete || plan->prediction->iteration_s < kBetter * iteration_s_)) {
    count_until(now_s());
    plan_ = *plan;
    iteration_s_ = plan->prediction->iteration_s;
    steps_left_ += kChange_s / step_s();
    ++changes_;
    set_end();
  }
  const std::vector<std::string> in_use = node_names(plan_);
  for (const auto& [keeper, name] : joined_)
    if (std::find(in_use.begin(), in_use.end(), name) == in_use.end())
      growth_->release(name, "the plan does not use it", true, now_s());
  end_helpers();
}

void TrainingRun::release_helpers() {
  for (const auto& [keeper, id] : helpers_) world_.cluster.scheduler().end_job(id, JobState::cancelled);
}

}  // namespace sailor::bench
