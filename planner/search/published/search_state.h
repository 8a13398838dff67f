// State that the passes of one search share: the problem, its tables, and the plans found so far; and the
// search of one configuration.
//
// `best_sum` is the value of the best plan so far; it never increases. Keeps references to the context and
// the options. Not thread-safe.
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
  // Throws InputError when the job names something that the snapshot does not have.
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
  std::vector<Configuration> configurations;  // being searched, in this order
  double best_sum;
  bool pass_complete = false;  // of the last pass
  double open_value;           // a lower bound on what the last pass did not search

  bool on(const char* feature) const { return options.without.count(feature) == 0; }
  bool expired() { return deadline.expired(); }
  double value_bound(const Configuration& c) const { return c.bound(goal.objective); }
  bool worse(const Configuration& c) const { return on(feature::kBounding) && value_bound(c) >= best_sum; }
  void sort_configurations();  // by bound

  // One replica is not a mix.
  static Pass pass_of(const Configuration& c, Pass pass) {
    return pass == Pass::exact && c.replicas == 1 ? Pass::pure : pass;
  }
  PassTables& tables_of(const Configuration& c, Pass pass) { return pass_tables_.get(*c.costs, pass); }
  // With the tables of pass_of().
  TemplateProblem template_problem(const Configuration& c, Pass pass);

  // Assigns GPUs to templates and keeps plans that are better than accepted. Only for values below `target`;
  // templates below `searched` have been assigned.
  TemplateOutcome search_configuration(const Configuration& c, Pass pass, int max_stages,
                                       double target = std::numeric_limits<double>::infinity(),
                                       double searched = 0);
  void assign_template(const AssignmentProblem& form, const PipelineTemplate& pipeline,
                       const Configuration& c);
  // Improves the zones of replicas in the few best layouts.
  void improve_shortlist();

 private:
  void keep(const Assignment& assigned, const StageCosts& costs, int replicas);

  PassTablesOf pass_tables_;
  Shortlist shortlist_;
};

}  // namespace sailor
