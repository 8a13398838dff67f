// Starting points of the native search: shapes of pipelines in the order of their estimates, first of one
// pool, then of several pools together, then pipelines of several pools next to each other.
#pragma once

#include <set>

#include "planner/plan/features.h"
#include "planner/search/native/scorer.h"
#include "planner/search/native/shapes.h"

namespace sailor::native {

struct SeedOptions {
  // Fractions of the effort: for pipelines of one pool, for listing those with different stages, for scoring
  // them; and the total fraction when pipelines of several pools are done.
  double one_pool = 0.12, listing = 0.1, unlike_stages = 0.2, side_by_side = 0.45;
  int64_t patience = 1;        // multiple of the effort of a list as long as nothing of it fits
  double first_factor = 2;     // the best shape of a kind is scored up to this multiple of the best value ...
  double factor = 1.25;        // ... and every other shape up to this one
  double kept = 1.2;           // values beyond this multiple of the best are not computed exactly
  bool thorough = false;       // see usual_ways.h
  size_t mixed_shapes = 16;    // of all pools together, for combinations of pipelines
  size_t spanned_pools = 4;    // maximum pools of pipelines with the same share of each
  size_t permuted_parts = 3;   // maximum parts of a pipeline that are listed in all orders
  size_t most_pools = 5;       // maximum pools that pipelines span or mix
  size_t most_shapes = 20000;  // per list, kept by their estimates
};

class Seeds {
 public:
  Seeds(Scorer& scorer, const PlanFeatures& offered, const SeedOptions& options);

  // Equal pipelines of one pool, and of different stages in one pool or several.
  void equal_pipelines();
  // Pipelines of several pools next to each other.
  void side_by_side();

  int64_t shapes() const { return shapes_; }  // listed so far

 private:
  using Pools = std::vector<int>;

  std::vector<Pools> sets() const;
  std::set<int> pools_of(const TemplateShape& shape) const;
  void keep_best(std::vector<TemplateShape>& shapes) const;
  // Scores shapes in the order of their estimates, until the scorer has taken `until` steps.
  void score_best(std::vector<TemplateShape>& shapes, int64_t until);
  int64_t until(double share, double weight, double weights_left) const;
  double speed_of(const Pools& pools) const;
  // The best value of a shape with the usual splits, placements and sharding.
  double score(PlanTemplate of);
  void list_one(int pool, int microbatch, std::vector<TemplateShape>& out);
  void list_spans(const Pools& pools, std::vector<TemplateShape>& out);
  bool is_linked(const TemplateShape& shape) const;
  bool fits_into_zone(const TemplateShape& shape) const;
  void list_compositions(const Pools& pools, std::vector<TemplateShape>& out);
  void add(TemplateShape shape, double most, std::vector<TemplateShape>& out);
  void add_interleaved(TemplateShape shape, double most, std::vector<TemplateShape>& out);
  std::vector<TemplateShape> shapes_for_mixing(int pool, int microbatch, double share, size_t most);
  void mix_pools(const Pools& pools, int microbatch, int64_t until);
  void mix(const std::vector<TemplateShape>& shapes);

  Scorer& scorer_;
  const Space& space_;
  const PlanFeatures& offered_;
  const SeedOptions options_;
  Estimates estimates_;
  int64_t shapes_ = 0;
  std::vector<int> by_speed_;  // pools, fastest first
  std::vector<double> speed_;  // model replicas per second of all GPUs of the pool
};

}  // namespace sailor::native
