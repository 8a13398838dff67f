// The search: which GPUs and which parallelization, together, under the user's objective and limits.
//
// A pure function of its arguments: no global state, deterministic (only SearchStats tell wall time),
// independent of the order of nodes in the snapshot. Resource-exact: never more GPUs of a type in a zone than
// are free, never a TP group across nodes. Anytime: at the time limit it returns the best plan so far.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/features.h"
#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"

namespace sailor {

// paper: P stages, one microbatch size, one D for all stages, every replica of a stage any (GPU type, TP
// degree, zone). full: the features of plans (plan/features.h) that PlanOptions allows beyond that.
enum class SearchSpace { paper, full };
const char* to_string(SearchSpace space);
SearchSpace parse_search_space(const std::string& text);  // throws InputError

struct PlanOptions {
  SearchSpace space = SearchSpace::full;
  CostModel cost_model = CostModel::native;
  // Of plans in the space `full` under the native cost model.
  PlanFeatures allow = trainable_features();
  int top_k = 5;  // candidates to return, best first
  // How much the native search may do, as a multiple of what it does by itself. It ends by counting what it
  // did, not by the clock.
  double effort = 1;
  double time_limit_s = 2.0;
  // Once true, from any thread, it is as if the time were over. Outlives the search.
  const std::atomic<bool>* stop = nullptr;
  bool explain = true;  // when nothing is found, plan again under relaxed conditions to say what would help
  // The plan that ran until now, to start from when a few nodes came or went, then the other candidates of
  // the search that it came from, best first: with other nodes one of them is often the best. They bound the
  // search, and never make the result worse.
  std::vector<Plan> previous;
  std::set<std::string> without;  // prunings switched off, for measurements; see feature_names()
};
std::vector<std::string> feature_names();
// Does the search with these options offer plans with the feature? The space `paper` and the published
// formulas know none.
bool offers(const PlanOptions& options, PlanFeature feature);

struct Candidate {
  Plan plan;  // placed on nodes; its prediction is filled in
  Prediction prediction;
};

enum class SearchStatus {
  found,
  infeasible,
  time_limit
};  // time_limit: it ran out before any plan was found

struct SearchStats {
  int64_t configurations = 0;  // (stages, microbatch, D) looked at
  int64_t labels = 0;          // partial pipelines kept
  int64_t plans_scored = 0;
  double search_s = 0;    // wall time; not part of the result
  bool complete = false;  // the space was searched to its end
};

struct SearchResult {
  SearchStatus status = SearchStatus::infeasible;
  CostModel cost_model = CostModel::native;  // that made the predictions
  std::vector<Candidate> candidates;         // best first; empty unless found
  std::optional<double> bound_iteration_s;   // proven: no plan of the space is faster
  std::optional<double> bound_usd_per_iteration;
  std::map<std::string, int64_t>
      rejected;        // candidates by reason: memory, not profiled, budget, throughput floor, GPUs
  std::string reason;  // one line when nothing was found: what binds, and the smallest change that helps
  SearchStats stats;
};

// An elastic job gets a plan with ZeRO-1 only where there is none without: what one rank alone holds is lost
// with it; and none that is interleaved.
SearchResult search(const PlanningContext& context, const PlanOptions& options);

}  // namespace sailor
