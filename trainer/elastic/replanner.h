// Which plan a job goes on with, when some of its processes are gone or new ones have come.
//
// Where the site has a catalog and profiles of the model, the planner searches anew, with the job's own
// objective and limits and starting from the plan in force. Where not, the plan that the job began with is
// cut down to the pipelines whose GPUs still have a process. The global batch stays. Not thread-safe, but a
// copy of its own serves another thread.
#pragma once

#include <atomic>
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "planner/inputs/planning_record.h"
#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// A GPU of the job that has a process.
struct LiveGpu {
  std::string node;  // as plans call it
  int gpu = 0;

  auto operator<=>(const LiveGpu&) const = default;
};

struct Replanned {
  std::optional<Plan> plan;  // placed on live GPUs only
  std::string text;          // one line: how it was made, or why there is none
  std::string table;         // of a search: the candidates that it was chosen from
  // Of a search: the plans that came after it, best first. With other GPUs one of them is often the best.
  std::vector<Plan> runners_up;
  bool complete = true;  // nothing was left to be searched when the time was over
  Snapshot nodes{};      // that it was made for, with their free GPUs
};

class Replanner {
 public:
  struct Time {
    double limit_s = 0.3;
    const std::atomic<bool>* stop = nullptr;  // as PlanOptions::stop
  };
  struct Options {
    std::string site_config;  // that is read when the file is there
    PlanOverrides overrides;  // of the submission
    Time time{};
  };

  // `plan` is the one that the job begins with, placed. Never throws for want of a site config or a profile:
  // text() says then what is missing. Throws InputError when two stages of the plan share a GPU, or give a
  // node two GPU types.
  Replanner(const JobSpec& job, const Plan& plan, const Options& options);

  // With `previous`, the plan in force, as what is to be kept as far as possible; `runners_up`: of the search
  // that it came from, to start from as well. `time`: another one than the options'.
  Replanned plan_for(const std::vector<LiveGpu>& gpus, const Plan& previous,
                     const std::vector<Plan>& runners_up = {}, std::optional<Time> time = {}) const;
  // Is it worth while to change from one plan to the other? By the job's objective, 2 % at least.
  bool better(const Plan& plan, const Plan& than) const;
  // What the plan promises: its own prediction, else a simulation; nothing where there are no profiles.
  std::optional<PlanPrediction> prediction_of(const Plan& plan) const;

  // The job has got another node, of which the GPUs that are free now may be used.
  void add_node(const SnapshotNode& node);
  // Whether a node of the cluster could be of use at all: plans are searched, and its GPU type is known.
  bool could_use(const SnapshotNode& node) const;
  // The job's own spec, with what the submission changed of it.
  const JobSpec& job() const { return inputs_ ? inputs_->job : job_; }

  // What the plan that the job begins with can be made with now; empty where there is no site config, or no
  // profile.
  PlanningFiles planning_files() const;

  // How plans are made: by search, or by cutting down, and why.
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

// Gives the stages of a plan that is not placed nodes of their own, called `stage-PIPELINE-STAGE`.
void place_on_imagined_nodes(Plan& plan);

}  // namespace sailor
