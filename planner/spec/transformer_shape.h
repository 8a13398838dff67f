// The shape of a decoder-only transformer: what determines time and memory, for every framework. Plain value
// type.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/spec/field.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// Blocks [first, end), counted from 0, that differ from the others.
struct OtherBlocks {
  int first = 0, end = 0;
  int hidden = 0, heads = 0, head_width = 0, feed_forward = 0, sequence = 0, attention_span = 0;
};

struct TransformerShape {
  int layers = 0;  // transformer blocks
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;               // key and value heads; fewer than `heads` in grouped-query attention
  int head_width = 0;             // hidden / heads unless a model overrides it
  int feed_forward = 0;           // inner width of the MLP
  int sequence = 0;               // tokens per sequence
  int position_rows = 0;          // of a learned position embedding; 0 = sequence
  int attention_span = 0;         // maximum keys that a query attends to; 0 = the whole sequence
  int vocabulary = 0;             // rows of the embedding as trained, padding included
  bool gated_mlp = false;         // two input projections (SwiGLU), not one
  bool tied_embeddings = false;   // the head uses the embedding's matrix
  bool learned_positions = true;  // a position embedding of `sequence` rows
  bool biases = true;             // linear layers have biases, norms have a shift, but for these:
  bool qkv_biases = true;         // of the projections to queries, keys and values
  bool proj_biases = true;        // of the projection of attention back to `hidden`
  bool mlp_biases = true;
  bool norm_biases = true;             // the shift of norms
  int norms = 2;                       // of `hidden` elements in a block
  int input_norms = 2;                 // of these: between the residual stream and a product
  int query_key_norms = 0;             // elements of the norms of queries and keys in a block
  bool split_query_key_norms = false;  // over the GPUs of a TP group
  bool soft_capped = false;            // attention scores are: no fused kernel has them

  std::vector<OtherBlocks> other_blocks;  // in ascending order

  int num_all_layers() const { return layers + 2; }
  // Rows of the position embedding, if there is one.
  int64_t learned_rows() const {
    if (!learned_positions) return 0;
    return position_rows > 0 ? position_rows : sequence;
  }
  int keys() const { return attention_span > 0 && attention_span < sequence ? attention_span : sequence; }
  // The shape in which block `block` (from 0) is an ordinary block.
  TransformerShape of_block(int block) const;

  // Elements of unsharded layers.
  int64_t block_parameters() const;
  int64_t whole_block_parameters() const;  // of these: on every GPU of a TP group
  int64_t head_norm_parameters() const { return (biases && norm_biases ? 2 : 1) * int64_t{hidden}; }
  int64_t embedding_parameters() const;
  // The final norm and, unless it is tied, the projection to the vocabulary.
  int64_t head_parameters() const;
  int64_t parameters() const {
    return embedding_parameters() + layers * block_parameters() + head_parameters();
  }
};

// Floating-point operations per trained token (Chowdhery et al. 2022, appendix B; the same count as nanoGPT's
// and Megatron's): 6 per parameter of the blocks and of the projection to the vocabulary, and 12 x heads x
// head width x keys per block for attention, without the discount for causal masks. Recomputation does not
// count.
double training_flops_per_token(const TransformerShape& shape);
double block_flops_per_token(const TransformerShape& block);

// The shape of a job's model in the trainer. Throws InputError for an unknown family.
TransformerShape shape_of(const ModelSpec& model);

// Reads a map with the members above as keys (`layers`, `hidden`, `heads`, `sequence`, `vocabulary` are
// required; `other_blocks` is a list of maps, each with `blocks: [first, end]` and all other keys). Throws
// InputError with file and line.
TransformerShape read_transformer_shape(const Field& field);

}  // namespace sailor
