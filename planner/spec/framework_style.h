// How a training framework executes a plan, as far as time and memory depend on it: data from a file
// (etc/frameworks), so that a framework is described, not programmed. Our own trainer is one of them. Plain
// value type.
//
//     sailor_framework: 1
//     name: NAME
//     sends: asynchronous
//     ...
// Every key is optional; the values below are the defaults. Bytes "per token and hidden" are for one sequence
// element at 16-bit precision; at another precision they scale with the size of its elements.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/transport.h"
#include "planner/spec/zero.h"

namespace sailor {

struct FrameworkStyle {
  std::string name;
  std::string file;                       // for errors and explanations
  Transport transport = Transport::nccl;  // of messages and collectives: links measured over it apply

  // --- Schedule
  enum class Sends { asynchronous, asynchronous_in_turn, blocking, blocking_in_turn };
  Sends sends = Sends::asynchronous;         // how neighbours exchange messages (simulator/schedule.h)
  int64_t buffered_message_bytes = 0;        // blocking sends of a rank end at once up to this size
  bool forwards_first_single_group = false;  // see PipelineSchedule::single_group_forwards_first
  bool partitioned_messages = true;          // every rank of a TP group sends its share of a message
  // Smaller messages are sent whole to every rank of the receiving TP group, which gathers nothing.
  int64_t whole_message_bytes = 0;
  // All-gathers of a whole message inside the TP group, per microbatch: before a stage's forward, of what it
  // received; before its backward, of the gradient it received and of what it sent.
  int forward_gathers = 0, backward_gathers = 0;

  // --- Tensor parallelism
  bool sequence_parallel = false;  // tensors that TP does not split are sharded over the sequence
  int vocabulary_multiple = 1;     // the vocabulary is padded to a multiple of this times the TP degree

  // --- Data parallelism
  // rings: along a ring through all replicas (NCCL). mesh: every replica to every other one (our trainer).
  enum class Sums { rings, mesh };
  Sums sums = Sums::rings;
  enum class Sync { after_backward, overlapped };
  Sync gradient_sync = Sync::after_backward;
  double overlap = 0;                    // fraction of an overlapped sync that the last backward can hide
  double sync_bytes = 0;                 // per parameter on the wire; 0 = those of the gradient
  int64_t sync_bucket_bytes = 32 << 20;  // gradients are reduced in buckets of this size
  double tensors_per_layer = 6;          // buckets hold whole tensors
  bool tree_sync = false;                // reduction may use trees or rings, whichever is faster
  bool zero1_all_reduce = false;   // a sharded optimizer gets complete sums, not only those of its shard
  bool gathers_by_tensor = false;  // a sharded optimizer gathers one tensor at a time, not a bucket
  bool sync_buffer = true;         // a bucket is a copy ...
  double sync_copies = 1;          // ... or several
  // a layer is not split: buckets may grow by one, and an overlapped sync hides no more than all but the last
  bool sync_whole_layers = false;

  // --- State, bytes per parameter
  double gradient_bytes = 0;       // 0 = an element of the training precision; 64-bit states always use that
  double gradient_copy_bytes = 0;  // in addition, e.g. 16-bit gradients before they are added to 32-bit ones
  // in addition, of the embedding's matrix: the largest tensor that exists at once
  double embedding_gradient_bytes = 0;
  double master_bytes = 4;     // of 16-bit weights; wider ones have no master copies
  double moments_bytes = 8;    // both moments together
  Zero zero = Zero::none;      // what is sharded over the replicas for every plan; `zero1: true` is one
  bool tied_head_copy = true;  // tied embeddings: a head on another stage keeps its own copy
  // In a change of an elastic job's plan the old state moves to host memory, out of the way of the new one.
  bool change_moves_state = false;

  // --- Activations
  enum class Attention { fused, unfused };
  Attention attention = Attention::fused;
  double norm_bytes = 8;      // per token and hidden, not split: inputs and outputs of the two norms
  double dropout_bytes = 0;   // per token and hidden, not split: masks
  double residual_bytes = 0;  // per token and hidden, not split: additional copies of the residual
  double qkv_copy_bytes = 0;  // per token and hidden, split: additional copies of queries, keys and values
  double score_bytes = 5;     // per head, query and key: softmax, mask, dropped-out values (unfused)
  double score_workspace_bytes = 0;   // the same, but only during the backward of an attention
  double persistent_score_bytes = 0;  // the same, allocated permanently
  double logit_bytes = 8;             // per logit, while the loss is computed
  double logit_leftover_bytes = 0;    // per logit, from one microbatch to the next
  double head_norm_bytes = 6;         // per token and hidden, whole: the final norm and its gradient
  // fraction of the stored activations that allocator rounding adds, without TP ...
  double activation_slack = 0;
  double activation_slack_tp = 0;  // ... and with it
  double gather_buffers = 0;       // unsplit activations gathered for TP, held at the peak
  bool keeps_received = false;     // the activations of a stage's first layer do not include its input
  double message_buffers = 0;      // messages in flight, to and from each neighbour
  // The gathered inputs of a block's column-parallel products, 16-bit bytes per token and hidden: buffers
  // that another stream has used are not freed while there is memory. This many microbatches in flight have
  // them; none have when the rank would exceed the limit with them.
  double gathered_input_bytes = 0;
  int gathered_input_spares = 0;
  int gathered_input_blocks = 0;           // of at most this many blocks (x microbatches); 0 = of all
  int64_t gathered_input_limit_bytes = 0;  // of the rank, with them
  int64_t gathered_input_most_bytes = 0;   // of them alone; 0 = no limit
  double fragmentation = 0;                // fraction of allocated memory that is lost between blocks

