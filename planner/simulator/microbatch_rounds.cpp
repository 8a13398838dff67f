#include "planner/simulator/microbatch_rounds.h"

#include <algorithm>

namespace sailor::native {
namespace {

// With sequence parallelism the ranks of a TP group sum replicated parameters before each round. So those
// that had the first shares of the round before wait for those that had the last, and do not send their first
// parts meanwhile (MeshSums::Bucket::later_s). On processors about half of that is seen: ranks are not quite
// aligned.
constexpr double kAlignedTurns = 0.5;

std::vector<std::vector<RoundTimes>> by_stage(const CompactPlan& plan, const PlanClasses& classes) {
  std::vector<std::vector<RoundTimes>> out;
  for (const PipelineClass& of : classes.pipelines) out.emplace_back(plan.of(of.pipeline).size());
  return out;
}

double reduced_s(const RoundTimes& times) {
  double sum_s = 0;
  for (const LayerRound& layer : times.layers) sum_s += layer.reduce_s;
  return sum_s;
}

// Other frameworks that share gradients do so for every plan.
bool is_ours(const FrameworkStyle& style) {
  return style.zero == Zero::none;
}

// The rounds of our trainer. Exchanges begin when all stages that compute the microbatch are there; those
// without a microbatch in the round take part before that.
class Lockstep {
 public:
  explicit Lockstep(const std::vector<RoundStage>& stages)
      : stages_(stages), layers_(stages.front().layers.size()), there_s_(layers_), progress_(stages.size()) {
    int64_t most = 1, least = stages.front().microbatches;
    for (const RoundStage& stage : stages) {
      most = std::max<int64_t>(most, stage.microbatches);
      least = std::min<int64_t>(least, stage.microbatches);
    }
    rounds_ = std::min(most, std::max(kRounds, kLeastMicrobatches * most / least));
    for (size_t s = 0; s < stages.size(); ++s)
      progress_[s].microbatches = std::max<int64_t>(1, (stages[s].microbatches * rounds_ + most / 2) / most);
    for (size_t l = 0; l < layers_; ++l) {
      LayerRound slowest;
      for (const RoundStage& stage : stages) {
        slowest.gather_s = std::max(slowest.gather_s, stage.times.layers[l].gather_s);
        slowest.reduce_s = std::max(slowest.reduce_s, stage.times.layers[l].reduce_s);
      }
      exchanges_.push_back(slowest);
    }
  }

  // `least`: the part of what is exchanged that delays a stage in any case.
  std::vector<RoundDelays> delays(double least) {
    for (int64_t round = 0; round < rounds_; ++round) {
      active_.clear();
      for (size_t s = 0; s < progress_.size(); ++s)
        if ((round + 1) * progress_[s].microbatches / rounds_ > round * progress_[s].microbatches / rounds_)
          active_.push_back(s);
      if (!active_.empty()) pass(round == 0);
    }
    std::vector<RoundDelays> out;
    for (const Stage& stage : progress_) {
      const auto microbatches = static_cast<double>(stage.microbatches);
      const auto mean = [&](double waited_s, double exchanged_s) {
        return std::max(waited_s, least * exchanged_s) / microbatches;
      };
      out.push_back({mean(stage.forward.waited_s, stage.forward.exchanged_s),
                     mean(stage.backward.waited_s, stage.backward.exchanged_s)});
    }
    return out;
  }

 private:
  // Of more the mean is as good: rounds, and microbatches of the stage that has the fewest.
  static constexpr int64_t kRounds = 24, kLeastMicrobatches = 8;

  struct Sum {
    double waited_s = 0, exchanged_s = 0;
  };
  struct Stage {
    int64_t microbatches = 1;
    double now_s = 0;
    Sum forward, backward;
  };

  void pass(bool first) {
    if (first) gather(0, &Stage::forward);
    for (size_t l = 0; l < layers_; ++l) {
      wait_for(l, &Stage::forward);
      if (l + 1 < layers_ && (l > 0 || first)) gather(l + 1, &Stage::forward);
      for (const size_t s : active_) progress_[s].now_s += stages_[s].layers[l].forward_s;
    }
    for (size_t l = layers_; l-- > 0;) {
      wait_for(l, &Stage::backward);
      if (l > 0 && l + 1 < layers_) gather(l - 1, &Stage::backward);
      for (const size_t s : active_) {
        const LayerWork& work = stages_[s].layers[l];
        progress_[s].now_s += work.backward_s;
        wait(progress_[s], std::max(progress_[s].now_s, summed_s_) + work.token_sum_s, progress_[s].backward);
      }
      summed_s_ = exchange(exchanges_[l].reduce_s, &Stage::backward);
    }
  }

  void gather(size_t layer, Sum Stage::*pass) {
    const double gather_s = exchanges_[layer].gather_s;
    if (gather_s > 0) there_s_[layer] = exchange(gather_s, pass);
  }

  void wait_for(size_t layer, Sum Stage::*pass) {
    for (const size_t s : active_) wait(progress_[s], there_s_[layer], progress_[s].*pass);
  }

