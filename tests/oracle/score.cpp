#include "tests/oracle/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sailor::oracle {
namespace {

double microbatches_per_pipeline(const Problem& problem, const GridPlan& plan) {
  return std::ceil(static_cast<double>(problem.global_batch) /
                   (static_cast<double>(plan.microbatch) * plan.replicas()));
}

double message_bytes(const Problem& problem, const GridPlan& plan, int tp, int layer) {
  return static_cast<double>(problem.sizes.at(tp)[layer].output_elements) * 4 * plan.microbatch;
}

double stage_bytes(const Problem& problem, int first, int end) {
  double bytes = 0;
  for (int layer = first; layer < end; ++layer)
    bytes += static_cast<double>(problem.sizes.at(1)[layer].parameters) * 4;
  return bytes;
}

const Curve& link(const Problem& problem, const Cell& from, int from_gpus, const Cell& to, int to_gpus) {
  return problem.links.at({{from.type, from.zone, from_gpus}, {to.type, to.zone, to_gpus}});
}

double sync_s(const Problem& problem, const GridPlan& plan, int stage) {
  int smallest = 4;
  for (const auto& pipeline : plan.pipelines) smallest = std::min(smallest, pipeline[stage].tp);
  const double bytes = stage_bytes(problem, plan.cuts[stage], plan.cuts[stage + 1]) / smallest;
  double slowest = 0;
  for (int j = 0; j + 1 < plan.replicas(); ++j)
    slowest = std::max(
        slowest, all_reduce_s(link(problem, plan.pipelines[j][stage], 1, plan.pipelines[j + 1][stage], 1),
                              bytes, plan.replicas()));
  return slowest;
}

double transfer_usd(const Problem& problem, const GridPlan& plan) {
  const int P = plan.stages(), D = plan.replicas();
  double messages = 0, ring = 0;
  for (int i = 0; i < P; ++i)
    for (int j = 0; j < D; ++j) {
      const Cell& cell = plan.pipelines[j][i];
      if (i + 1 < P)
        messages += 2 * problem.egress_usd_per_gb[cell.zone][plan.pipelines[j][i + 1].zone] *
                    message_bytes(problem, plan, cell.tp, plan.cuts[i + 1] - 1);
      if (D > 1)
        ring += problem.egress_usd_per_gb[cell.zone][plan.pipelines[(j + 1) % D][i].zone] *
                stage_bytes(problem, plan.cuts[i], plan.cuts[i + 1]) / D * 2 * (D - 1);
    }
  return 1e-9 * (microbatches_per_pipeline(problem, plan) * messages + ring);
}

}  // namespace

double memory_bytes(const Problem& problem, int tp, int microbatch, int first, int end, int in_flight) {
  double parameters = 0, activations = 0;
  for (int layer = first; layer < end; ++layer) {
    parameters += static_cast<double>(problem.sizes.at(tp)[layer].parameters);
    activations += static_cast<double>(problem.sizes.at(tp)[layer].activation_elements);
  }
  return 24 * parameters + in_flight * (microbatch * 4 * activations) + (tp == 1 ? 2e9 : 3e9);
}

double stage_comm_s(int stage, int stages, double activation_s, double gradient_s) {
  if (stages == 1) return 0;
  if (stage == 0) return stages <= 3 ? activation_s : 2 * activation_s;
  if (stage == stages - 1) return 2 * gradient_s;
  return activation_s + gradient_s;
}

double all_reduce_s(const Curve& curve, double bytes, int replicas) {
  if (replicas == 1) return 0;
  double s = 0;
  for (; bytes > 0; bytes -= 5e8) s += 2 * (replicas - 1) * curve.seconds(std::min(bytes, 5e8) / replicas);
  return s;
}

