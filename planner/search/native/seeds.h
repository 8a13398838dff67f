// Where a native search starts: shapes of pipelines, looked at closely in the order of their estimates, pool
// by pool, then pools together.
#pragma once

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"
#include "planner/search/native/shapes.h"

namespace sailor::native {

struct SeedOptions {
  // Of the effort, until each of the both has had its turn.
  double one_pool = 0.12, listing = 0.1, unlike_stages = 0.2, side_by_side = 0.45;
  int64_t patience = 1;        // parts of the effort of a set of pools beyond its own, when nothing fits
  double unlikely = 2;         // estimates beyond the best look by this factor are left
  double in_vain = 1.25;       // the same, once every kind of shape had its turn
  double kept = 1.2;           // values beyond the best by this factor are not worked out
  size_t mixed_shapes = 16;    // of all pools together, for pipelines side by side
  int few_gpus = 12;           // for listing all sequences of stages ...
  double sequences = 0.3;      // ... with so much of the effort
  size_t spanned_pools = 4;    // by pipelines with so many stages of each
  size_t permuted_parts = 3;   // of a pipeline: up to so many in all orders
  size_t most_pools = 5;       // of a zone or of all, that pipelines span or mix
  size_t most_shapes = 20000;  // of a set of pools, kept by their estimates
};

class Seeds {
 public:
  Seeds(Scorer& scorer, const PlanFeatures& offered, const SeedOptions& options);

  // Of clusters of a few GPUs: equal pipelines with any stages in any order.
  void all_of_few_gpus();
  // Equal pipelines of one pool, and of unlike stages of one pool or several.
  void equal_pipelines();
  // Pipelines of several pools side by side.
  void side_by_side();

  int64_t shapes() const { return shapes_; }  // listed until now

 private:
  using Pools = std::vector<int>;

  std::vector<Pools> sets() const;
  void keep_best(std::vector<TemplateShape>& shapes) const;
  // Until so many steps are taken.
  void look_at(std::vector<TemplateShape>& shapes, int64_t until);
  int64_t until(double share, double weight, double weights_left) const;
  double speed_of(const Pools& pools) const;
  double look(const TemplateShape& shape);
  double look(PlanTemplate of);
  void list_one(int pool, int microbatch, std::vector<TemplateShape>& out);
  void list_spans(const Pools& pools, std::vector<TemplateShape>& out);
  void extend(std::vector<TemplateStage>& stages, std::vector<int>& used, int64_t until);
  bool is_linked(const TemplateShape& shape) const;
  void list_compositions(const Pools& pools, std::vector<TemplateShape>& out);
  void add(TemplateShape shape, double most, std::vector<TemplateShape>& out);
  void add_interleaved(TemplateShape shape, double most, std::vector<TemplateShape>& out);
  std::vector<TemplateShape> shapes_for_mixing(int pool, int microbatch, double share, size_t most);
  void mix_pools(const Pools& pools, int microbatch, int64_t until);
  void mix(const std::vector<TemplateShape>& shapes);
  std::vector<Recompute> modes() const;

  Scorer& scorer_;
  const Space& space_;
  const PlanFeatures& offered_;
  const SeedOptions options_;
  Estimates estimates_;
  int64_t shapes_ = 0;
  std::vector<int> by_speed_;  // pools, fastest first
  std::vector<double> speed_;  // by pool: models per second, all its GPUs together
};

}  // namespace sailor::native
