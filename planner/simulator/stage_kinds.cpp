#include "planner/simulator/stage_kinds.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "planner/profile/collectives.h"
#include "planner/profile/host_link.h"
#include "planner/profile/split_tokens.h"
#include "planner/simulator/host_memory.h"
#include "planner/spec/error.h"

namespace sailor::native {

int StageKinds::number(const std::string& gpu_type, const std::string& zone, ReplicaShape shape,
                       bool splits_tokens) {
  splits_tokens = splits_tokens && shape.tp > 1;
  const auto [it, added] =
      numbers_.try_emplace({gpu_type, zone, shape, splits_tokens}, static_cast<int>(kinds_.size()));
  if (!added) return it->second;
  StageKind kind;
  try {
    kind.profile = &profile_of(context_, gpu_type);
    kind.sizes = &sizes_of(context_, {.tp = shape.tp});
    if (splits_tokens || shape.cp > 1) {
      auto sizes = std::make_shared<std::vector<LayerSizes>>(*kind.sizes);
      if (splits_tokens) split_tokens(*sizes, sizes_of(context_, {}), shape.tp);
      split_context(*sizes, context_.job.model, context_.precision, shape);
      kind.own_sizes = std::move(sizes);
      kind.sizes = kind.own_sizes.get();
    }
  } catch (...) {
    numbers_.erase(it);
    throw;
  }
  kind.gpu_type = gpu_type;
  kind.zone = zone;
  kind.shape = shape;
  kind.splits_tokens = splits_tokens;
  for (const Expense expense : kExpenses)
    kind.rate[expense] = shape.gpus() * least_gpu_rate(context_, expense, gpu_type, zone).value_or(GpuRate{});
  const GpuType& type = context_.catalog.at(gpu_type);
  kind.capacity_bytes = type.memory_bytes;
  kind.on_processors = type.on_processors;
  for (const SnapshotNode& node : context_.snapshot.nodes) {
    if (node.gpu_type != gpu_type || node.zone != zone || node.free_gpus.empty()) continue;
    const int64_t part = node.host.memory_bytes / static_cast<int64_t>(node.free_gpus.size());
    if (part > 0 && (kind.host_bytes == 0 || part < kind.host_bytes)) kind.host_bytes = part;
  }
  if (type.node.host_bytes_per_s > 0) {
    const bool average = context_.job.training.ema.has_value();
    // Averages are updated in a pass of their own.
    const double bytes = context_.framework.state_bytes_at(context_.precision, average) +
                         (average ? kind_of(context_.precision).state_bytes : 0);
    kind.offload_s = bytes / type.node.host_bytes_per_s;
  }
  std::vector<double> parameters(1, 0);
  const LayerSizes* previous = nullptr;
  for (const LayerSizes& layer : *kind.sizes) {
    parameters.push_back(parameters.back() + static_cast<double>(layer.parameters));
    kind.alike.push_back(previous && layer == *previous ? kind.alike.back() + 1 : 1);
    previous = &layer;
  }
  parameters_.push_back(std::move(parameters));
  kinds_.push_back(std::move(kind));
  shapes_.push_back(shape);
  times_.emplace_back();
  const int added_kind = it->second;
  pairs_.emplace_back(kinds_.size());
  for (auto& row : pairs_) row.resize(kinds_.size());
  for (int other = 0; other <= added_kind; ++other)
    for (const auto& [from, to] : {std::pair(other, added_kind), std::pair(added_kind, other)}) {
      for (const Expense expense : kExpenses) {
        double& per_gb = pairs_[static_cast<size_t>(from)][static_cast<size_t>(to)].traffic_per_gb[expense];
        per_gb = sailor::traffic_per_gb(context_, expense, kinds_[static_cast<size_t>(from)].zone,
                                        kinds_[static_cast<size_t>(to)].zone);
        pays_for_traffic_ = pays_for_traffic_ || per_gb > 0;
      }
    }
  return added_kind;
}

int64_t StageKinds::host_bytes(int kind, const MemoryBreakdown& memory) const {
  const StageKind& of = kinds_[static_cast<size_t>(kind)];
  return host_memory(context_.job, memory, of.capacity_bytes, of.on_processors).least_bytes;
}

int64_t StageKinds::missing_bytes(int kind, const MemoryBreakdown& memory, bool ignores_host) const {
  const StageKind& of = kinds_[static_cast<size_t>(kind)];
  const int64_t missing = memory.total() - of.capacity_bytes;
  if (ignores_host || memory.offloaded_bytes == 0 || of.host_bytes == 0) return missing;
  return std::max(missing, host_bytes(kind, memory) - of.host_bytes);
}

void StageKinds::require_offload(int kind) const {
  const StageKind& of = (*this)[kind];
  if (of.offload_s > 0) return;
  throw InputError({context_.catalog.file, 0},
                   fmt::format("a stage of the plan offloads, but it is not known how fast GPU type "
                               "{} reaches the memory of its node: give the type `node: {{host: RATE}}`",
                               of.gpu_type));
}

const KindTimes& StageKinds::work_out_times(int kind, int microbatch) {
  const StageKind& is = kinds_[static_cast<size_t>(kind)];
  LayerProfile::Cell cell = cell_of(context_, is.gpu_type, microbatch, {.tp = is.shape.tp});
  const SplitTimes split{
      context_.job, context_.framework, context_.catalog.at(is.gpu_type), context_.precision,
      microbatch,   is.shape,           find_link(kind, kind, true)};
  if (is.splits_tokens) split_tokens(cell, split);
  split_context(cell, *is.profile, split);
  const HostLink host = host_link(context_.catalog.at(is.gpu_type));
  for (size_t layer = 1; layer + 1 < cell.size(); ++layer)
    cell[layer].host_s = host_s(
        cell[layer], host, static_cast<double>((*is.sizes)[layer].kept_bytes(Recompute::full)) * microbatch);
  KindTimes times;
  for (std::vector<double>* sums : {&times.forward_s, &times.backward_s, &times.update_s, &times.weight_s})
    sums->assign(1, 0);
  const auto levels = std::span(times.again_s).subspan(1);
  for (std::vector<double>& sums : levels) sums.assign(1, 0);
  for (size_t layer = 0; layer < cell.size(); ++layer) {
    // Only blocks are computed again; an embedding keeps nothing, and the loss needs the head's result at
    // once.
    const bool block = layer > 0 && layer + 1 < cell.size();
    times.forward_s.push_back(times.forward_s.back() + cell[layer].forward_s);
    times.backward_s.push_back(times.backward_s.back() + cell[layer].backward_s);
    times.update_s.push_back(times.update_s.back() + cell[layer].update_s);
    // Estimates of both need not agree.
    const double weight_s = std::min(cell[layer].weight_s, cell[layer].backward_s);
    times.weight_s.push_back(times.weight_s.back() + (block ? weight_s : 0));
    for (std::vector<double>& sums : levels) {
      const auto level = static_cast<Recompute>(&sums - times.again_s.data());
      sums.push_back(sums.back() + (block ? cell[layer].again_s(level) : 0));
    }
  }
  auto& of_kind = times_[static_cast<size_t>(kind)];
  of_kind.emplace_back(microbatch, std::make_unique<const KindTimes>(std::move(times)));
  return *of_kind.back().second;
}

const LinkCurve* StageKinds::find_link(int from, int to, bool same_node) {
  Pair& pair = pairs_[static_cast<size_t>(from)][static_cast<size_t>(to)];
  bool& known = same_node ? pair.knows_near : pair.knows_far;
  const LinkCurve*& link = same_node ? pair.near : pair.far;
  if (!known) {
    const StageKind &a = (*this)[from], &b = (*this)[to];
    link = sailor::find_link(context_.profiles.network, {a.gpu_type, a.zone, a.shape.gpus()},
                             {b.gpu_type, b.zone, b.shape.gpus()}, same_node);
    known = true;
  }
  return link;
}

const LinkCurve& StageKinds::link(int from, int to, bool same_node) {
  if (const LinkCurve* known = find_link(from, to, same_node)) return *known;
  const StageKind &a = (*this)[from], &b = (*this)[to];
  return link_of(context_, {a.gpu_type, a.zone, a.shape.gpus()}, {b.gpu_type, b.zone, b.shape.gpus()},
                 same_node);
}

double StageKinds::message_gather_s(int kind, int layer, int microbatch) {
  const StageKind& of = (*this)[kind];
  // Messages within the TP group of an emulated device are not delayed.
  if (of.shape.tp < 2 || context_.catalog.at(of.gpu_type).emulation) return 0;
  const double bytes = static_cast<double>((*of.sizes)[static_cast<size_t>(layer) - 1].output_elements) *
                       element_bytes(context_.job.training.precision) * microbatch / of.shape.cp;
  if (bytes < static_cast<double>(context_.framework.whole_message_bytes)) return 0;
  return ring_pass_s({of.shape.tp, 1, 1, &link(kind, kind, true), nullptr}, bytes);
}

double StageKinds::token_sum_s(int kind, int layer) {
  const StageKind& of = (*this)[kind];
  const std::vector<LayerSizes>* alone = context_.profiles.sizes.find({});
  if (of.shape.tp < 2 || alone == nullptr || context_.catalog.at(of.gpu_type).emulation) return 0;
  const auto at = static_cast<size_t>(layer);
  const int64_t part = (*of.sizes)[at].parameters, all = (*alone)[at].parameters;
  const double replicated = static_cast<double>(of.shape.tp * part - all) / (of.shape.tp - 1);
  if (replicated <= 0) return 0;
  const double bytes = replicated * context_.framework.sync_bytes_at(context_.precision);
  return 2 * ring_pass_s({of.shape.tp, 1, 1, &link(kind, kind, true), nullptr}, bytes);
}

}  // namespace sailor::native
