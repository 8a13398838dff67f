// Makes the plan with which a job continues after it has lost or gained processes.
//
// If the site has a catalog and profiles of the model, the planner searches again, with the job's objective
// and limits, starting from the plan in force. Otherwise the first plan of the job is reduced to the
// pipelines whose GPUs still have a process. The global batch does not change. Not thread-safe; use a copy
// per thread.
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/inputs/planning_record.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/elastic/growth_choice.h"

namespace sailor {

struct Replanned {
  std::optional<Plan> plan;  // placed on live GPUs only
  std::string text;          // one line: how the plan was made, or why there is none
  std::string table;         // of a search: the table of candidates
  // Of a search: the next best plans, best first. With other GPUs one of them is often the best.
  std::vector<Plan> runners_up;
  bool complete = true;  // the search was not truncated by its time limit
  Snapshot nodes{};      // for which it was made, with their free GPUs
};

// Of candidates that are worse than the best by half a per cent at most, the one with the fewest nodes
// becomes the first: others may have the rest.
void prefer_fewer_nodes(const Objective& objective, std::vector<Candidate>& candidates);

class Replanner : public GrowthPlanner {
 public:
  struct Time {
    double limit_s = 0.3;
    const std::atomic<bool>* stop = nullptr;  // as PlanOptions::stop
  };
  struct Options {
    std::string site_config;  // read if the file exists
    PlanOverrides overrides;  // of the submission
    Time time{};
  };

  // `plan` is the first plan of the job, placed. A missing site config or profile is not an error: text()
  // says what is missing. Throws InputError if two stages of the plan share a GPU, or a node has two GPU
  // types.
  Replanner(const JobSpec& job, const Plan& plan, const Options& options);

  // `previous` is the plan in force, which the new plan keeps as far as possible. `runners_up` of its search
  // are further starting points. `time` replaces that of the options.
  Replanned plan_for(const std::vector<LiveGpu>& gpus, const Plan& previous,
                     const std::vector<Plan>& runners_up = {}, std::optional<Time> time = {}) const;
  // Is `plan` better than `than` by at least 2 % of the job's objective?
  bool better(const Plan& plan, const Plan& than) const;
  // The ranks of the plan `to` whose GPU has no memory for their state under `from` besides
  // (planner/search/change_room.h); none without profiles.
  std::set<int> without_room(const Plan& from, const Plan& to) const;
  // The prediction stored in the plan, else a simulation; nothing without profiles.
  std::optional<PlanPrediction> prediction_of(const Plan& plan) const override;

  // The job has a new node, whose currently free GPUs may be used.
  void add_node(const SnapshotNode& node);
  // Plans are searched, and its GPU type is known.
  bool could_use(const SnapshotNode& node) const override;
  std::optional<Plan> plan_with(std::vector<LiveGpu> gpus, const std::vector<SnapshotNode>& more,
                                const Plan& previous) const override;
  std::shared_ptr<const GrowthPlanner> copy() const override { return std::make_shared<Replanner>(*this); }
  Objective objective() const override { return job().objective; }
  // The job spec, with the overrides of the submission.
  const JobSpec& job() const { return inputs_ ? inputs_->job : job_; }

  // The current planning inputs of the first plan; empty if there is no site config, or no profile.
  PlanningFiles planning_files() const;

  // How plans are made: by search or by reduction, and why.
  const std::string& text() const { return text_; }

 private:
  Snapshot snapshot_of(const std::vector<LiveGpu>& gpus) const;
  std::optional<Plan> cut_down(const Snapshot& snapshot) const;
  Replanned plan_on(const Snapshot& snapshot, size_t gpus, const Plan& previous,
                    const std::vector<Plan>& runners_up, const Time& time) const;
  Replanned search_plan(const Snapshot& snapshot, std::vector<Plan> previous, const Time& time) const;

  const JobSpec& job_;
  const Plan first_;
  const Options options_;
  Snapshot whole_;  // every GPU of the first plan
  std::optional<PlanningInputs> inputs_;
  std::string text_;
};

// Places an unplaced plan on imagined nodes, one per stage, called `stage-PIPELINE-STAGE`.
void place_on_imagined_nodes(Plan& plan);

}  // namespace sailor
