#include "tests/bench/native/uniform_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "planner/simulator/memory.h"

namespace sailor::bench {
namespace {

// Shares `total` units among pipelines that take `step_s` for each, the slowest as fast as can be; everyone
// gets one.
std::vector<int> shares_by_speed(int64_t total, const std::vector<double>& step_s) {
  std::vector<int> shares(step_s.size(), 1);
  double rate = 0;
  for (double s : step_s) rate += 1 / s;
  int64_t left = total - static_cast<int64_t>(step_s.size());
  const double spare = static_cast<double>(left);
  for (size_t i = 0; i < shares.size() && spare > 0; ++i) {
    const int more = std::max(0, static_cast<int>(static_cast<double>(total) / rate / step_s[i]) - 1);
    shares[i] += static_cast<int>(std::min<int64_t>(left, more));
    left -= std::min<int64_t>(left, more);
  }
  for (; left > 0; --left) {
    size_t next = 0;
    for (size_t i = 1; i < shares.size(); ++i)
      if ((shares[i] + 1) * step_s[i] < (shares[next] + 1) * step_s[next]) next = i;
    ++shares[next];
  }
  return shares;
}

}  // namespace

std::string UniformShape::name() const {
  return fmt::format("uniform {} tp{} P{} D{} mb{} {}{}{}{}", family->name, family->tp, stages, replicas,
                     microbatch, placement == Placement::by_stage ? "by-stage" : "by-pipeline",
                     zero == Zero::none ? "" : " " + short_name(zero),
                     recompute == Recompute::none ? "" : std::string(" ") + to_string(recompute),
                     interleave > 1 ? fmt::format(" v{}", interleave) : "");
}

std::vector<UniformEstimator::Pattern> UniformEstimator::patterns(const UniformShape& shape) {
  const UniformFamily& family = *shape.family;
  std::vector<int> all_pipelines(static_cast<size_t>(shape.replicas));
  std::iota(all_pipelines.begin(), all_pipelines.end(), 0);
  if (family.types.size() == 1)
    return {{std::vector<int>(static_cast<size_t>(shape.stages), 0), std::move(all_pipelines)}};
  std::vector<double> type_s;
  for (const std::string& type : family.types) type_s.push_back(model_s(type, shape.microbatch, family.tp));
  const auto faster = [&](int a, int b) {
    return type_s[static_cast<size_t>(a)] < type_s[static_cast<size_t>(b)];
  };
  if (shape.placement == Placement::by_stage) {  // one cut for all
    Pattern all;
    for (int s = 0; s < shape.stages; ++s) {
      const auto first = family.type_of.begin() + shape.group(0, s);
      all.types.push_back(*std::max_element(first, first + shape.replicas, faster));
    }
    all.pipelines = std::move(all_pipelines);
    return {all};
  }
  std::vector<Pattern> out;
  for (int d = 0; d < shape.replicas; ++d) {
    const auto first = family.type_of.begin() + shape.group(d, 0);
    std::vector<int> types(first, first + shape.stages);
    auto it = std::find_if(out.begin(), out.end(), [&](const Pattern& p) { return p.types == types; });
    if (it == out.end()) it = out.insert(out.end(), {std::move(types), {}});
    it->pipelines.push_back(d);
  }
  return out;
}

// Ends of the stages, or of the chunks; nullptr when the layers are too few.
const std::vector<int>* UniformEstimator::cut(const UniformShape& shape, const Pattern& pattern) {
  const auto key =
      std::tuple(shape.family, pattern.types, shape.microbatch, shape.recompute, shape.interleave);
  const auto known = cuts_.find(key);
  if (known != cuts_.end()) return &known->second;
  std::vector<const LayerSums*> entries;
  for (int v = 0; v < shape.interleave; ++v)
    for (int type : pattern.types) {
      entries.push_back(sums(shape, type));
      if (entries.back() == nullptr) return nullptr;
    }
  if (static_cast<int>(entries.size()) > entries[0]->layers()) return nullptr;
  return &cuts_.emplace(key, balanced_cut(entries)).first->second;
}

// Counts weights, gradients, optimizer states and activations only, so it is never above 1 for a plan that
// fits.
double UniformEstimator::memory_part(const UniformShape& shape, const Pattern& pattern,
                                     const std::vector<int>& ends, int share) {
  double most = 0;
  const FrameworkStyle& style = context_.framework;
  const Precision precision = context_.job.training.precision;
  const auto held = [&](double bytes, Zero degree) {
    return shape.zero >= degree ? bytes / shape.replicas : bytes;
  };
  const double state = style.weight_bytes(precision) +
                       held(style.gradient_bytes_at(precision), Zero::gradients) +
                       held(style.master_bytes_at(precision) + style.moments_bytes, Zero::optimizer);
  for (int s = 0; s < shape.stages; ++s) {
    const int type = pattern.types[static_cast<size_t>(s)];
    const LayerSums& of = *sums(shape, type);
    double parameters = 0, kept = 0;
    for (int v = 0; v < shape.interleave; ++v) {
      const size_t entry = static_cast<size_t>(v * shape.stages + s);
      const int first = entry == 0 ? 0 : ends[entry - 1];
      parameters += of.parameters_of(first, ends[entry]);
      kept += of.kept_bytes_of(first, ends[entry]);
    }
    if (shape.stages == 1)
      parameters -=
          static_cast<double>(context_.profiles.sizes.find({shape.family->tp})->back().tied_parameters);
    // Interleaved, at least one microbatch of every chunk.
    const int held = shape.interleave > 1 ? 1 : in_flight(s, shape.stages, share);
    const std::string& name = shape.family->types[static_cast<size_t>(type)];
    const double bytes = parameters * state + kept * shape.microbatch * held;
    most = std::max(most, bytes / static_cast<double>(context_.catalog.at(name).memory_bytes));
  }
  return most;
}

double UniformEstimator::link_s(const GpuGroup& from, const GpuGroup& to, double bytes, double senders) {
  const bool near = from.node == to.node;
  const LinkCurve* link = context_.profiles.network.find(
      {from.node->gpu_type, from.node->zone, static_cast<int>(from.gpus.size())},
      {to.node->gpu_type, to.node->zone, static_cast<int>(to.gpus.size())}, near);
  return link == nullptr ? kNeverEnds : link->time_s(bytes, senders);
}

// An activation to the next stage.
double UniformEstimator::message_s(const UniformShape& shape, int replica, int stage) {
  const std::vector<GpuGroup>& groups = shape.family->groups;
  const GpuGroup& from = groups[static_cast<size_t>(shape.group(replica, stage))];
  const GpuGroup& to = groups[static_cast<size_t>(shape.group(replica, (stage + 1) % shape.stages))];
  const double bytes =
      static_cast<double>(context_.profiles.sizes.find({shape.family->tp})->at(1).output_elements) *
      element_bytes(context_.job.training.precision) * shape.microbatch / shape.family->tp;
  const double senders = shape.placement == Placement::by_stage
                             ? static_cast<double>(from.node->free_gpus.size())
                             : static_cast<double>(from.gpus.size());
  return link_s(from, to, bytes, senders);
}

// Gradient reduction of a stage with this many parameters on each GPU, every replica to every other one.
double UniformEstimator::sum_s(const UniformShape& shape, int stage, double parameters) {
  if (shape.replicas == 1) return 0;
  const std::vector<GpuGroup>& groups = shape.family->groups;
  const GpuGroup& first = groups[static_cast<size_t>(shape.group(0, stage))];
  const GpuGroup& last = groups[static_cast<size_t>(shape.group(shape.replicas - 1, stage))];
  int near = 0;
  for (int d = 0; d < shape.replicas; ++d)
    near += groups[static_cast<size_t>(shape.group(d, stage))].node == first.node;
  const double far = static_cast<double>(shape.replicas - near) / shape.replicas;
  const double bytes = 2 * parameters * context_.framework.sync_bytes_at(context_.job.training.precision);
  return far == 0 ? link_s(first, first, bytes, 1)
                  : link_s(first, last, bytes * far, static_cast<double>(first.node->free_gpus.size()));
}

bool UniformEstimator::estimate(UniformShape& shape) {
  const int64_t total = num_microbatches(context_.job.training.global_batch, shape.microbatch);
  if (shape.interleave > 1 && (total % shape.stages != 0 || total / shape.stages < shape.replicas))
    return false;
  double rate = 0, compute_rate = 0, fill_s = 0, sync_s = 0, message_most_s = 0;
  for (const Pattern& pattern : patterns(shape)) {
    const std::vector<int>* ends = cut(shape, pattern);
    if (ends == nullptr) return false;
    const int share = static_cast<int>(std::max<int64_t>(1, total / shape.replicas));
    shape.memory_part = std::max(shape.memory_part, memory_part(shape, pattern, *ends, share));
    if (shape.memory_part > 1) return false;
    double slowest_s = 0, sum = 0, messages_s = 0;
    for (int s = 0; s < shape.stages; ++s) {
      const LayerSums& of = *sums(shape, pattern.types[static_cast<size_t>(s)]);
      double stage_s = 0, parameters = 0;
      for (int v = 0; v < shape.interleave; ++v) {
        const size_t entry = static_cast<size_t>(v * shape.stages + s);
        const int first = entry == 0 ? 0 : (*ends)[entry - 1];
        stage_s += of.compute_s_of(first, (*ends)[entry]);
        parameters += of.parameters_of(first, (*ends)[entry]);
      }
      slowest_s = std::max(slowest_s, stage_s);
      sum += stage_s;
      sync_s = std::max(sync_s, sum_s(shape, s, parameters) - stage_s / 2);
      if (s + 1 < shape.stages || shape.interleave > 1) {
        const double one_s = message_s(shape, pattern.pipelines[0], s);
        messages_s += 2 * one_s * shape.interleave;
        message_most_s = std::max(message_most_s, one_s * shape.interleave);
      }
    }
    const double step_s = std::max(slowest_s, message_most_s);
    rate += static_cast<double>(pattern.pipelines.size()) / step_s;
    fill_s = std::max(fill_s, (sum - slowest_s) / shape.interleave + messages_s);
    compute_rate += static_cast<double>(pattern.pipelines.size()) / slowest_s;
  }
  shape.compute_s = static_cast<double>(total) / compute_rate;
  shape.estimate_s = static_cast<double>(total) / rate + fill_s + sync_s;
  return shape.estimate_s < kNeverEnds;
}

Plan UniformEstimator::plan(const UniformShape& shape) {
  Plan plan;
  plan.model = context_.job.model.name;
  plan.global_batch = context_.job.training.global_batch;
  plan.microbatch = shape.microbatch;
  plan.zero = shape.zero;
  plan.interleave = shape.interleave;
  plan.pipelines.resize(static_cast<size_t>(shape.replicas));
  std::vector<double> step_s(plan.pipelines.size(), 0);
  for (const Pattern& pattern : patterns(shape)) {
    const std::vector<int>& ends = *cut(shape, pattern);
    for (int d : pattern.pipelines) {
      std::vector<double> busy_s(static_cast<size_t>(shape.stages), 0);
      for (size_t entry = 0; entry < ends.size(); ++entry) {
        const int s = static_cast<int>(entry) % shape.stages;
        PlanStage stage;
        stage.first_layer = entry == 0 ? 0 : ends[entry - 1];
        stage.end_layer = ends[entry];
        stage.recompute = shape.recompute;
        put(stage, shape.family->groups[static_cast<size_t>(shape.group(d, s))]);
        busy_s[static_cast<size_t>(s)] += sums(shape, pattern.types[static_cast<size_t>(s)])
                                              ->compute_s_of(stage.first_layer, stage.end_layer);
        plan.pipelines[static_cast<size_t>(d)].stages.push_back(std::move(stage));
      }
      step_s[static_cast<size_t>(d)] = *std::max_element(busy_s.begin(), busy_s.end());
    }
  }
  const int round = shape.interleave > 1 ? shape.stages : 1;
  const std::vector<int> shares =
      shares_by_speed(num_microbatches(plan.global_batch, plan.microbatch) / round, step_s);
  for (size_t d = 0; d < shares.size(); ++d) plan.pipelines[d].microbatches = shares[d] * round;
  return plan;
}

}  // namespace sailor::bench
