// A stage that a pipeline template search puts before a partial pipeline: first its placement class, then its
// first layer. What does not depend on the next choice is computed once. Labels are what the search keeps
// (label_store.h); how times add up is told here and in layout.h.
#pragma once

#include <algorithm>

#include "planner/search/costs/layout.h"
#include "planner/search/dynamic_program/label_store.h"

namespace sailor {

class NewStage {
 public:
  // Both must outlive this. `behind` may be the empty pipeline, of no stages.
  NewStage(const TemplateProblem& problem, const Label& behind);

  // What the messages to the stage behind make of it; false when no link is known.
  bool set_class(int placement);
  // Its own work, after set_mode(): the label's times but for updates and sums of gradients.
  void set_first(int first_layer) {
    const double compute = p_.costs.compute_s(label.placement, first_layer, label.end_layer);
    label.first_layer = first_layer;
    label.sum_s = sum_s_ + compute;
    label.leading_s = published_
                          ? compute + activation_
                          : std::max({compute, activation_,
                                      round_trip_bottleneck_s(label.sum_s, label.stages, p_.microbatches)});
  }
  // What all of its messages to the stage behind cost, of all pipelines and microbatches.
  double messages_usd();

  const Label& behind() const { return behind_; }
  int in_flight() const { return in_flight_; }  // microbatches that the stage holds
  // The partial pipeline with the stage, as far as it is known.
  Label label;

 private:
  const TemplateProblem& p_;
  const Label& behind_;
  const bool published_;
  const int in_flight_;
  double sum_s_ = 0;          // of the label without the stage's own work
  double activation_ = 0;     // to the stage behind
  double messages_usd_ = -1;  // negative: not asked yet
};

}  // namespace sailor
