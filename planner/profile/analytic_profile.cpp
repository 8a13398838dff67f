#include "planner/profile/analytic_profile.h"

#include <algorithm>
#include <cmath>

namespace sailor {
namespace {

// Element-wise work that embeddings do, in passes over tokens x hidden: a gather, a sum, dropout.
constexpr double kEmbeddingForwardPasses = 6.5, kEmbeddingBackwardPasses = 5.5;
// A fused attention's backward computes its forward again and four products instead of two.
constexpr double kFusedBackward = 2.5;

// Device and host work at the same time, and the slower one is the pace; near each other they delay one
// another a little.
double together_s(double device_s, double host_s) {
  const double most = std::fmax(device_s, host_s);
  if (most <= 0) return 0;
  return most * std::pow(std::pow(device_s / most, 4) + std::pow(host_s / most, 4), 0.25);
}

struct Pass {
  double forward_s = 0, backward_s = 0;

  void operator+=(const Pass& other) {
    forward_s += other.forward_s;
    backward_s += other.backward_s;
  }
};

class Estimate {
 public:
  // `shape` may be that of some blocks only.
  Estimate(const AnalyticInput& input, const TransformerShape& shape)
      : in_(input),
        shape_(shape),
        tp_(input.tp.ranks),
        tokens_(static_cast<double>(input.microbatch) * shape.sequence),
        element_(element_bytes(input.precision)) {}

  LayerTimes block() const {
    const TransformerShape& s = shape_;
    const double h = s.hidden, attention = static_cast<double>(s.heads) * s.head_width / tp_,
                 kv = static_cast<double>(s.kv_heads) * s.head_width / tp_,
                 inner = static_cast<double>(s.feed_forward) / tp_;
    Pass device = linear(attention + 2 * kv, h);
    device += linear(h, attention);
    device += linear(s.gated_mlp ? 2 * inner : inner, h);
    device += linear(h, inner);
    const Pass scores = attention_kernels();
    device += scores;
    const FrameworkStyle& style = in_.style;
    const double whole = between_regions() * h, split = tokens_ * h / tp_;
    device.forward_s += stream_s(whole * style.whole_forward_passes + split * style.split_forward_passes);
    device.backward_s += stream_s(whole * style.whole_backward_passes + split * style.split_backward_passes) +
                         accumulate_s(static_cast<double>(s.block_parameters()) / tp_);
    const double reduced_s = all_reduce(tokens_ * h);
    device.forward_s += style.collectives_per_pass * reduced_s;
    device.backward_s += style.collectives_per_pass * reduced_s + extra_gathers() * reduced_s / 2;
    const double host_s = in_.host.pass_s(tp_);
    LayerTimes times{together_s(device.forward_s, host_s), together_s(device.backward_s, host_s),
                     update_s(static_cast<double>(s.block_parameters()) / tp_), scores.forward_s};
    // Norms and the activation function read and write what they did; gathered tokens are gathered again.
    times.light_s = stream_s(between_regions() * h * 2 * s.input_norms) +
                    stream_s(tokens_ * (s.gated_mlp ? 3 : 2) * inner);
    times.mlp_s = times.light_s + linear(s.gated_mlp ? 2 * inner : inner, h).forward_s +
                  (style.sequence_parallel ? reduced_s / 2 : 0);
    if (style.split_backward && device.backward_s > 0) {
      // With the gathers of the inputs of the column-parallel products.
      const double weights_s =
          weight_gradients(attention + 2 * kv, h) + weight_gradients(h, attention) +
          weight_gradients(s.gated_mlp ? 2 * inner : inner, h) + weight_gradients(h, inner) +
          accumulate_s(static_cast<double>(s.block_parameters()) / tp_) + extra_gathers() * reduced_s / 2;
      times.weight_s = weights_s * times.backward_s / device.backward_s;
    }
    return times;
  }

  LayerTimes embedding() const {
    const double elements = between_regions() * shape_.hidden;
    const double parameters = static_cast<double>(shape_.embedding_parameters()) / tp_;
    const double reduced_s = all_reduce(tokens_ * shape_.hidden);
    // A sum over the ranks; where tokens are split, its scatter, and the gather of the gradient.
    const double scattered_s = in_.style.sequence_parallel ? reduced_s / 2 : 0;
    return {stream_s(elements * kEmbeddingForwardPasses) + reduced_s - scattered_s,
            stream_s(elements * kEmbeddingBackwardPasses) + accumulate_s(parameters) + scattered_s,
            update_s(parameters), 0};
  }

