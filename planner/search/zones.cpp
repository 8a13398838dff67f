#include "planner/search/zones.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "planner/search/candidates.h"
#include "planner/simulator/lookup.h"

namespace sailor {
namespace {

constexpr double kSampleBytes = 1e7;  // of the messages that compare the seams between zones
constexpr size_t kMostZonesToPermute = 6;

// Free GPUs that are still to be had: (zone, type).
using Left = std::map<std::pair<std::string, std::string>, int>;

struct Need {
  int gpus = 0;  // of one pipeline
  int largest_tp = 1;
};

// What one pipeline takes of each type in one region.
std::map<std::string, Need> needs_in(const PlanPipeline& pipeline,
                                     const std::map<std::string, std::string>& region_of,
                                     const std::string& region) {
  std::map<std::string, Need> needs;
  for (const PlanStage& stage : pipeline.stages)
    if (region_of.at(stage.zone) == region) {
      needs[stage.gpu_type].gpus += stage.tp;
      needs[stage.gpu_type].largest_tp = std::max(needs[stage.gpu_type].largest_tp, stage.tp);
    }
  return needs;
}

double seam_s(const PlanningContext& context, const std::map<std::string, Need>& needs, const std::string& a,
              const std::string& b) {
  double slowest = 0;
  for (const auto& [type, need] : needs) {
    const LinkCurve* link = find_link(context.profiles.network, {type, a, 1}, {type, b, 1}, false);
    if (link == nullptr) return std::numeric_limits<double>::infinity();
    slowest = std::max(slowest, link->time_s(kSampleBytes));
  }
  return slowest;
}

// The order of all given zones, or of as few as give `wanted` pipelines room, with the fastest slowest seam.
std::vector<std::pair<std::string, int>> best_order(const PlanningContext& context,
                                                    const std::map<std::string, Need>& needs,
                                                    const std::vector<std::pair<std::string, int>>& rooms,
                                                    int wanted) {
  std::vector<std::pair<std::string, int>> best;
  double best_s = std::numeric_limits<double>::infinity();
  if (rooms.size() > kMostZonesToPermute) return rooms;
  std::vector<size_t> order(rooms.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  do {
    std::vector<std::pair<std::string, int>> taken;
    double slowest = 0;
    int room = 0;
    for (size_t i : order) {
      if (room >= wanted) break;
      if (!taken.empty())
        slowest = std::max(slowest, seam_s(context, needs, taken.back().first, rooms[i].first));
      taken.push_back(rooms[i]);
      room += rooms[i].second;
    }
    if (best.empty() || taken.size() < best.size() || (taken.size() == best.size() && slowest < best_s)) {
      best = taken;
      best_s = slowest;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

// Puts a pipeline's stages of a region wherever GPUs are left, staying in a zone while it can.
bool scatter(PlanPipeline& pipeline, const std::map<std::string, std::string>& region_of,
             const std::string& region, const std::vector<std::string>& zones, Left& left) {
  std::string here = zones.front();
  for (PlanStage& stage : pipeline.stages) {
    if (region_of.at(stage.zone) != region) continue;
    if (left[{here, stage.gpu_type}] < stage.tp) {
      const auto most =
          std::max_element(zones.begin(), zones.end(), [&](const std::string& a, const std::string& b) {
            return left[{a, stage.gpu_type}] < left[{b, stage.gpu_type}];
          });
      here = *most;
    }
    if (left[{here, stage.gpu_type}] < stage.tp) return false;
    left[{here, stage.gpu_type}] -= stage.tp;
    stage.zone = here;
  }
  return true;
}

}  // namespace

std::optional<Plan> plan_over_zones(const PlanningContext& context, const Resources& merged,
                                    const Resources& real, const Cut& cut, int microbatch, int replicas) {
  Plan plan = plan_of(context, merged, cut, microbatch, replicas);
  std::map<std::string, std::string> region_of;              // merged zone -> region
  std::map<std::string, std::vector<std::string>> zones_of;  // region -> real zones
  for (const Pool& pool : merged.pools) region_of[pool.zone] = pool.region;
  Left left;
  for (const Pool& pool : real.pools) {
    std::vector<std::string>& zones = zones_of[pool.region];
    if (std::find(zones.begin(), zones.end(), pool.zone) == zones.end()) zones.push_back(pool.zone);
    left[{pool.zone, pool.gpu_type}] = pool.gpus();
  }
  for (const auto& [region, zones] : zones_of) {
    const std::map<std::string, Need> needs = needs_in(plan.pipelines.front(), region_of, region);
    const bool alike = std::all_of(cut.stages.begin(), cut.stages.end(),
                                   [](const ChosenStage& stage) { return stage.mix->runs.size() == 1; });
    std::vector<std::pair<std::string, int>> rooms;  // how many whole pipelines a zone holds
    if (alike && !needs.empty())
      for (const std::string& zone : zones) {
        int room = replicas;
        for (const auto& [type, need] : needs) {
          int gpus = 0;
          for (const Pool& pool : real.pools)
            if (pool.zone == zone && pool.gpu_type == type) gpus = pool.gpus_in_groups_of(need.largest_tp);
          room = std::min(room, gpus / need.gpus);
        }
        if (room > 0) rooms.emplace_back(zone, room);
      }
    size_t next = 0;
    if (!rooms.empty())
      for (const auto& [zone, room] : best_order(context, needs, rooms, replicas))
        for (int n = 0; n < room && next < plan.pipelines.size(); ++n, ++next)
          for (PlanStage& stage : plan.pipelines[next].stages)
            if (region_of.at(stage.zone) == region) {
              stage.zone = zone;
              left[{zone, stage.gpu_type}] -= stage.tp;
              region_of[zone] = region;
            }
    for (const std::string& zone : zones) region_of[zone] = region;
    for (; next < plan.pipelines.size(); ++next)
      if (!scatter(plan.pipelines[next], region_of, region, zones, left)) return std::nullopt;
  }
  return plan;
}

}  // namespace sailor
