// When and on which nodes to start a job: now on the nodes that are free, or later on more or faster ones.
// Time counts like speed: the choice has the earliest expected end, which is start + steps x iteration time.
// Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/queued_nodes.h"
#include "planner/search/search.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"
#include "planner/start/planned_start.h"

namespace sailor {

// Plans for one snapshot with this effort (PlanOptions::effort_limit_s).
using ShortSearch = std::function<SearchResult(const Snapshot&, double effort_s)>;

// A plan with the time at which its nodes come free.
struct StartOption {
  Candidate candidate;
  Snapshot snapshot;  // for which it was planned: the nodes that it waits for are free
  PlannedStart start;
  bool asked = false;  // the scheduler was
  double run_s = 0;    // steps x iteration time
  double least_s = 0;  // least time limit; 0 = that of the job
  int nodes = 0;       // that it takes
  double gpu_s = 0;    // GPUs of these nodes x run_s
  double usd = 0;      // of the run
  // For which the job queues while it runs on those of its plan: run_s is the time until it ends with both.
  std::vector<QueuedNodes> queued{};

  double end_s() const { return start.wait_s + run_s; }
};

struct StartQuestion {
  int64_t steps = 0;  // > 0
  Objective objective{};
  std::optional<double> length_s{};     // time limit of the job; nothing = none
  std::optional<double> most_wait_s{};  // nothing = any wait
  std::optional<double> deadline_s{};   // for the end, from now
  bool by_name = false;                 // the job starts on the planned nodes only, not on equal ones
  bool grows = false;                   // the job takes nodes that become free while it runs
  bool queues = false;                  // it can start now and queue for other nodes while it runs
  bool shortens = false;                // it may get a shorter time limit, if it suffices (least_limit_s())
  double effort_s = 0.5;                // of all searches together
  size_t most_questions = 3;            // to the scheduler
};

// Of a job at a site, without the limits of its submission.
StartQuestion start_question(const JobSpec& job, const SiteConfig& site);

// The least time limit of a job that runs for that long, as predicted: with room for slower steps and changes
// of its plan. In whole minutes.
double least_limit_s(double run_s);

// When the scheduler would start a job on the nodes of this plan; nothing if it cannot say.
using AskScheduler = std::function<std::optional<double>(const StartOption&)>;

struct StartChoice {
  std::vector<StartOption> options;  // the chosen one, then the others by their end
  bool in_time = true;               // the chosen one meets the deadline
};

// `now` is the result of a search on the free nodes; not found = nothing can start now. Options are plans for
// 1, 2, 4, ... nodes of each kind, and for all nodes that are free at each of the next few times. The ones
// that look best are asked about.
//
//   throughput     the earliest expected end; a later start must end the job at least 2 % or a minute earlier
//   an expense     of the options that need no more than the one that starts now (or else than the cheapest),
//                  the earliest end
//   a deadline     the cheapest of the options that end in time
//
// Plans that would reach the job's time limit are only taken if all do. Of ends within 2 % of each other the
// one that takes fewest GPU hours is chosen. A start that the scheduler does not confirm counts a tenth
// later. A job that can start now and grows does not wait for nodes that no waiting job wants: it gets them
// while it runs. If it would wait for others, and can queue for them while it runs, it starts now and does
// so, if it then ends a minute earlier or more, and is not slower than 2 % of the plan with them.
StartChoice choose_start(const Snapshot& snapshot, const SearchResult& now, const StartQuestion& question,
                         const ShortSearch& plan, const AskScheduler& ask);

// Names of the nodes of a placed plan, each once.
std::vector<std::string> node_names(const Plan& plan);

}  // namespace sailor