  LayerTimes head() const {
    const TransformerShape& s = shape_;
    const double rows = static_cast<double>(padded_vocabulary(s, in_.style, tp_)) / tp_;
    Pass pass = linear(rows, s.hidden);
    const double logits = tokens_ * rows, elements = between_regions() * s.hidden;
    pass.forward_s += stream_s(logits * in_.style.logit_forward_passes + 2 * elements);
    pass.backward_s += stream_s(logits * in_.style.logit_backward_passes + 4 * elements);
    const double parameters = rows * s.hidden;
    const double reduced_s = all_reduce(tokens_ * s.hidden);
    // A sum of the input's gradient; where tokens are split, the gather of the input, and the scatter of the
    // gradient.
    const double scattered_s = in_.style.sequence_parallel ? reduced_s / 2 : 0;
    pass.forward_s += scattered_s;
    pass.backward_s +=
        accumulate_s(parameters) + reduced_s - scattered_s + extra_gathers() / 2 * reduced_s / 2;
    // The loss needs the largest logit, the sum and the target's logit of all ranks.
    pass.forward_s += 3 * all_reduce(2 * tokens_);
    return {pass.forward_s, pass.backward_s, s.tied_embeddings ? 0 : update_s(parameters), 0};
  }

 private:
  // Tokens that a rank has between the tensor-parallel regions.
  double between_regions() const { return tokens_ / (in_.style.sequence_parallel ? tp_ : 1); }
  // Repeated gathers of the inputs of a block's two column-parallel products.
  double extra_gathers() const { return in_.style.sequence_parallel ? in_.style.backward_extra_gathers : 0; }
  // tokens x `from` times `from` x `to`; backward for the input and for the weights.
  Pass linear(double to, double from) const {
    const KernelModel& k = in_.kernels;
    return {k.gemm_s(tokens_, to, from), k.gemm_s(tokens_, from, to) + k.gemm_s(from, to, tokens_)};
  }

  double weight_gradients(double to, double from) const { return in_.kernels.gemm_s(from, to, tokens_); }

  Pass attention_kernels() const {
    const TransformerShape& s = shape_;
    const KernelModel& k = in_.kernels;
    const double batch = static_cast<double>(in_.microbatch) * s.heads / tp_, n = s.sequence, keys = s.keys(),
                 d = s.head_width;
    if (in_.style.attention == FrameworkStyle::Attention::fused && !s.soft_capped) {
      // Causal: each query attends to what is before it, up to the span.
      const double forward_s = k.fused_attention_s(4 * batch * d * (n * keys - keys * keys / 2));
      return {forward_s, kFusedBackward * forward_s};
    }
    // A span shorter than the sequence is worked off in windows of that length.
    const double windows = batch * n / keys;
    const double products_s = k.gemm_s(keys, keys, d, windows) + k.gemm_s(keys, d, keys, windows);
    const double scores = windows * keys * keys;
    return {products_s + stream_s(scores * in_.style.score_forward_passes),
            2 * products_s + stream_s(scores * in_.style.score_backward_passes)};
  }

  double stream_s(double elements) const { return in_.kernels.stream_s(elements * element_); }
  double accumulate_s(double parameters) const {
    return in_.kernels.stream_s(parameters * in_.style.accumulate_bytes);
  }
  double update_s(double parameters) const {
    return in_.kernels.stream_s(parameters * in_.style.optimizer_traffic_bytes);
  }
  double all_reduce(double elements) const {
    return tp_ > 1 ? in_.collective_start_s + ring_all_reduce_s(in_.tp, elements * element_) : 0;
  }

