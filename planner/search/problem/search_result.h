// The result of a search: plans, best first, a bound for every plan, and the rejected candidates by reason.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/simulate.h"

namespace sailor {

struct Candidate {
  Plan plan;  // placed on nodes; with its prediction
  Prediction prediction;
  // One more to show, of a list longer than kCandidates: the search does not go on from it.
  bool only_shown = false;
};

// time_limit: reached before any plan was found.
enum class SearchStatus { found, infeasible, time_limit };

struct SearchStats {
  int64_t configurations = 0;  // (stages, microbatch, D) searched
  int64_t labels = 0;          // partial pipelines kept
  int64_t plans_scored = 0;
  double search_s = 0;    // wall time; not part of the result
  bool complete = false;  // the whole space was searched

  // With those of another search of the same job.
  SearchStats& operator+=(const SearchStats& other) {
    configurations += other.configurations;
    labels += other.labels;
    plans_scored += other.plans_scored;
    search_s += other.search_s;
    complete = complete && other.complete;
    return *this;
  }
};

struct SearchResult {
  SearchStatus status = SearchStatus::infeasible;
  CostModel cost_model = CostModel::native;  // the model of the predictions
  std::vector<Candidate> candidates;         // best first; empty unless found
  std::optional<double> bound_iteration_s;   // proven: no plan of the space is faster
  PerExpense<std::optional<double>> bound;   // proven: none takes less; of the tracked expense
  std::map<std::string, int64_t>
      rejected;  // candidates by reason: memory, not profiled, budget, throughput floor, GPUs
  // one line if no plan was found: the binding constraint, and the smallest change that helps
  std::string reason;
  SearchStats stats;
};

}  // namespace sailor