  static void wait(Stage& stage, double until_s, Sum& sum) {
    sum.waited_s += std::max(0.0, until_s - stage.now_s);
    stage.now_s = std::max(stage.now_s, until_s);
  }

  // Returns when it ends.
  double exchange(double exchange_s, Sum Stage::*pass) {
    for (const size_t s : active_) {
      end_s_ = std::max(end_s_, progress_[s].now_s);
      (progress_[s].*pass).exchanged_s += exchange_s;
    }
    return end_s_ += exchange_s;
  }

  const std::vector<RoundStage>& stages_;
  const size_t layers_;
  std::vector<LayerRound> exchanges_;  // by layer
  int64_t rounds_ = 1;
  std::vector<size_t> active_;   // stages with a microbatch in this round
  std::vector<double> there_s_;  // when the newest gather of a layer ends
  std::vector<Stage> progress_;
  double end_s_ = 0;     // of the newest exchange
  double summed_s_ = 0;  // of the newest reduction
};

// Every layer is gathered again, and a reduction ends with its backward.
RoundDelays whole_delays(const RoundStage& stage, double rounds, double least, bool overlapped) {
  double gathered_s = 0, forward_s = 0, backward_s = 0;
  for (const LayerRound& layer : stage.times.layers) gathered_s += layer.gather_s;
  for (const LayerWork& layer : stage.layers) {
    forward_s += layer.forward_s;
    backward_s += layer.backward_s;
  }
  const auto delay_s = [&](double moved_s, double computed_s) {
    moved_s *= rounds;
    return overlapped ? std::max({0.0, moved_s * least, moved_s - computed_s}) : moved_s;
  };
  return {delay_s(gathered_s, forward_s), delay_s(gathered_s + reduced_s(stage.times), backward_s)};
}

}  // namespace

std::vector<std::vector<RoundTimes>> ring_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups,
                                                 const std::vector<SyncTimes>& times, StageKinds& kinds,
                                                 Zero zero) {
  std::vector<std::vector<RoundTimes>> out = by_stage(plan, classes);
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t c = 0; c < out.size(); ++c) {
      const auto stage = static_cast<size_t>(groups[g].stage_of[c]);
      const int kind = plan.of(classes.pipelines[c].pipeline)[stage].kind;
      const double all = kinds.parameters(kind, groups[g].first_layer, groups[g].end_layer);
      for (int layer = groups[g].first_layer; layer < groups[g].end_layer; ++layer) {
        const double part = all > 0 ? kinds.parameters(kind, layer, layer + 1) / all : 0;
        out[c][stage].layers.push_back(
            {zero >= Zero::parameters ? part * times[g].gather_s : 0, part * times[g].reduce_s});
      }
    }
  return out;
}

std::vector<std::vector<RoundTimes>> mesh_rounds(const CompactPlan& plan, const PlanClasses& classes,
                                                 const std::vector<LayerGroup>& groups, const MeshSums& sums,
                                                 Zero zero, double weight_bytes_per_gradient_byte,
                                                 const std::vector<double>& computation_s) {
  std::vector<std::vector<RoundTimes>> out = by_stage(plan, classes);
  const auto zero_groups = static_cast<size_t>(num_zero_groups(plan));
  std::vector<double> card_s(classes.nodes.size() * zero_groups, 0);  // by node, then group of pipelines
  const auto group_of = [&](int rank) {
    const auto c = static_cast<size_t>(classes.pipeline_of_rank[static_cast<size_t>(rank)]);
    return static_cast<size_t>(zero_group_of(plan, classes.pipelines[c].pipeline));
  };
  std::vector<std::vector<std::vector<double>>> in_turns_s;  // as `out`, by layer
  for (const std::vector<RoundTimes>& stages : out) in_turns_s.emplace_back(stages.size());
  for (size_t b = sums.buckets.size(); b-- > 0;) {  // from the first layer up
    const MeshSums::Bucket& bucket = sums.buckets[b];
    double slowest_s = 0, first_s = 0;
    for (const MeshSums::Member& member : sums.of(bucket)) {
      slowest_s = std::max(slowest_s, member.port_s);
      first_s = std::max({first_s, member.port_s * member.first, member.card_first_s});
      card_s[static_cast<size_t>(member.node) * zero_groups + group_of(member.rank)] +=
          member.count * member.card_s;
    }
    const std::vector<int>& stage_of = groups[static_cast<size_t>(bucket.group)].stage_of;
    for (size_t c = 0; c < out.size(); ++c) {
      const auto stage = static_cast<size_t>(stage_of[c]);
      out[c][stage].layers.push_back({0, slowest_s + bucket.latency_s});
      in_turns_s[c][stage].push_back(first_s + bucket.later_s + bucket.latency_s);
    }
  }
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t c = 0; c < out.size(); ++c)
      out[c][static_cast<size_t>(groups[g].stage_of[c])].processor_s += sums.processor_s[g];
  // Of a round of one group on a node.
  const auto cards_s = [&](int node, size_t group) {
    const double* const of_node = card_s.data() + static_cast<size_t>(node) * zero_groups;
    double others = 0;
    for (size_t other = 0; other < zero_groups; ++other)
      if (other != group && of_node[other] > 0)
        others += of_node[other] / std::max(of_node[other], computation_s[other]);
    return of_node[group] * (1 + others);
  };
  for (size_t c = 0; c < out.size(); ++c) {
    const PipelineClass& of = classes.pipelines[c];
    const auto group = static_cast<size_t>(zero_group_of(plan, of.pipeline));
    for (size_t i = 0; i < out[c].size(); ++i) {
      const size_t rank = static_cast<size_t>(of.first_rank) + i % plan.groups(of.pipeline);
      RoundTimes& times = out[c][i];
      const double alone_s = reduced_s(times);
      double slower = 1;
      for (const auto& [node, count] : classes.nodes_of_rank[rank])
        if (alone_s > 0) slower = std::max(slower, cards_s(node, group) / plan.interleave / alone_s);
      for (size_t l = 0; l < times.layers.size(); ++l) {
        LayerRound& layer = times.layers[l];
        layer.reduce_s *= slower;
        if (plan.sequence_parallel)
          layer.reduce_s += kAlignedTurns * std::max(0.0, in_turns_s[c][i][l] - layer.reduce_s);
        if (zero >= Zero::parameters) layer.gather_s = weight_bytes_per_gradient_byte * layer.reduce_s;
      }
    }
  }
  return out;
}

