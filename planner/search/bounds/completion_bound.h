// Lower bounds on time and cost of every completion of a partial pipeline, given the accepted values.
//
// The bottleneck of a completed pipeline is in one of a few levels (intervals). Within a level, stages are no
// longer than its upper end and rounds no shorter than its lower end. The accepted value then limits the
// remaining time for gradient reduction, which limits stages again. Stages that are short enough for both
// need a minimum of resources, money and total time (suffix_resource_bound.h, least_sum.h). A level in which
// not even an empty pipeline can be completed is dead. A partial pipeline is hopeless if it is so in every
// level. Not thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "planner/search/bounds/bound_tables.h"
#include "planner/search/bounds/least_sum.h"
#include "planner/search/costs/partial_pipeline.h"

namespace sailor {

// Larger values give better bounds in more time. Memory beyond a number of microbatches in flight, and limits
// beyond the first, tightest ones, cost more time than they prune.
struct CompletionOptions {
  size_t most_levels = 4;
  int in_flight = 8;
  size_t limits = 16;
  size_t priced_limits = 4;
  int sync_steps = 2;
};

class CompletionBound {
 public:
  // `capacity`: by limit, for one replica.
  CompletionBound(const TemplateProblem& problem, BoundTables& tables, const std::vector<double>& capacity,
                  const CompletionOptions& options);

  // From now on only iterations that take less, and cost no more, are accepted. Infinite: any.
  void accept(double iteration_s, double charge);
  // A lower bound on the bottleneck of all pipelines.
  double bottleneck_floor_s() const { return floor_s_; }

  // Could a completion be accepted? False is certain.
  bool possible(const PartialPipeline& pipeline);
  // Makes stage_possible() refer to stages directly before this pipeline, which must not move until accept().
  void set_behind(const PartialPipeline& behind);
  // Could an accepted completion have a stage there with this placement class, this use, and a first layer
  // from `lowest` to `highest`? False is certain.
  bool stage_possible(int placement, const StageUse& use, int lowest, int highest);
  // A lower bound on the cost of a complete pipeline: per second for GPUs, and in total for traffic.
  double charge_per_s(const PartialPipeline& whole) const;
  double fixed_charge(const PartialPipeline& whole) const;
  // Was a pipeline rejected because of its cost?
  bool money_mattered() const { return money_mattered_; }

 private:
  struct Level {
    double longest_s = 0, shortest_s = 0;  // of the bottleneck
    bool ready = false, dead = false;
    std::unique_ptr<SuffixResourceBound> suffix;
    std::unique_ptr<LeastSum> sum;
  };
  // A lower bound on the cost of pipelines with this use, from the limits with a price.
  double priced_per_s(const double* used, const double* more, size_t limits) const;
  double left_for_sync_s(const Level& level, double sum_s) const {
    return accepted_s_ - rounds_ * level.shortest_s - sum_s;
  }
  void prepare(Level& level);
  bool possible_in(Level& level, const PartialPipeline& pipeline, double least_s);
  bool affordable(const PartialPipeline& pipeline, double iteration_s, double rest_charge_per_s,
                  double all_charge_per_s, double egress_charge);

  const TemplateProblem& p_;
  const CompletionOptions options_;
  BoundTables& tables_;
  const int layers_;
  const double rounds_;
  const bool charge_matters_, egress_matters_;
  const double once_s_;  // of all layers, where they are fastest
  EgressBound::Prices egress_prices_;
  bool money_mattered_ = false;
  double accepted_s_, accepted_charge_;
  double floor_s_ = 0;
  std::vector<double> capacity_, left_, nothing_;  // by limit
  std::vector<Level> levels_;                      // with decreasing bottlenecks
  size_t levels_in_use_ = 0;
  // Arguments of set_behind().
  const PartialPipeline* behind_ = nullptr;
  bool any_behind_ = false;                      // no level constrains it
  std::vector<double> left_of_behind_;           // by limit
  std::vector<SuffixResourceBound*> behind_in_;  // of the levels in which it can be completed
};

}  // namespace sailor
