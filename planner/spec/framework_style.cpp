#include "planner/spec/framework_style.h"

#include <functional>

#include "planner/spec/document.h"
#include "planner/spec/field.h"
#include "planner/spec/own_framework.h"
#include "planner/spec/own_gpu_framework.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"
#include "planner/spec/trainer_spec.h"

namespace sailor {
namespace {

using Read = std::function<void(FrameworkStyle&, const Field&)>;

// Bytes per something and numbers of passes; nothing real is near this.
constexpr double kMost = 1e6;

Read number(double FrameworkStyle::*member, double most = kMost) {
  return [member, most](FrameworkStyle& style, const Field& field) { style.*member = field.number(0, most); };
}

Read count(int FrameworkStyle::*member, int least) {
  return [member, least](FrameworkStyle& style, const Field& field) {
    style.*member = field.integer<int>(least, static_cast<int>(kMost));
  };
}

Read flag(bool FrameworkStyle::*member) {
  return [member](FrameworkStyle& style, const Field& field) { style.*member = field.boolean(); };
}

template <typename Enum>
Read word(Enum FrameworkStyle::*member, std::vector<std::string> words) {
  return [member, words = std::move(words)](FrameworkStyle& style, const Field& field) {
    style.*member = static_cast<Enum>(field.choice(words));
  };
}

// Which plans it can run.
const std::map<std::string, Read>& keys_of_plans() {
  using S = FrameworkStyle;
  static const std::map<std::string, Read> known = {
      {"uniform_plans", flag(&S::uniform_plans)},
      {"max_tensor_parallel", count(&S::max_tensor_parallel, 0)},
      {"max_stages", count(&S::max_stages, 0)},
      {"may_recompute", flag(&S::may_recompute)},
      {"recompute_parts", flag(&S::recompute_parts)},
      {"recompute_some", word(&S::recompute_some, {"none", "first", "spaced"})},
      {"split_backward", flag(&S::split_backward)},
      {"context_parallel", flag(&S::context_parallel)},
      {"ring_attention", flag(&S::ring_attention)},
      {"offload", flag(&S::offload)},
      {"hybrid_zero", flag(&S::hybrid_zero)},
      {"may_interleave", flag(&S::may_interleave)},
      {"may_shard_optimizer", flag(&S::may_shard_optimizer)},
      {"rank_order", word(&S::rank_order, {std::begin(S::kRankOrders), std::end(S::kRankOrders)})},
      {"flags", word(&S::flags, {"none", "megatron"})},
  };
  return known;
}

// How it executes them.
const std::map<std::string, Read>& keys_of_execution() {
  using S = FrameworkStyle;
  static const std::map<std::string, Read> known = {
      {"transport", word(&S::transport, {"nccl", "sockets"})},
      {"sends", word(&S::sends, {"asynchronous", "asynchronous_in_turn", "blocking", "blocking_in_turn"})},
      {"forwards_first_single_group", flag(&S::forwards_first_single_group)},
      {"buffered_messages",
       [](S& style, const Field& field) { style.buffered_message_bytes = field.bytes(); }},
      {"partitioned_messages", flag(&S::partitioned_messages)},
      {"whole_messages", [](S& style, const Field& field) { style.whole_message_bytes = field.bytes(); }},
      {"forward_gathers", count(&S::forward_gathers, 0)},
      {"backward_gathers", count(&S::backward_gathers, 0)},
      {"sequence_parallel", flag(&S::sequence_parallel)},
      {"vocabulary_multiple", count(&S::vocabulary_multiple, 1)},
      {"sums", word(&S::sums, {"rings", "mesh"})},
      {"gradient_sync", word(&S::gradient_sync, {"after_backward", "overlapped"})},
      {"overlap", number(&S::overlap, 1)},
      {"sync_bytes", number(&S::sync_bytes)},
      {"sync_bucket", [](S& style, const Field& field) { style.sync_bucket_bytes = field.bytes(); }},
      {"sync_buffer", flag(&S::sync_buffer)},
      {"tensors_per_layer", number(&S::tensors_per_layer)},
      {"tree_sync", flag(&S::tree_sync)},
      {"zero1_all_reduce", flag(&S::zero1_all_reduce)},
      {"gathers_by_tensor", flag(&S::gathers_by_tensor)},
      {"sync_copies", number(&S::sync_copies)},
      {"sync_whole_layers", flag(&S::sync_whole_layers)},
      {"keeps_received", flag(&S::keeps_received)},
      {"message_buffers", number(&S::message_buffers)},
      {"gradient_bytes", number(&S::gradient_bytes)},
      {"gradient_copy_bytes", number(&S::gradient_copy_bytes)},
      {"master_bytes", number(&S::master_bytes)},
      {"moments_bytes", number(&S::moments_bytes)},
      {"zero1",
       [](S& style, const Field& field) { style.zero = field.boolean() ? Zero::optimizer : Zero::none; }},
      {"zero", [](S& style, const Field& field) { style.zero = read_zero(field); }},
      {"tied_head_copy", flag(&S::tied_head_copy)},
      {"change_moves_state", flag(&S::change_moves_state)},
      {"attention", word(&S::attention, {"fused", "unfused"})},
      {"norm_bytes", number(&S::norm_bytes)},
      {"dropout_bytes", number(&S::dropout_bytes)},
      {"residual_bytes", number(&S::residual_bytes)},
      {"qkv_copy_bytes", number(&S::qkv_copy_bytes)},
      {"score_bytes", number(&S::score_bytes)},
      {"score_workspace_bytes", number(&S::score_workspace_bytes)},
      {"persistent_score_bytes", number(&S::persistent_score_bytes)},
      {"logit_bytes", number(&S::logit_bytes)},
      {"logit_leftover_bytes", number(&S::logit_leftover_bytes)},
      {"head_norm_bytes", number(&S::head_norm_bytes)},
      {"gather_buffers", number(&S::gather_buffers)},
      {"gathered_input_bytes", number(&S::gathered_input_bytes)},
      {"gathered_input_spares", count(&S::gathered_input_spares, 0)},
      {"gathered_input_blocks", count(&S::gathered_input_blocks, 0)},
      {"embedding_gradient_bytes", number(&S::embedding_gradient_bytes)},
      {"activation_slack", number(&S::activation_slack, 1)},
      {"activation_slack_tp", number(&S::activation_slack_tp, 1)},
      {"gathered_input_most",
       [](S& style, const Field& field) { style.gathered_input_most_bytes = field.bytes(); }},
      {"gathered_input_limit",
       [](S& style, const Field& field) { style.gathered_input_limit_bytes = field.bytes(); }},
      {"fragmentation", number(&S::fragmentation, 1)},
      {"whole_forward_passes", number(&S::whole_forward_passes)},
      {"whole_backward_passes", number(&S::whole_backward_passes)},
      {"split_forward_passes", number(&S::split_forward_passes)},
      {"split_backward_passes", number(&S::split_backward_passes)},
      {"score_forward_passes", number(&S::score_forward_passes)},
      {"score_backward_passes", number(&S::score_backward_passes)},
      {"logit_forward_passes", number(&S::logit_forward_passes)},
      {"logit_backward_passes", number(&S::logit_backward_passes)},
      {"collectives_per_pass", number(&S::collectives_per_pass)},
      {"backward_extra_gathers", number(&S::backward_extra_gathers)},
      {"accumulate_bytes", number(&S::accumulate_bytes)},
      {"optimizer_traffic_bytes", number(&S::optimizer_traffic_bytes)},
  };
  return known;
}

// What it costs beside the kernels.
const std::map<std::string, Read>& keys_of_costs() {
  using S = FrameworkStyle;
  constexpr double kMostHost_s = 60;
  static const std::map<std::string, Read> known = {
      {"host_block_s", number(&S::host_block_s, kMostHost_s)},
      {"host_tp_block_s", number(&S::host_tp_block_s, kMostHost_s)},
      {"host_tp_rank_s", number(&S::host_tp_rank_s, kMostHost_s)},
      {"jitter", number(&S::jitter, 100)},
      {"sync_slowdown", number(&S::sync_slowdown, 1000)},
      {"base_memory_bytes", number(&S::base_memory_bytes, 1e15)},
  };
  return known;
}

const std::map<std::string, Read>& keys() {
  static const std::map<std::string, Read> all = [] {
    std::map<std::string, Read> whole = keys_of_execution();
    for (const auto& part : {keys_of_plans(), keys_of_costs()}) whole.insert(part.begin(), part.end());
    return whole;
  }();
  return all;
}

std::vector<std::string> key_names() {
  std::vector<std::string> names{"sailor_framework", "name"};
  for (const auto& [key, read] : keys()) names.push_back(key);
  return names;
}

}  // namespace

void FrameworkStyle::set(const std::string& key, const std::string& value, const Where& where) {
  const auto known = keys().find(key);
  if (known == keys().end())
    throw InputError(where, "options: unknown key " + in_quotes(key) + did_you_mean(key, key_names()));
  Document document;
  document.file = where.file;
  document.root.kind = DocumentNode::Kind::map;
  document.root.line = where.line;
  DocumentNode node;
  node.kind = DocumentNode::Kind::scalar;
  node.scalar = value;
  node.line = where.line;
  document.root.children.push_back({key, where.line, node});
  known->second(*this, Field(document, document.root.children[0].node));
}

FrameworkStyle parse_framework_style(const std::string& yaml, const std::string& file_name) {
  const Document document = parse_yaml(yaml, file_name);
  MapField map(Field(document), key_names());
  require_version(map, "sailor_framework", 1);
  FrameworkStyle style;
  style.name = map.required("name").name();
  style.file = file_name;
  for (const auto& [key, read] : keys())
    if (const auto field = map.optional(key)) read(style, *field);
  return style;
}

FrameworkStyle load_framework_style(const std::string& path) {
  return parse_framework_style(read_text_file(path), path);
}

FrameworkStyle framework_of_trainer(const JobSpec& job) {
  const TrainerSpec& trainer = job.trainer;
  if (trainer.framework.empty())
    return parse_framework_style(trainer_kinds().at(trainer.kind),
                                 "etc/frameworks/" + trainer.kind + ".yaml");
  FrameworkStyle style = load_framework_style(relative_to_file(trainer.framework, job.file));
  if (style.name != trainer.kind)
    throw InputError({style.file, 0}, "describes the framework " + in_quotes(style.name) +
                                          ", but trainer.kind is " + in_quotes(trainer.kind) +
                                          ": name both alike");
  return style;
}

const char* own_framework_text(Ranks ranks) {
  return ranks == Ranks::gpus ? kOwnGpuFramework : kOwnFramework;
}

const FrameworkStyle& own_framework(Ranks ranks) {
  static const FrameworkStyle on_processors =
      parse_framework_style(kOwnFramework, "etc/frameworks/sailor.yaml");
  static const FrameworkStyle on_gpus =
      parse_framework_style(kOwnGpuFramework, "etc/frameworks/sailor-nccl.yaml");
  return ranks == Ranks::gpus ? on_gpus : on_processors;
}

}  // namespace sailor
