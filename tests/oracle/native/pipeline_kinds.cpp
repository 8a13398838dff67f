#include "tests/oracle/native/pipeline_kinds.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "planner/simulator/native_model.h"

namespace sailor::oracle {

using bench::LayerSums;

TinyCluster::TinyCluster(const bench::Judge& judge) : context(judge.context()), modes{Recompute::none} {
  std::map<std::tuple<std::string, std::string, size_t>, int> classes;
  for (const SnapshotNode& node : context.snapshot.nodes) {
    if (node.free_gpus.empty() || !context.profiles.layers.contains(node.gpu_type)) continue;
    nodes.push_back(&node);
    const int next = static_cast<int>(classes.size());
    class_of.push_back(
        classes.try_emplace({node.gpu_type, node.zone, node.free_gpus.size()}, next).first->second);
  }
  if (judge.allowed().contains(PlanFeature::recompute)) modes.push_back(Recompute::full);
  if (judge.allowed().contains(PlanFeature::selective_recompute)) modes.push_back(Recompute::selective);
}

Plan plan_of(const TinyCluster& cluster, const PlanFrame& frame, const std::vector<const Kind*>& kinds) {
  Plan plan;
  plan.model = cluster.context.job.model.name;
  plan.global_batch = cluster.context.job.training.global_batch;
  plan.microbatch = frame.microbatch;
  plan.zero = frame.zero;
  plan.interleave = frame.interleave;
  std::vector<size_t> next(cluster.nodes.size(), 0);
  for (const Kind* kind : kinds) {
    PlanPipeline pipeline;
    pipeline.microbatches = kind->microbatches;
    for (size_t s = 0; s < kind->ends.size(); ++s) {
      PlanStage stage;
      if (s >= kind->path.size()) {
        stage = pipeline.stages[s % kind->path.size()];
      } else {
        const Step& step = kind->path[s];
        const size_t n = static_cast<size_t>(step.node);
        stage.gpu_type = cluster.nodes[n]->gpu_type;
        stage.zone = cluster.nodes[n]->zone;
        stage.node = cluster.nodes[n]->name;
        stage.shape.tp = step.tp;
        for (int i = 0; i < step.tp; ++i) stage.gpus.push_back(cluster.nodes[n]->free_gpus[next[n]++]);
      }
      stage.first_layer = s == 0 ? 0 : kind->ends[s - 1];
      stage.end_layer = kind->ends[s];
      stage.recompute = cluster.modes[static_cast<size_t>(kind->recompute[s])];
      pipeline.stages.push_back(std::move(stage));
    }
    plan.pipelines.push_back(std::move(pipeline));
  }
  plan.sequence_parallel = frame.splits_tokens && has_tensor_parallelism(plan);
  return plan;
}

KindLister::KindLister(bench::Judge& judge, const TinyCluster& cluster, const PlanFrame& frame, double best_s,
                       EnumerationLimit& limit)
    : judge_(judge),
      cluster_(cluster),
      frame_(frame),
      best_s_(best_s),
      limit_(limit),
      sums_(cluster.context) {
  rates_ = rates();
}

std::vector<Kind> KindLister::list() {
  std::vector<Step> path;
  std::vector<int> uses(cluster_.nodes.size(), 0);
  extend(path, uses);
  std::sort(kinds_.begin(), kinds_.end(), [](const Kind& a, const Kind& b) {
    return std::tie(a.signature, a.path) < std::tie(b.signature, b.path);
  });
  return std::move(kinds_);
}

double KindLister::most_of_rest(const std::vector<int>& uses, double time_s) const {
  double rate = 0;
  for (size_t n = 0; n < cluster_.nodes.size(); ++n)
    if (const int left = cluster_.free_of(n) - uses[n]; left > 0) rate += left * rates_[n];
  return rate == 0 ? 0 : rate * time_s;
}

// Microbatches per second that one GPU of each node computes at most, if every GPU computed only layers
// that it is best at, compared with the first node's.
std::vector<double> KindLister::rates() {
  std::vector<std::vector<double>> gpu_s;  // by node and layer
  for (const SnapshotNode* node : cluster_.nodes) {
    gpu_s.emplace_back(static_cast<size_t>(cluster_.layers()), kNever);
    for (int tp = 1; tp <= static_cast<int>(node->free_gpus.size()); ++tp)
      if (const LayerSums* sums =
              sums_.find(node->gpu_type, frame_.microbatch, tp, Recompute::none, frame_.splits_tokens))
        for (int l = 0; l < cluster_.layers(); ++l) {
          double& best_s = gpu_s.back()[static_cast<size_t>(l)];
          best_s = std::min(best_s, tp * sums->compute_s_of(l, l + 1));
        }
  }
  double whole_s = 0;
  for (double s : gpu_s[0]) whole_s += s;
  std::vector<double> out;
  for (const std::vector<double>& of_node : gpu_s) {
    double rate = 0;
    for (size_t l = 0; l < of_node.size(); ++l)
      if (gpu_s[0][l] > 0) rate = std::max(rate, gpu_s[0][l] / whole_s / of_node[l]);
    out.push_back(std::isfinite(whole_s) ? rate : kNever);
  }
  return out;
}

// All pipelines that begin with `path`.
void KindLister::extend(std::vector<Step>& path, std::vector<int>& uses) {
  if (limit_.over()) return;
  const int groups = static_cast<int>(path.size());
  if (groups >= (frame_.interleave > 1 ? 2 : 1)) {
    std::vector<int> ends;
    cut(path, uses, ends);
  }
  if ((groups + 1) * frame_.interleave > cluster_.layers()) return;
  for (size_t n = 0; n < cluster_.nodes.size(); ++n)
    for (int tp = 1; uses[n] + tp <= cluster_.free_of(n); ++tp) {
      if (sums_.find(cluster_.nodes[n]->gpu_type, frame_.microbatch, tp, Recompute::none,
                     frame_.splits_tokens) == nullptr ||
          cluster_.context.job.model.heads % tp != 0 || cluster_.context.job.model.feed_forward % tp != 0)
        continue;
      path.push_back({static_cast<int>(n), tp});
      uses[n] += tp;
      extend(path, uses);
      uses[n] -= tp;
      path.pop_back();
    }
}

void KindLister::cut(const std::vector<Step>& path, const std::vector<int>& uses, std::vector<int>& ends) {
  const int left = static_cast<int>(path.size()) * frame_.interleave - static_cast<int>(ends.size());
  const int first = ends.empty() ? 0 : ends.back();
  if (left == 1) {
    ends.push_back(cluster_.layers());
    std::vector<int> recompute(ends.size(), 0);
    do add_kinds(path, uses, ends, recompute);
    while (next_modes(recompute));
    ends.pop_back();
    return;
  }
  for (int end = first + 1; end + left - 1 <= cluster_.layers(); ++end) {
    ends.push_back(end);
    cut(path, uses, ends);
    ends.pop_back();
  }
}

bool KindLister::next_modes(std::vector<int>& recompute) const {
  for (int& mode : recompute) {
    if (++mode < static_cast<int>(cluster_.modes.size())) return true;
    mode = 0;
  }
  return false;
}

// The pipeline with every number of microbatches that can be part of a better plan.
void KindLister::add_kinds(const std::vector<Step>& path, const std::vector<int>& uses,
                           const std::vector<int>& ends, const std::vector<int>& recompute) {
  const size_t groups = path.size();
  std::vector<double> busy_s(groups, 0);  // of a microbatch
  for (size_t s = 0; s < ends.size(); ++s) {
    const Step& step = path[s % groups];
    const LayerSums* sums =
        sums_.find(cluster_.nodes[static_cast<size_t>(step.node)]->gpu_type, frame_.microbatch, step.tp,
                   cluster_.modes[static_cast<size_t>(recompute[s])], frame_.splits_tokens);
    busy_s[s % groups] += sums->compute_s_of(s == 0 ? 0 : ends[s - 1], ends[s]);
  }
  const int round = frame_.interleave > 1 ? static_cast<int>(groups) : 1;
  const double rest = most_of_rest(uses, best_s_);
  const int least =
      rest >= frame_.total ? 1 : std::max(1, static_cast<int>(std::ceil(frame_.total - rest - 1e-9)));
  for (int count = (least + round - 1) / round * round; count <= frame_.total; count += round) {
    // A stage begins after the forwards of those before it, and their backwards follow its last one.
    double before_s = 0, bound_s = 0;
    for (double s : busy_s) {
      bound_s = std::max(bound_s, (frame_.interleave > 1 ? 0 : before_s) + count * s);
      before_s += s;
    }
    if (bound_s >= best_s_) return;
    add_kind({path, ends, recompute, count, uses, {}, {}});
  }
}

void KindLister::add_kind(Kind kind) {
  kind.signature = {static_cast<int>(kind.path.size())};
  for (const Step& step : kind.path) {
    kind.signature.push_back(cluster_.class_of[static_cast<size_t>(step.node)]);
    kind.signature.push_back(step.tp);
  }
  kind.signature.insert(kind.signature.end(), kind.ends.begin(), kind.ends.end());
  kind.signature.insert(kind.signature.end(), kind.recompute.begin(), kind.recompute.end());
  kind.signature.push_back(kind.microbatches);
  // Alone, it is no matter which of some equal nodes it is on.
  std::vector<int> alike = kind.signature;
  for (size_t i = 0; i < kind.path.size(); ++i)
    alike.push_back(
        static_cast<int>(std::find_if(kind.path.begin(), kind.path.end(),
                                      [&](const Step& step) { return step.node == kind.path[i].node; }) -
                         kind.path.begin()));
  const auto [it, is_new] = alone_.try_emplace(std::move(alike));
  if (is_new) it->second = alone(kind);
  kind.alone = it->second;
  const bool single = kind.microbatches == frame_.total && kind.alone.fits && kind.alone.single_s < best_s_;
  const bool plain = kind.alone.fits && kind.alone.plain_s < best_s_;
  const bool sharded =
      kind.alone.fits_with(zero_degrees(judge_.allowed()).back()) && kind.alone.zero1_s < best_s_;
  if (single || (kind.microbatches < frame_.total && (plain || sharded))) kinds_.push_back(std::move(kind));
}

Alone KindLister::alone(const Kind& kind) {
  const Plan plan = plan_of(cluster_, frame_, {&kind});
  const std::optional<Prediction> profiled = judge_.prediction(plan);
  if (!profiled) return {kNever, kNever, kNever};
  const Prediction& prediction = *profiled;
  std::vector<Timeline> timelines;
  native::simulate(cluster_.context, plan, timelines);
  Alone out{prediction.iteration_s,
            prediction.iteration_s,
            prediction.pipeline_s + prediction.overhead_s,
            prediction.fits,
            true,
            true};
  for (size_t g = 0; g < kind.path.size(); ++g) {
    // Sums begin in the last backward, and a rank sums one bucket after the other.
    double begin_s = kNever, parameters = 0, update_s = 0;
    for (size_t s = g; s < kind.ends.size(); s += kind.path.size()) {
      begin_s = std::min(begin_s, timelines[0].chunk_end_s.at(s) - prediction.stages[s].backward_s);
      update_s += prediction.stages[s].update_s;
      for (int layer = s == 0 ? 0 : kind.ends[s - 1]; layer < kind.ends[s]; ++layer)
        parameters += static_cast<double>(
            cluster_.context.profiles.sizes.find({1})->at(static_cast<size_t>(layer)).parameters);
    }
    const double phase_s = phase_of_sum_s(kind, kind.path[g], parameters / kind.path[g].tp);
    const double overhead_s = prediction.overhead_s;
    out.plain_s = std::max(out.plain_s, begin_s + 2 * phase_s + update_s + overhead_s);
    out.zero1_s = std::max(out.zero1_s, begin_s + phase_s + overhead_s);
  }
  // With ZeRO as many pipelines as can be share the states.
  int others = 0;
  for (size_t n = 0; n < cluster_.nodes.size(); ++n) others += cluster_.free_of(n) - kind.uses[n];
  const int replicas = 1 + std::min(others, frame_.total - kind.microbatches);
  for (const StagePrediction& stage : prediction.stages) {
    const int64_t shared = stage.memory.optimizer_bytes + stage.memory.master_bytes;
    const auto fits = [&](int64_t bytes) {
      return stage.memory.total() - bytes + bytes / replicas <= stage.capacity_bytes;
    };
    out.fits_zero1 = out.fits_zero1 && fits(shared);
    out.fits_zero2 = out.fits_zero2 && fits(shared + stage.memory.gradients_bytes);
  }
  return out;
}

// A lower bound on the time that a rank of the stage needs to send its parts of this many parameters'
// gradients, for any other replicas.
double KindLister::phase_of_sum_s(const Kind& kind, const Step& step, double parameters) {
  const size_t at = static_cast<size_t>(step.node);
  const int beside = cluster_.free_of(at) - kind.uses[at];
  int others = 0;
  for (size_t n = 0; n < cluster_.nodes.size(); ++n) others += cluster_.free_of(n) - kind.uses[n];
  // Seconds for everything, if all of it went to the best place.
  const double bytes =
      parameters * cluster_.context.framework.sync_bytes_at(cluster_.context.job.training.precision);
  const auto seconds = [&](size_t to, bool near) {
    double least_s = kNever;
    for (int tp = 1; tp <= cluster_.free_of(to); ++tp)
      if (const LinkCurve* link = cluster_.context.profiles.network.find(
              {cluster_.nodes[at]->gpu_type, cluster_.nodes[at]->zone, step.tp},
              {cluster_.nodes[to]->gpu_type, cluster_.nodes[to]->zone, tp}, near))
        least_s = std::min(least_s, link->time_s(bytes, near ? 1 : step.tp) - link->latency_s());
    return least_s;
  };
  const double near_s = seconds(at, true);
  double far_s = kNever;
  for (size_t n = 0; n < cluster_.nodes.size(); ++n)
    if (n != at) far_s = std::min(far_s, seconds(n, false));
  double least_s = kNever;
  for (int replicas = 2; replicas <= 1 + others; ++replicas)
    for (int near = 0; near <= std::min(beside, replicas - 1); ++near) {
      const int far = replicas - 1 - near;
      least_s = std::min(
          least_s, std::max(near > 0 ? near_s * near / replicas : 0, far > 0 ? far_s * far / replicas : 0));
    }
  return least_s;
}

}  // namespace sailor::oracle