  const AnalyticInput& in_;
  const TransformerShape& shape_;
  int tp_;
  double tokens_;
  double element_;
};

int64_t rounded(double value) {
  return static_cast<int64_t>(std::llround(value));
}

}  // namespace

int64_t padded_vocabulary(const TransformerShape& shape, const FrameworkStyle& style, int tp) {
  const int64_t multiple = int64_t{style.vocabulary_multiple} * tp;
  return (shape.vocabulary + multiple - 1) / multiple * multiple;
}

LayerProfile::Cell analytic_times(const AnalyticInput& input) {
  const Estimate estimate(input, input.shape);
  LayerProfile::Cell cell(static_cast<size_t>(input.shape.num_all_layers()), estimate.block());
  for (const OtherBlocks& other : input.shape.other_blocks) {
    const TransformerShape shape = input.shape.of_block(other.first);
    const LayerTimes times = Estimate(input, shape).block();
    for (int block = other.first; block < other.end; ++block) cell[static_cast<size_t>(block) + 1] = times;
  }
  cell.front() = estimate.embedding();
  cell.back() = estimate.head();
  return cell;
}

namespace {

LayerSizes block_sizes(const TransformerShape& shape, const FrameworkStyle& style, Precision precision,
                       int tp) {
  const double element = element_bytes(precision);
  // The style's bytes are those of 16-bit training.
  const double scale = element / 2;
  const double h = shape.hidden, n = shape.sequence, t = tp;
  const double attention = static_cast<double>(shape.heads) * shape.head_width,
               kv = static_cast<double>(shape.kv_heads) * shape.head_width, inner = shape.feed_forward;
  const double whole_share = style.sequence_parallel ? 1 / t : 1;
  const double score_elements = style.attention == FrameworkStyle::Attention::unfused
                                    ? static_cast<double>(shape.heads) * n * shape.keys() / t
                                    : 0;
  LayerSizes block;
  // Norms and what is added to the result of a row-split product are whole on every rank.
  const auto whole_parameters = static_cast<double>(shape.whole_block_parameters());
  block.parameters =
      rounded((static_cast<double>(shape.block_parameters()) - whole_parameters) / t + whole_parameters);
  block.output_elements = rounded(h * n);
  const double mlp = shape.gated_mlp ? 8 * inner : 4 * inner;  // inputs and outputs of the activation, 16 bit
  const double kept = n * scale *
                      ((style.norm_bytes + style.dropout_bytes + style.residual_bytes) * h * whole_share +
                       (2 * (attention + 2 * kv) + 2 * attention + mlp + style.qkv_copy_bytes * h) / t);
  block.activation_bytes = rounded(kept + score_elements * style.score_bytes * scale);
  block.selective_bytes = rounded(kept);
  if (style.recompute_parts) {
    // The results of the norms that products read, and of the activation function; and what that one reads.
    const double light = n * scale * (2 * shape.input_norms * h * whole_share + 2 * inner / t);
    block.light_bytes = rounded(static_cast<double>(block.activation_bytes) - light);
    const double first = n * scale * 2 * (shape.gated_mlp ? 2 * inner : inner) / t;
    block.mlp_bytes = rounded(static_cast<double>(block.activation_bytes) - light - first);
  }
  // Inputs of products, of which a rank keeps its share, and the gradients of their results.
  if (style.split_backward)
    block.pending_bytes = rounded(
        n * element *
        (h * (2 + 2 * whole_share) + (2 * attention + 2 * kv + (shape.gated_mlp ? 3 : 2) * inner) / t));
  block.checkpoint_bytes = rounded(n * h * element * whole_share);
  block.workspace_bytes = rounded(score_elements * style.score_workspace_bytes * scale);
  block.persistent_bytes = rounded(score_elements * style.persistent_score_bytes * scale);
  return block;
}

}  // namespace

std::vector<LayerSizes> analytic_sizes(const TransformerShape& shape, const FrameworkStyle& style,
                                       Precision precision, ReplicaShape replica) {
  const int tp = replica.tp;
  const double scale = element_bytes(precision) / 2.0;
  const double h = shape.hidden, n = shape.sequence, t = tp;
  const double whole_share = style.sequence_parallel ? 1 / t : 1;
  const LayerSizes block = block_sizes(shape, style, precision, tp);
  const double rows = static_cast<double>(padded_vocabulary(shape, style, tp));
  LayerSizes embedding = block;
  embedding.parameters = rounded(rows * h / t + static_cast<double>(shape.learned_rows()) * h);
  embedding.activation_bytes = embedding.selective_bytes = embedding.light_bytes = embedding.mlp_bytes = 0;
  embedding.pending_bytes = 0;
  embedding.checkpoint_bytes = embedding.workspace_bytes = embedding.persistent_bytes = 0;

  LayerSizes head = embedding;
  const bool owns_matrix = !shape.tied_embeddings || style.tied_head_copy;
  head.parameters =
      rounded((owns_matrix ? rows * h / t : 0) + static_cast<double>(shape.head_norm_parameters()));
  head.tied_parameters = shape.tied_embeddings && owns_matrix ? rounded(rows * h / t) : 0;
  head.output_elements = rounded(rows * n);
  const double logits = n * rows / t;
  head.workspace_bytes =
      rounded(logits * style.logit_bytes * scale + n * h * style.head_norm_bytes * scale * whole_share);
  head.persistent_bytes = rounded(logits * style.logit_leftover_bytes * scale);
  std::vector<LayerSizes> sizes(static_cast<size_t>(shape.num_all_layers()), block);
  for (const OtherBlocks& other : shape.other_blocks)
    std::fill(sizes.begin() + other.first + 1, sizes.begin() + other.end + 1,
              block_sizes(shape.of_block(other.first), style, precision, tp));
  sizes.front() = embedding;
  sizes.back() = head;
  return sizes;
}

HostTimes host_times(const FrameworkStyle& style) {
  return {style.host_block_s, style.host_tp_block_s, style.host_tp_rank_s};
}

PlatformOverheads overheads_of(const FrameworkStyle& style, PlatformOverheads machines) {
  machines.base_memory_bytes += static_cast<int64_t>(style.base_memory_bytes);
  machines.jitter += style.jitter;
  machines.sync_slowdown *= style.sync_slowdown;
  return machines;
}

}  // namespace sailor
