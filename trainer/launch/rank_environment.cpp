#include "trainer/launch/rank_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "planner/spec/name_list.h"

namespace sailor {
namespace {

// GPUs of the node by index, as CUDA_VISIBLE_DEVICES names them. Slurm lists those of the job, which plans
// number from 0.
std::string device_name(int gpu, const std::vector<std::string>& visible, const std::string& node) {
  if (visible.empty()) return std::to_string(gpu);
  if (gpu < static_cast<int>(visible.size())) return visible[static_cast<size_t>(gpu)];
  throw std::runtime_error(
      fmt::format("node {}: the plan uses GPU {}, but the step has {} (CUDA_VISIBLE_DEVICES)", node, gpu,
                  visible.size()));
}

}  // namespace

std::vector<int> framework_ranks(const RankLayout& layout, FrameworkStyle::RankOrder order) {
  std::vector<int> by_rank(layout.slots().size());
  std::iota(by_rank.begin(), by_rank.end(), 0);
  if (order == FrameworkStyle::RankOrder::pipelines) return by_rank;
  std::vector<RankSlot> slots = layout.slots();
  std::sort(slots.begin(), slots.end(), [](const RankSlot& a, const RankSlot& b) {
    return std::tie(a.stage, a.pipeline, a.tp_rank) < std::tie(b.stage, b.pipeline, b.tp_rank);
  });
  for (size_t i = 0; i < slots.size(); ++i) by_rank[static_cast<size_t>(slots[i].rank)] = static_cast<int>(i);
  return by_rank;
}

std::vector<std::string> nodes_in_order(const RankLayout& layout, FrameworkStyle::RankOrder order) {
  const std::vector<int> ranks = framework_ranks(layout, order);
  std::vector<std::string> nodes = layout.nodes();
  const auto lowest = [&](const std::string& node) {
    int least = layout.size();
    for (const int rank : layout.ranks_on(node)) least = std::min(least, ranks[static_cast<size_t>(rank)]);
    return least;
  };
  std::sort(nodes.begin(), nodes.end(),
            [&](const std::string& a, const std::string& b) { return lowest(a) < lowest(b); });
  return nodes;
}

std::vector<std::map<std::string, std::string>> rank_environments(
    const Plan& plan, FrameworkStyle::RankOrder order, const std::string& node,
    const RendezvousPoint& meeting, const std::string& visible, int processors) {
  const RankLayout layout(plan);
  const std::vector<int> ranks = framework_ranks(layout, order);
  std::vector<int> here = layout.ranks_on(node);
  std::sort(here.begin(), here.end(),
            [&](int a, int b) { return ranks[static_cast<size_t>(a)] < ranks[static_cast<size_t>(b)]; });
  const std::vector<std::string> nodes = nodes_in_order(layout, order);
  const auto group = std::find(nodes.begin(), nodes.end(), node) - nodes.begin();
  std::vector<std::string> devices;
  for (const int rank : here)
    devices.push_back(
        device_name(layout.slots()[static_cast<size_t>(rank)].gpu, split_commas(visible), node));
  std::vector<std::map<std::string, std::string>> out;
  for (const int rank : here) {
    const RankSlot& slot = layout.slots()[static_cast<size_t>(rank)];
    const PlanPipeline& pipeline = plan.pipelines[static_cast<size_t>(slot.pipeline)];
    const std::string number = std::to_string(ranks[static_cast<size_t>(rank)]);
    const std::string all = std::to_string(layout.size());
    std::map<std::string, std::string>& set = out.emplace_back();
    set["RANK"] = set["ROLE_RANK"] = number;
    set["WORLD_SIZE"] = set["ROLE_WORLD_SIZE"] = all;
    set["LOCAL_RANK"] = std::to_string(out.size() - 1);
    set["LOCAL_WORLD_SIZE"] = std::to_string(here.size());
    set["GROUP_RANK"] = set["NODE_RANK"] = std::to_string(group);
    set["GROUP_WORLD_SIZE"] = std::to_string(nodes.size());
    set["MASTER_ADDR"] = meeting.address;
    set["MASTER_PORT"] = std::to_string(meeting.port);
    set["TORCHELASTIC_RUN_ID"] = meeting.run_id;
    set["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(devices, ","));
    set["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    set["OMP_NUM_THREADS"] = std::to_string(std::max(1, processors / static_cast<int>(here.size())));
    set["SAILOR_PLAN"] = meeting.plan_file;
    set["SAILOR_PIPELINE"] = std::to_string(slot.pipeline);
    set["SAILOR_STAGE"] = std::to_string(slot.stage);
    set["SAILOR_TP_RANK"] = std::to_string(slot.tp_rank);
    set["SAILOR_CP_RANK"] = std::to_string(slot.cp_rank);
    set["SAILOR_GPU_TYPE"] = pipeline.stages[static_cast<size_t>(slot.stage)].gpu_type;
    set["SAILOR_MICROBATCH"] = std::to_string(microbatch_of(plan, pipeline));
    set["SAILOR_MICROBATCHES"] = std::to_string(pipeline.microbatches);
    set["SAILOR_RECOMPUTE"] = to_string(pipeline.stages[static_cast<size_t>(slot.stage)].recompute);
    set["SAILOR_SHARD_RANKS"] =
        std::to_string((plan.zero_group > 0 ? plan.zero_group : static_cast<int>(plan.pipelines.size())) *
                       pipeline.stages[static_cast<size_t>(slot.stage)].shape.copies());
    set["SAILOR_GLOBAL_BATCH"] = std::to_string(plan.global_batch);
    if (plan.precision) set["SAILOR_PRECISION"] = to_string(*plan.precision);
  }
  return out;
}

int rendezvous_port(const std::string& job_id) {
  constexpr int kFirst = 12'000, kNumber = 20'000;  // kernels give out 32768 and more
  return kFirst + static_cast<int>(std::hash<std::string>{}(job_id) % kNumber);
}

}  // namespace sailor