  // --- Kernels: passes over a tensor by element-wise kernels, per block
  double whole_forward_passes = 11, whole_backward_passes = 17;    // tokens x hidden
  double split_forward_passes = 14, split_backward_passes = 18;    // tokens x hidden / TP
  double score_forward_passes = 4.5, score_backward_passes = 5.5;  // heads x queries x keys / TP, unfused
  double logit_forward_passes = 11, logit_backward_passes = 7;     // tokens x vocabulary / TP
  double collectives_per_pass = 2;  // all-reduces (or pairs of gather and scatter) per block and pass
  // with split tokens: repeated all-gathers of inputs, per block; of the head's half as many
  double backward_extra_gathers = 0;
  double accumulate_bytes = 0;          // memory traffic per parameter and microbatch to accumulate gradients
  double optimizer_traffic_bytes = 30;  // memory traffic per parameter of a step

  // --- Costs beside the kernels, in estimates from the catalog: `sailor calibrate` fits them to runs. They
  // add to those of a platform (profile/platform.h), and are not used where layers were measured.
  // Launch times of the host per block and pass: for every TP degree, in addition with any tensor
  // parallelism, and in addition for each further rank of a TP group (profile/analytic_profile.h).
  double host_block_s = 0, host_tp_block_s = 0, host_tp_rank_s = 0;
  double jitter = 0;             // relative slowdown of the stages of a plan over several nodes
  double sync_slowdown = 1;      // factor on gradient reduction between nodes
  double base_memory_bytes = 0;  // of a rank before any tensor, in addition to the GPU type's

  // --- Plans that it can run
  // All pipelines have the same stages with the same TP degrees, layers and recomputation, and the same
  // number of microbatches.
  bool uniform_plans = false;
  int max_tensor_parallel = 0;  // 0 = no limit; the same for the stages of a pipeline
  int max_stages = 0;
  // Whether it can recompute activations, interleave stages, and leave the optimizer states whole or shard
  // them (where not, `zero` above says which).
  bool may_recompute = true, may_interleave = true, may_shard_optimizer = true;
  // Whether it has the levels `light` and `mlp`, and several levels in a stage (spec/recompute.h).
  bool recompute_parts = false;
  // Which blocks of a stage it can recompute, where that is neither all nor none: as many first ones of every
  // stage, or every n-th one of those that a rank has.
  enum class SomeBlocks { none, first, spaced };
  SomeBlocks recompute_some = SomeBlocks::none;
  // Whether it can compute the gradients of weights later (spec/split_backward.h).
  bool split_backward = false;
  // Whether GPUs with the same weights can split the tokens of a microbatch (spec/replica_shape.h).
  bool context_parallel = false;
  // Whether they can split them over more GPUs than heads of keys and values divide
  // (ModelSpec::ring_degree()).
  bool ring_attention = false;
  // Whether stages can keep optimizer states (spec/offload.h) and the inputs of blocks (Recompute::offload)
  // in the memory of their nodes.
  bool offload = false;
  // Whether groups of pipelines can each have a copy of what is sharded (Plan::zero_group).
  bool hybrid_zero = false;
  // How its ranks are numbered: pipeline by pipeline, or stage by stage (Megatron's "tp-dp-pp").
  enum class RankOrder { pipelines, stages };
  static constexpr const char* kRankOrders[] = {"pipelines", "stages"};  // names
  RankOrder rank_order = RankOrder::pipelines;
  // Whether its programs take model and parallelism as flags (report/megatron_flags.h).
  enum class Flags { none, megatron };
  Flags flags = Flags::none;

  // What files say of states is said of 32-bit ones; wider ones take what they take.
  double weight_bytes(Precision precision) const { return element_bytes(precision); }
  double gradient_bytes_at(Precision precision) const {
    return gradient_bytes > 0 && !has_wide_states(precision) ? gradient_bytes : element_bytes(precision);
  }
  double master_bytes_at(Precision precision) const {
    return element_bytes(precision) < kind_of(precision).state_bytes ? master_bytes : 0;
  }
  double moments_bytes_at(Precision precision) const {
    return has_wide_states(precision) ? 2 * kind_of(precision).state_bytes : moments_bytes;
  }
  // Of a trained parameter, with its average if there is one: what Offload::optimizer keeps elsewhere.
  double state_bytes_at(Precision precision, bool average) const {
    return master_bytes_at(precision) + moments_bytes_at(precision) +
           (average ? kind_of(precision).state_bytes : 0);
  }
  double sync_bytes_at(Precision precision) const {
    return sync_bytes > 0 ? sync_bytes : gradient_bytes_at(precision);
  }

  static bool has_wide_states(Precision precision) { return kind_of(precision).state_bytes > 4; }

  // Sets one key as in the file. Throws InputError at `where` when the key is unknown or the value is
  // invalid.
  void set(const std::string& key, const std::string& value, const Where& where);
};

FrameworkStyle load_framework_style(const std::string& path);
FrameworkStyle parse_framework_style(const std::string& yaml, const std::string& file_name);

// The framework of a trainer that is not Sailor's own: its description, else the built-in one of its kind.
// Throws InputError, also if the description is of another name.
FrameworkStyle framework_of_trainer(const JobSpec& job);

// Sailor's own trainer, from the built-in files: ranks that compute on processors and communicate over
// sockets, or on GPUs and with NCCL.
enum class Ranks { processors, gpus };
const FrameworkStyle& own_framework(Ranks ranks = Ranks::processors);
const char* own_framework_text(Ranks ranks);

}  // namespace sailor
