// A decoder-only transformer, described by data: its sizes, and the choices in which model families differ.
//
// A family (model_family.h) sets the choices that its models have in common; a job spec without a family sets
// them itself. Everything that computes with a model (trainer, planner, exports) reads them here and never
// asks for the family. Plain value type.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "planner/spec/replica_shape.h"

namespace sailor {

enum class Norm { layer, rms, zero_centred_rms };  // the last multiplies by 1 + weight
// Norms of attention and MLP: of what they read, of what they add to the residual stream, or both.
enum class NormPlace { before, after, both };
enum class PositionEmbedding { learned, rotary };
enum class RotaryScaling { none, linear, dynamic, llama3, yarn };
// Norms of queries and keys: one weight for all heads, each head alone, or one norm over all heads together.
enum class QkNorm { none, heads, projection };
enum class Activation { gelu, gelu_tanh, silu, relu };

// The words of an enumeration in files, by its values.
const std::vector<std::string>& words_of(Norm);
const std::vector<std::string>& words_of(NormPlace);
const std::vector<std::string>& words_of(PositionEmbedding);
const std::vector<std::string>& words_of(RotaryScaling);
const std::vector<std::string>& words_of(QkNorm);
const std::vector<std::string>& words_of(Activation);
template <class Choice>
const std::string& word_of(Choice choice) {
  return words_of(choice)[static_cast<size_t>(choice)];
}

// Layer indices everywhere in the project: 0 = embedding, 1..layers = blocks, layers + 1 = final norm and
// head. The defaults of choices are those of GPT-2.
struct ModelSpec {
  std::string name;    // label in plans and tables; by default FAMILY-LAYERSxHIDDEN
  std::string family;  // a line in planner/spec/families/families.h, or unknown
  int layers = 0;      // transformer blocks
  int hidden = 0;
  int heads = 0;
  int feed_forward = 0;  // inner width of the MLP; 4 x hidden by default
  int sequence = 0;      // tokens per sequence
  int vocabulary = 0;    // vocabulary size, before padding

  int kv_heads = 0;   // key and value heads; 0 = heads
  int head_size = 0;  // 0 = hidden / heads
  // Rows of a learned position embedding, or the longest sequence that a model with rotary positions was made
  // for; 0 = sequence.
  int positions = 0;
  int unused_positions = 0;           // rows of a learned position embedding before the first token's
  int attention_window = 0;           // tokens that a token attends to in local blocks; 0 = all
  std::string window_pattern = "GL";  // G global, L local, for block after block, over and over
  bool tied_embeddings = false;       // the head shares the matrix of the token embedding

  Norm norm = Norm::layer;
  NormPlace norm_place = NormPlace::before;
  double norm_epsilon = 1e-5;
  bool parallel_residual = false;  // attention and MLP of a block have the same input
  bool shared_norm = false;        // with a parallel residual: and the same norm

  PositionEmbedding position_embedding = PositionEmbedding::learned;
  double rotary_base = 10'000;
  double local_rotary_base = 0;     // of local blocks, whose embeddings are not scaled; 0 = as in the others
  double rotary_fraction = 1;       // fraction of a head with rotary embeddings
  bool rotary_interleaved = false;  // elements 2 i and 2 i + 1 are a pair, instead of i and i + half
  RotaryScaling rotary_scaling = RotaryScaling::none;
  double rotary_factor = 1;
  int rotary_original_positions = 0;   // before scaling; 0 = position_rows()
  double rotary_low_frequency = 1;     // llama3: wavelengths above original / this are divided by the factor
  double rotary_high_frequency = 4;    // llama3: those below original / this are not
  double rotary_attention_factor = 0;  // yarn: of cosine and sine; 0 = 1 + ln(factor) / 10
  double rotary_fast_rotations = 32;   // yarn: elements with more in the original length are not scaled
  double rotary_slow_rotations = 1;    // yarn: elements with fewer are divided by the factor
  bool rotary_whole_limits = true;     // yarn: these limits are rounded to whole elements

  QkNorm qk_norm = QkNorm::none;
  bool qkv_bias = true;
  bool proj_bias = true;          // of the projection of attention back to `hidden`
  double attention_scale = 0;     // of scores; 0 = 1 / sqrt(head size)
  double attention_soft_cap = 0;  // scores are c tanh(score / c); 0 = they are not
  bool gated_mlp = false;         // activation(gate) * up, not activation(up)
  Activation activation = Activation::gelu_tanh;
  bool mlp_bias = true;

  double embedding_scale = 1;  // 0 = the root of hidden
  double residual_scale = 1;   // of what attention and MLP add to the residual stream
  double logit_scale = 1;
  double logit_soft_cap = 0;  // 0 = none

  double dropout = 0;  // dropout probability of embedding, attention output and MLP output
  // Model directory with the initial weights, as a path that can be opened; empty = random weights.
  std::string from{};

  int num_all_layers() const { return layers + 2; }
  int key_value_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  int head_width() const { return head_size > 0 ? head_size : heads > 0 ? hidden / heads : 0; }
  int rotated_elements() const { return static_cast<int>(head_width() * rotary_fraction); }  // of a head
  int position_rows() const { return positions > 0 ? positions : sequence; }
  int original_positions() const {
    return rotary_original_positions > 0 ? rotary_original_positions : position_rows();
  }
  bool learned_positions() const { return position_embedding == PositionEmbedding::learned; }
  double score_scale() const {
    return attention_scale > 0 ? attention_scale : 1 / std::sqrt(static_cast<double>(head_width()));
  }
  double token_scale() const {
    return embedding_scale > 0 ? embedding_scale : std::sqrt(static_cast<double>(hidden));
  }
  // Is this layer a block whose tokens attend to the last `attention_window` ones only?
  bool attends_locally(int layer) const {
    return attention_window > 0 && layer > 0 && layer <= layers && !window_pattern.empty() &&
           window_pattern[static_cast<size_t>(layer - 1) % window_pattern.size()] == 'L';
  }
  // Some blocks are local and some are not, if there are enough of them.
  bool mixes_local_blocks() const {
    return attention_window > 0 && window_pattern.find('L') != std::string::npos &&
           window_pattern.find('G') != std::string::npos;
  }
  // Can every block be split over the GPUs of this replica?
  bool splits_over(ReplicaShape replica) const {
    return heads > 0 && heads % replica.tp == 0 && key_value_heads() % replica.tp == 0 &&
           feed_forward % replica.tp == 0;
  }
  // Attention splits the heads over this many of a replica's GPUs: over those of a TP group, and over groups
  // as far as there are heads of keys and values. Over the other factor, the ring degree, it splits the
  // tokens of each head (trainer/model/ring_attention.h). A norm over all heads leaves them together.
  int head_parts(ReplicaShape replica) const {
    for (int groups = qk_norm == QkNorm::projection ? 1 : replica.cp; groups > 1; --groups) {
      const int parts = replica.tp * groups;
      if (replica.cp % groups == 0 && heads % parts == 0 && key_value_heads() % parts == 0) return parts;
    }
    return replica.tp;
  }
  int ring_degree(ReplicaShape replica) const { return replica.gpus() / head_parts(replica); }

  bool operator==(const ModelSpec&) const = default;
};

}  // namespace sailor
