#include "planner/simulator/iteration_shares.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "planner/simulator/iteration_model.h"
#include "planner/simulator/style_schedule.h"
#include "planner/simulator/timeline.h"

namespace sailor {
namespace {

std::pair<const char*, double> largest_share(const IterationShares& shares) {
  std::pair<const char*, double> most = {"compute", shares.compute_s};
  for (const auto& [name, seconds] : {std::pair{"bubble", shares.bubble_s}, std::pair{"p2p", shares.p2p_s},
                                      std::pair{"sync", shares.sync_s}})
    if (seconds > most.second) most = {name, seconds};
  return most;
}

// Every round of the published formula takes as long as its slowest stage.
void split_published(const Plan& plan, const Prediction& prediction, IterationShares& shares) {
  const size_t stages = plan.pipelines[0].stages.size(), replicas = plan.pipelines.size();
  const auto rounds = static_cast<double>(
      (num_microbatches(plan.global_batch, plan.microbatch) + static_cast<int64_t>(replicas) - 1) /
      static_cast<int64_t>(replicas));
  double sum_s = 0, slowest_s = 0;
  for (size_t i = 0; i < stages; ++i) {
    double stage_s = 0;
    for (size_t j = 0; j < replicas; ++j) {
      const StagePrediction& s = prediction.stages.at(j * stages + i);
      stage_s = std::max(stage_s, s.forward_s + s.backward_s);
    }
    sum_s += stage_s;
    if (stage_s > slowest_s) {
      slowest_s = stage_s;
      shares.stage = static_cast<int>(i);
    }
  }
  shares.compute_s = rounds * slowest_s;
  shares.bubble_s = sum_s - slowest_s;
  shares.p2p_s = prediction.pipeline_s - shares.compute_s - shares.bubble_s;
}

void split_timeline(const FrameworkStyle& style, const Plan& plan, const Prediction& prediction,
                    IterationShares& shares) {
  const PipelineSchedule schedule = native::schedule_of(style, plan.interleave, prediction.message_bytes);
  std::set<std::pair<int, std::vector<double>>> seen;
  std::vector<StageTimes> binding;
  Timeline longest;
  size_t base = 0;
  for (size_t j = 0; j < plan.pipelines.size(); ++j) {
    const PlanPipeline& pipeline = plan.pipelines[j];
    std::vector<StageTimes> times;
    std::pair<int, std::vector<double>> key{pipeline.microbatches, {}};
    for (size_t i = 0; i < pipeline.stages.size(); ++i) {
      const StagePrediction& s = prediction.stages.at(base + i);
      times.push_back({s.forward_s, s.backward_s, s.send_forward_s, s.send_backward_s});
      key.second.insert(key.second.end(), {s.forward_s, s.backward_s, s.send_forward_s, s.send_backward_s});
    }
    base += pipeline.stages.size();
    if (!seen.insert(std::move(key)).second) continue;
    Timeline timeline = pipeline_timeline(schedule, times, pipeline.microbatches);
    if (j > 0 && timeline.makespan_s <= longest.makespan_s) continue;
    longest = std::move(timeline);
    binding = std::move(times);
    shares.pipeline = static_cast<int>(j);
  }
  const auto busiest = std::max_element(longest.stage_busy_s.begin(), longest.stage_busy_s.end());
  shares.stage = static_cast<int>(busiest - longest.stage_busy_s.begin());
  for (StageTimes& times : binding) times.send_forward_s = times.send_backward_s = 0;
  const int microbatches = plan.pipelines[static_cast<size_t>(shares.pipeline)].microbatches;
  const double without_messages_s =
      std::min(longest.makespan_s, pipeline_timeline(schedule, binding, microbatches).makespan_s);
  shares.compute_s = std::min(*busiest, without_messages_s);
  shares.bubble_s = without_messages_s - shares.compute_s;
  shares.p2p_s = longest.makespan_s - without_messages_s;
}

}  // namespace

std::string IterationShares::bottleneck() const {
  return largest_share(*this).first;
}

double IterationShares::bottleneck_part() const {
  return total_s() > 0 ? largest_share(*this).second / total_s() : 0;
}

IterationShares iteration_shares(const FrameworkStyle& style, const Plan& plan, const Prediction& prediction,
                                 CostModel model) {
  IterationShares shares;
  if (model == CostModel::published)
    split_published(plan, prediction, shares);
  else
    split_timeline(style, plan, prediction, shares);
  shares.sync_s = prediction.sync_s;
  shares.update_s = prediction.update_s;
  shares.overhead_s = prediction.overhead_s;
  return shares;
}

}  // namespace sailor