Score score(const Problem& problem, const GridPlan& plan) {
  const int P = plan.stages(), D = plan.replicas();
  const double nmb = microbatches_per_pipeline(problem, plan);
  double bottleneck = 0, sum = 0, update = 0, sync = 0, usd_per_hour = 0;
  for (int i = 0; i < P; ++i) {
    const int first = plan.cuts[i], end = plan.cuts[i + 1];
    double compute = 0, activation = 0, gradient = 0;
    for (int j = 0; j < D; ++j) {
      const Cell& cell = plan.pipelines[j][i];
      const auto& times = problem.types[cell.type].times.at({plan.microbatch, cell.tp});
      double own = 0;
      for (int layer = first; layer < end; ++layer) own += times[layer].forward_s + times[layer].backward_s;
      compute = std::max(compute, own);
      update = std::max(update, times[first].update_s);
      usd_per_hour += cell.tp * problem.usd_per_hour[cell.type][cell.zone];
      if (i + 1 < P) {
        const Cell& next = plan.pipelines[j][i + 1];
        activation = std::max(activation, link(problem, cell, cell.tp, next, next.tp)
                                              .seconds(message_bytes(problem, plan, cell.tp, end - 1)));
      }
      if (i > 0) {
        const Cell& previous = plan.pipelines[j][i - 1];
        gradient = std::max(gradient, link(problem, cell, cell.tp, previous, previous.tp)
                                          .seconds(message_bytes(problem, plan, cell.tp, first)));
      }
    }
    const double stage = compute + stage_comm_s(i, P, activation, gradient);
    bottleneck = std::max(bottleneck, stage);
    sum += stage;
    sync = std::max(sync, sync_s(problem, plan, i));
  }
  Score out;
  out.iteration_s = (nmb - 1) * bottleneck + sum + update + sync;
  out.usd = out.iteration_s * usd_per_hour / 3600 + transfer_usd(problem, plan);
  return out;
}

bool groups_fit(const std::vector<int>& free_by_node, std::map<int, int> groups_by_tp) {
  std::erase_if(groups_by_tp, [](const auto& entry) { return entry.second == 0; });
  if (groups_by_tp.empty()) return true;
  const int tp = groups_by_tp.rbegin()->first;
  for (size_t node = 0; node < free_by_node.size(); ++node) {
    if (free_by_node[node] < tp) continue;
    std::vector<int> left = free_by_node;
    std::map<int, int> rest = groups_by_tp;
    left[node] -= tp;
    --rest[tp];
    if (groups_fit(left, rest)) return true;
  }
  return false;
}

std::string violation(const Problem& problem, const GridPlan& plan) {
  const int P = plan.stages(), D = plan.replicas();
  if (P < 1 || D < 1 || plan.cuts.front() != 0 || plan.cuts.back() != problem.layers)
    return "does not cover the layers";
  for (int i = 0; i < P; ++i)
    if (plan.cuts[i] >= plan.cuts[i + 1]) return fmt::format("stage {} holds no layer", i);
  if (plan.microbatch < 1 || D > (problem.global_batch + plan.microbatch - 1) / plan.microbatch)
    return "a pipeline without microbatches";
  std::map<std::pair<int, int>, std::map<int, int>> groups;  // by (type, zone), then tp
  std::map<int, int> of_type;
  for (const auto& pipeline : plan.pipelines) {
    if (static_cast<int>(pipeline.size()) != P) return "pipelines of unequal depth";
    for (int i = 0; i < P; ++i) {
      const Cell& cell = pipeline[i];
      if (!problem.types[cell.type].times.contains({plan.microbatch, cell.tp}) ||
          !problem.sizes.contains(cell.tp))
        return fmt::format("stage {}: not profiled", i);
      if (!problem.zones[cell.zone].wanted) return "a zone that the job must not use";
      if (problem.zones[cell.zone].region != problem.zones[plan.pipelines[0][i].zone].region)
        return fmt::format("stage {}: replicas in two regions", i);
      if (memory_bytes(problem, cell.tp, plan.microbatch, plan.cuts[i], plan.cuts[i + 1], P - i) >
          static_cast<double>(problem.types[cell.type].memory_bytes))
        return fmt::format("stage {}: memory", i);
      ++groups[{cell.type, cell.zone}][cell.tp];
      of_type[cell.type] += cell.tp;
    }
  }
  for (const auto& [type, gpus] : of_type)
    if (problem.types[type].max_gpus >= 0 && gpus > problem.types[type].max_gpus)
      return fmt::format("{} GPUs of type {}, the job may use {}", gpus, problem.types[type].name,
                         problem.types[type].max_gpus);
  for (const auto& [pool, by_tp] : groups) {
    std::vector<int> free;
    for (const NodeOfCluster& node : problem.nodes)
      if (node.type == pool.first && node.zone == pool.second)
        free.push_back(static_cast<int>(node.free.size()));
    if (!groups_fit(free, by_tp))
      return fmt::format("the groups of type {} in zone {} do not fit its nodes",
                         problem.types[pool.first].name, problem.zones[pool.second].name);
  }
  return {};
}

}  // namespace sailor::oracle
