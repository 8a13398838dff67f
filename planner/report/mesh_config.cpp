#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "planner/report/framework_config.h"
#include "planner/report/uniform_plan.h"
#include "planner/spec/framework_style.h"

namespace sailor {

FrameworkConfig mesh_config(const JobSpec& whole, const Plan& of) {
  using Json = nlohmann::ordered_json;
  const JobSpec job = job_under(of, whole);
  constexpr ConfigReach kReach{true, true, true, true, true};
  if (std::string why_not = uniform_obstacle(job, of, kReach); !why_not.empty()) return {why_not, "", {}};
  const UniformPlan plan = uniform_plan(job, of);
  const bool by_stages =
      !job.trainer.own() && framework_of_trainer(job).rank_order == FrameworkStyle::RankOrder::stages;
  // A mesh numbers ranks with its last dimension running fastest, as both orders of ranks do.
  Json config = {{"device_type", "cuda"}};
  std::vector<std::pair<std::string, int>> data = {{"dp", plan.data}};
  if (plan.copies > 1) data = {{"dp_replicate", plan.copies}, {"dp_shard", plan.data / plan.copies}};
  std::vector<std::pair<std::string, int>> dimensions = {{"pp", plan.pipeline}};
  dimensions.insert(by_stages ? dimensions.end() : dimensions.begin(), data.begin(), data.end());
  if (plan.context > 1) dimensions.emplace_back("cp", plan.context);
  dimensions.emplace_back("tp", plan.tensor);
  config["mesh_shape"] = Json::array();
  config["mesh_dim_names"] = Json::array();
  for (const auto& [name, size] : dimensions) {
    config["mesh_shape"].push_back(size);
    config["mesh_dim_names"].push_back(name);
  }
  config["microbatch"] = plan.microbatch;
  config["microbatches"] = plan.microbatches;
  config["global_batch"] = plan.global_batch;
  config["layers"] = plan.layers;
  config["interleave"] = plan.interleave;
  config["sequence_parallel"] = plan.sequence_parallel;
  config["zero_stage"] = static_cast<int>(plan.zero);
  config["recompute"] = to_string(plan.recompute);
  if (plan.first_recomputed > 0) config["first_recomputed"] = plan.first_recomputed;
  if (plan.recomputed_every > 0) config["recomputed_every"] = plan.recomputed_every;
  config["precision"] = to_string(plan.precision);
  std::vector<RankSlot> slots = RankLayout(of).slots();
  if (by_stages)
    std::stable_sort(slots.begin(), slots.end(),
                     [](const RankSlot& a, const RankSlot& b) { return a.stage < b.stage; });
  config["ranks"] = Json::array();
  for (const RankSlot& slot : slots) {
    Json rank = {{"pipeline", slot.pipeline}, {"stage", slot.stage}, {"tp_rank", slot.tp_rank}};
    if (plan.context > 1) rank["cp_rank"] = slot.cp_rank;
    if (slot.gpu >= 0) rank.update({{"node", slot.node}, {"gpu", slot.gpu}});
    config["ranks"].push_back(rank);
  }
  return {"", config.dump(2) + "\n", {fmt::format("start {} ranks, as `ranks` has them", plan.ranks())}};
}

}  // namespace sailor
