// What the passes of one search share: the problem, the tables made for it, and what was found so far; and
// how one configuration is searched and what comes out of it is kept.
//
// `best_sum` is the value of the best plan so far; it never rises. Keeps references to the context and the
// options. Not thread-safe.
#pragma once

#include <limits>
#include <vector>

#include "planner/search/assignment/assignment.h"
#include "planner/search/dynamic_program/template_search.h"
#include "planner/search/improvement/layout_improvement.h"
#include "planner/search/problem/candidates.h"
#include "planner/search/problem/deadline.h"
#include "planner/search/published/configurations.h"
#include "planner/search/published/pass_tables.h"

namespace sailor {

inline constexpr int kAnyStages = 1 << 20;

class SearchState {
 public:
  // Throws InputError when the job names what the snapshot does not have.
  SearchState(const PlanningContext& context, const PlanOptions& options);
  SearchState(const SearchState&) = delete;
  SearchState& operator=(const SearchState&) = delete;

  const PlanningContext& context;
  const PlanOptions& options;
  Deadline deadline;
  SearchResult result;
  const Resources resources;
  const Goal goal;
  const CostTables tables;
  Candidates candidates;
  std::vector<Configuration> configurations;  // what is searched now, in the order of search
  double best_sum;
  bool pass_complete = false;  // of the last pass
  double open_value;           // the least value that the last pass could not rule out

  bool on(const char* feature) const { return options.without.count(feature) == 0; }
  bool expired() { return deadline.expired(); }
  double value_bound(const Configuration& c) const { return c.bound(goal.objective); }
  bool worse(const Configuration& c) const { return on(feature::kBounding) && value_bound(c) >= best_sum; }
  void sort_configurations();  // by bound

  // One replica is no mix.
  static Pass pass_of(const Configuration& c, Pass pass) {
    return pass == Pass::exact && c.replicas == 1 ? Pass::pure : pass;
  }
  PassTables& tables_of(const Configuration& c, Pass pass) { return pass_tables_.get(*c.costs, pass); }
  // With the tables of pass_of().
  TemplateProblem template_problem(const Configuration& c, Pass pass);

  // Assigns GPUs to templates and keeps what is better than accepted. Only for values below `target`;
  // templates of less than `searched` have been assigned.
  TemplateOutcome search_configuration(const Configuration& c, Pass pass, int max_stages,
                                       double target = std::numeric_limits<double>::infinity(),
                                       double searched = 0);
  void assign_template(const AssignmentProblem& form, const PipelineTemplate& pipeline,
                       const Configuration& c);
  // Which replica runs in which zone: the few layouts that are worth it are improved.
  void improve_shortlist();

 private:
  void keep(const Assignment& assigned, const StageCosts& costs, int replicas);

  PassTablesOf pass_tables_;
  Shortlist shortlist_;
};

}  // namespace sailor
