#include "planner/search/native/gathering_plans.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "planner/search/native/cut_layers.h"
#include "planner/search/native/usual_ways.h"

namespace sailor::native {
namespace {

constexpr int kStages[] = {1, 2, 4}, kPipelines[] = {1, 2, 3, 4}, kChunkCounts[] = {1, 2};
constexpr size_t kFewPools = 4;

class GatheringPlans {
 public:
  GatheringPlans(Scorer& scorer, const PlanFeatures& offered)
      : scorer_(scorer),
        space_(scorer.space()),
        ways_{.choose_recompute = offered.contains(PlanFeature::recompute)},
        interleaves_(offered.contains(PlanFeature::interleave)) {
    const bool gathers = offered.contains(PlanFeature::zero3);
    const Zero states = zero_degrees(offered)[offered.contains(PlanFeature::zero1) ? 1 : 0];
    for (const SpaceOption& option : space_.options) {
      std::vector<Zero> degrees;
      if (option.shape.cp > 1) {
        degrees.push_back(zero_degrees(offered).back());
        if (gathers) degrees.push_back(Zero::optimizer);
      } else {
        if (space_.may_offload) degrees.push_back(states);
        if (gathers) degrees.push_back(Zero::parameters);
      }
      ways_of_[option.shape] = std::move(degrees);
    }
  }

  void score_all() {
    const std::vector<std::vector<int>> sets = sets_of_pools();
    for (const int microbatch : space_.microbatches)
      for (const auto& [shape, degrees] : ways_of_)
        for (const std::vector<int>& pools : sets)
          for (const int stages : stage_counts(pools, shape))
            for (const int chunks : kChunkCounts)
              if ((stages == 1 || pools.size() == 1) && (chunks == 1 || (stages > 1 && interleaves_)) &&
                  // Where sequences are divided, microbatches are small.
                  (shape.cp == 1 || (chunks == 1 && microbatch == space_.microbatches.front())))
                for (const Zero zero : degrees) score(pools, shape, stages, chunks, microbatch, zero);
  }

 private:
  // Of few pools all sets, else single ones, pairs, and all together.
  std::vector<std::vector<int>> sets_of_pools() const {
    std::vector<int> all;
    for (size_t pool = 0; pool < space_.pools.size(); ++pool)
      if (!space_.pools[pool].joint) all.push_back(static_cast<int>(pool));
    std::vector<std::vector<int>> sets = {{}};
    for (const int pool : all)
      for (size_t i = sets.size(); i-- > 0;) {
        if (all.size() > kFewPools && sets[i].size() >= 2) continue;
        sets.push_back(sets[i]);
        sets.back().push_back(pool);
      }
    sets.erase(sets.begin());
    if (all.size() > kFewPools) sets.push_back(all);
    return sets;
  }

  // Few, and those of few pipelines.
  std::set<int> stage_counts(const std::vector<int>& pools, const ReplicaShape& shape) const {
    std::set<int> counts(std::begin(kStages), std::end(kStages));
    if (pools.size() > 1) return counts;
    const int room = space_.pools[static_cast<size_t>(pools.front())].room_for(shape.gpus());
    for (const int pipelines : kPipelines)
      if (room >= pipelines) counts.insert(std::min(room / pipelines, space_.layers()));
    return counts;
  }

  void score(const std::vector<int>& pools, const ReplicaShape& shape, int stages, int chunks, int microbatch,
             Zero zero) {
    if (scorer_.spent()) return;
    const int64_t total = num_microbatches(space_.context.job.training.global_batch, microbatch);
    PlanTemplate of;
    of.microbatch = microbatch;
    of.zero = zero;
    of.interleave = chunks;
    for (const int pool : pools) {
      const int option = space_.option_of(pool, shape);
      if (option < 0 || !space_.has_times(option, microbatch)) continue;
      TemplateClass& pipelines = of.classes.emplace_back();
      const int room = space_.pools[static_cast<size_t>(pool)].room_for(shape.gpus()) / stages;
      pipelines.pipelines = static_cast<int>(std::min<int64_t>(room, total));
      for (int s = 0; s < stages * chunks; ++s) pipelines.stages.push_back({option, 0, Recompute::none});
      if (pipelines.pipelines == 0) of.classes.pop_back();
    }
    if (of.classes.empty() || of.pipelines() > total) return;
    if (zero != Zero::none && !has_replicas(space_, of)) return;
    share_equally(space_, of);
    for (size_t c = 0; c < of.classes.size(); ++c)
      if (!cut_layers(scorer_, of, c, ways_.choose_recompute)) return;
    if (share_batch(space_, of)) score_placed(scorer_, of, ways_);
  }

  Scorer& scorer_;
  const Space& space_;
  const UsualWays ways_;
  const bool interleaves_;
  std::map<ReplicaShape, std::vector<Zero>> ways_of_;
};

}  // namespace

void score_gathering_plans(Scorer& scorer, const PlanFeatures& offered) {
  GatheringPlans(scorer, offered).score_all();
}

}  // namespace sailor::native
