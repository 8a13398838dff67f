// What any completion of a partial pipeline takes and costs at least, given what is accepted.
//
// The bottleneck of a completed pipeline lies in one of a few levels (intervals). Within a level stages are
// no longer than its upper end, rounds no shorter than its lower end; what is accepted then leaves so much
// for sums of gradients, which limits stages again. Stages that are short enough for both use resources,
// money and time in sum (suffix_resource_bound.h, least_sum.h). A level in which not even an empty pipeline
// can be completed is dead; a partial pipeline is hopeless when it is so in every level. Not thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "planner/search/bounds/bound_tables.h"
#include "planner/search/bounds/least_sum.h"
#include "planner/search/costs/pipeline_template.h"

namespace sailor {

// Stages from some layer to the last.
struct PartialPipeline {
  double bottleneck_s = 0;  // at least
  double sum_s = 0;         // of all that adds up, and the largest update so far; no overhead
  double sync_s = 0;
  double usd_per_s = 0;  // of all replicas
  double transfer_usd = 0;
  const double* used = nullptr;  // by limit, of one replica
  int first_layer = 0;
  int in_flight = 1;    // of a stage before it
  bool behind = false;  // it has stages
};

class CompletionBound {
 public:
  // `capacity`: by limit, for one replica. `coarse`: weaker, and cheaper to set up.
  CompletionBound(const TemplateProblem& problem, BoundTables& tables, const std::vector<double>& capacity,
                  bool coarse);

  // From now on only iterations that take less, and cost no more, are of interest. Infinite: any.
  void accept(double iteration_s, double usd);
  double accepted_s() const { return accepted_s_; }
  // No pipeline has a shorter bottleneck, as far as is known.
  double bottleneck_floor_s() const { return floor_s_; }
  // The least iteration time (cost, when that is the objective) of an accepted completion; infinite when
  // there is none. With `any` some finite value will do as well as the least.
  double least_value(const PartialPipeline& pipeline, bool any);
  // From now on stage_possible() is about stages right before this pipeline, until accept().
  void set_behind(const PartialPipeline& behind);
  // Might an accepted completion have a stage there that is in this placement class, uses this and has a
  // first layer from `lowest` to `highest`? No is certain.
  bool stage_possible(int placement, const StageUse& use, int lowest, int highest);
  // What a complete pipeline costs: GPUs at least so much per second, and traffic at least so much at all.
  double usd_per_s(const PartialPipeline& whole) const;
  double transfer_usd(const PartialPipeline& whole) const;
  // Was some pipeline refused for what it would cost?
  bool money_mattered() const { return money_mattered_; }

 private:
  struct Level {
    double longest_s = 0, shortest_s = 0;  // of the bottleneck
    double least_sync_s = 0;
    bool ready = false, dead = false;
    std::unique_ptr<SuffixResourceBound> suffix;
    std::unique_ptr<LeastSum> sum;
  };

  std::unique_ptr<SuffixResourceBound> new_suffix_bound(bool coarse);
  double once_s() const { return p_.costs.stage().least_compute_s(0, layers_); }
  // What pipelines that use so much cost, at least, by the limits that tell.
  double priced_usd_per_s(const double* used, const double* more, size_t limits) const;
  double left_for_sync_s(const Level& level, double sum_s) const {
    return accepted_s_ - p_.overhead_s - rounds_ * level.shortest_s - sum_s;
  }
  bool whole_possible(SuffixResourceBound& suffix);
  void prepare(Level& level);
  double least_sync_s(double bottleneck_s, double most_s);

  const TemplateProblem& p_;
  BoundTables& tables_;
  const StageSync& sync_;
  const int layers_;
  const double rounds_;
  const bool cost_matters_;
  const bool coarse_;
  const bool egress_matters_;
  EgressBound::Prices egress_prices_;
  bool money_mattered_ = false;
  double accepted_s_, accepted_usd_;
  double floor_s_ = 0;
  std::vector<double> capacity_, left_, nothing_;  // by limit
  std::unique_ptr<SuffixResourceBound> probe_;
  std::vector<Level> levels_;  // ever shorter bottlenecks
  size_t levels_in_use_ = 0;
  // What stage_possible() is about.
  PartialPipeline behind_;
  bool any_behind_ = false;                      // no level tells anything
  std::vector<double> left_of_behind_;           // by limit
  std::vector<SuffixResourceBound*> behind_in_;  // of the levels that it may be completed in
  size_t last_short_ = 0;  // the limit that was there too little of last, likely to be so again
};

}  // namespace sailor