std::vector<LayerWork> layer_work(const CompactStage& stage, const KindTimes& times, double jitter,
                                  StageKinds& kinds, bool splits_tokens) {
  std::vector<LayerWork> layers;
  for (int layer = stage.first_layer; layer < stage.end_layer; ++layer) {
    const StageRecompute recompute = stage.recompute.of_block(layer - std::max(stage.first_layer, 1));
    layers.push_back({jitter * times.forward(layer, layer + 1),
                      jitter * times.backward(recompute, layer, layer + 1),
                      splits_tokens ? kinds.token_sum_s(stage.kind, layer) : 0});
  }
  return layers;
}

void leave_out_tied(const CompactStage& stage, const StageKinds& kinds, RoundTimes& times) {
  if (!is_ours(kinds.context().framework)) return;
  const std::vector<LayerSizes>& sizes = *kinds[stage.kind].sizes;
  const auto tied = static_cast<double>(sizes.back().tied_parameters);
  const auto leave_out = [&](LayerRound& round, const LayerSizes& layer) {
    if (layer.parameters <= 0) return;
    const double part = std::min(1.0, tied / static_cast<double>(layer.parameters));
    times.tied_s = std::max(times.tied_s, part * round.reduce_s);
    round = {round.gather_s * (1 - part), round.reduce_s * (1 - part)};
  };
  if (stage.first_layer == 0) leave_out(times.layers.front(), sizes.front());
  if (stage.end_layer == static_cast<int>(sizes.size())) leave_out(times.layers.back(), sizes.back());
}

std::vector<RoundDelays> round_delays(const std::vector<RoundStage>& stages, const FrameworkStyle& style) {
  const bool overlapped = style.gradient_sync == FrameworkStyle::Sync::overlapped;
  // Over a mesh the processors' part is known, and nothing else is in the way.
  const double least = style.sums == FrameworkStyle::Sums::mesh ? 0 : 1 - style.overlap;
  const bool lockstep = overlapped && is_ours(style);
  std::vector<RoundDelays> out(stages.size());
  if (lockstep) out = Lockstep(stages).delays(least);
  double most = 1;
  for (const RoundStage& stage : stages) most = std::max<double>(most, stage.microbatches);
  for (size_t s = 0; s < stages.size(); ++s) {
    const double rounds = most / stages[s].microbatches;
    if (!lockstep) out[s] = whole_delays(stages[s], rounds, least, overlapped);
    out[s].backward_s += rounds * stages[s].times.processor_s;
  }
  return out;
}

RoundDelays delays_alone(RoundStage stage, double rounds, const FrameworkStyle& style) {
  const RoundDelays own = round_delays({stage}, style).front();
  if (rounds <= 1) return own;
  LayerWork computed;
  for (const LayerWork& layer : stage.layers) {
    computed.forward_s += layer.forward_s;
    computed.backward_s += layer.backward_s;
  }
  for (LayerRound& layer : stage.times.layers) layer = {layer.gather_s * rounds, layer.reduce_s * rounds};
  stage.times.processor_s *= rounds;
  const RoundDelays all = round_delays({std::move(stage)}, style).front();
  const auto least = [&](double all_s, double own_s, double computed_s) {
    return std::min(all_s, rounds * (computed_s + own_s) - computed_s);
  };
  return {least(all.forward_s, own.forward_s, computed.forward_s),
          least(all.backward_s, own.backward_s, computed.backward_s)};
}

}  // namespace sailor::native
