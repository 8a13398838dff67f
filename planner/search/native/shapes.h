// Shapes of pipelines before layers are split and GPUs assigned, with a quick estimate: equal pipelines of
// one or several pools, one after the other. A search lists them all, and scores those with the best
// estimates.
#pragma once

#include <array>
#include <vector>

#include "planner/search/native/plan_template.h"

namespace sailor::native {

struct TemplateShape {
  struct Part {
    int option = 0;
    int groups = 0;  // GPU groups in a row

    bool operator==(const Part&) const = default;
  };
  static constexpr size_t kMostParts = 8;

  int microbatch = 1;
  int interleave = 1;
  Recompute recompute = Recompute::none;
  int pipelines = 1;
  std::array<Part, kMostParts> parts;
  size_t num_parts = 0;
  double estimate = 0;  // of the goal

  int groups() const;
};

// Estimates without a layer split: stages of equal whole layers, messages and gradient reduction at the rate
// of the cards or links that they cannot avoid, placed by stage or by pipeline, whichever is better. Where
// one zone of the pool is too small, messages (by stage) or gradient reduction (by pipeline) use the link
// between zones. Keeps tables; not thread-safe.
class Estimates {
 public:
  explicit Estimates(const Space& space);

  // Seconds of one microbatch through the whole model on one GPU group; the longest layer.
  double model_s(int option, int microbatch, Recompute recompute);
  double longest_s(int option, int microbatch, Recompute recompute);
  double layer_s(int option, int microbatch, Recompute recompute);  // of the median layer
  // Model replicas per second of all GPUs of a pool; 0 if none of its options can hold a stage.
  double speed(int pool);
  // Weights, gradients and optimizer states of the model, of which this many replicas share `zero`.
  double model_bytes(Zero zero, int replicas) const;
  const Space& space() const { return space_; }

  // An iteration with `microbatches` on each of the shape's pipelines; `replicas` in the whole plan.
  double iteration_s(const TemplateShape& shape, double microbatches, int replicas);
  double busy_per_s(const TemplateShape& shape) const;
  // Is there memory for weights, gradients and optimizer states, ignoring everything else? `zero`: the most
  // that replicas may share.
  bool may_fit(const TemplateShape& shape, Zero zero) const;

 private:
  struct Model {
    double all_s = -1, longest_s = 0, update_s = 0;
    double layer_s = 0;  // the median
  };
  // Independent of where a shape's GPUs are.
  struct Stages {
    double rate = 0;     // models per second of a pipeline, if layers could be divided
    double stage_s = 0;  // the slowest stage, one microbatch
  };
  const Model& model(int option, int microbatch, Recompute recompute);
  Stages stages_of(const TemplateShape& shape);
  double iteration_s(const TemplateShape& shape, const Stages& stages, double microbatches, int replicas,
                     bool by_stage);

  // The fastest link between different zones of an option's pool; nullptr if it has one zone.
  const LinkCurve* zone_link(const SpaceOption& option) const;

  const Space& space_;
  std::vector<Model> models_;                              // [option][microbatch][recompute]
  std::vector<double> near_s_per_byte_, card_s_per_byte_;  // by option
  std::vector<const LinkCurve*> zone_links_;               // by option
  // Of a replica; of states what stays on GPUs at least.
  double weight_bytes_ = 0, gradient_bytes_ = 0, state_bytes_ = 0;
  double sum_bytes_ = 0;      // gradients of the whole model
  double message_bytes_ = 0;  // between stages, of a sample
};

// The template of a shape with all of the batch, not cut yet.
PlanTemplate template_of(const Space& space, const TemplateShape& shape);

// Numbers of pipelines to try: with any other number the busiest pipeline has the same microbatches, but more
// GPUs are used; also those that fill whole nodes. Descending.
std::vector<int> replica_counts(int64_t microbatches, int most, int per_node);

}  // namespace sailor::native
