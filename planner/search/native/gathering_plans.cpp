#include "planner/search/native/gathering_plans.h"

#include <algorithm>
#include <set>
#include <vector>

#include "planner/search/native/cut_layers.h"
#include "planner/search/native/usual_ways.h"

namespace sailor::native {
namespace {

constexpr int kStages[] = {1, 2, 4}, kChunkCounts[] = {1, 2};
constexpr size_t kFewPools = 4;

class GatheringPlans {
 public:
  GatheringPlans(Scorer& scorer, const PlanFeatures& offered)
      : scorer_(scorer),
        space_(scorer.space()),
        ways_{.choose_recompute = offered.contains(PlanFeature::recompute)},
        interleaves_(offered.contains(PlanFeature::interleave)) {
    for (const SpaceOption& option : space_.options) degrees_.insert(option.shape.gpus());
  }

  void score_all() {
    const std::vector<std::vector<int>> sets = sets_of_pools();
    for (const int microbatch : space_.microbatches)
      for (const int gpus : degrees_)
        for (const std::vector<int>& pools : sets)
          for (const int stages : kStages)
            for (const int chunks : kChunkCounts)
              if ((stages == 1 || pools.size() == 1) && (chunks == 1 || (stages > 1 && interleaves_)))
                score(pools, gpus, stages, chunks, microbatch);
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

  // On replicas of stages that have this number of GPUs.
  void score(const std::vector<int>& pools, int gpus, int stages, int chunks, int microbatch) {
    if (scorer_.spent()) return;
    const int64_t total = num_microbatches(space_.context.job.training.global_batch, microbatch);
    PlanTemplate of;
    of.microbatch = microbatch;
    of.zero = Zero::parameters;
    of.interleave = chunks;
    for (const int pool : pools) {
      const int option = space_.option_of(pool, {gpus});
      if (option < 0 || !space_.has_times(option, microbatch)) continue;
      TemplateClass& pipelines = of.classes.emplace_back();
      const int room = space_.pools[static_cast<size_t>(pool)].room_for(gpus) / stages;
      pipelines.pipelines = static_cast<int>(std::min<int64_t>(room, total));
      for (int s = 0; s < stages * chunks; ++s) pipelines.stages.push_back({option, 0, Recompute::none});
      if (pipelines.pipelines == 0) of.classes.pop_back();
    }
    if (of.classes.empty() || of.pipelines() < 2 || of.pipelines() > total) return;
    share_equally(space_, of);
    for (size_t c = 0; c < of.classes.size(); ++c)
      if (!cut_layers(scorer_, of, c, ways_.choose_recompute)) return;
    if (share_batch(space_, of)) score_placed(scorer_, of, ways_);
  }

  Scorer& scorer_;
  const Space& space_;
  const UsualWays ways_;
  const bool interleaves_;
  std::set<int> degrees_;  // numbers of GPUs of a replica
};

}  // namespace

void score_gathering_plans(Scorer& scorer, const PlanFeatures& offered) {
  GatheringPlans(scorer, offered).score_all();
}

}  // namespace sailor::native
