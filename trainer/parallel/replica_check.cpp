#include "trainer/parallel/replica_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "trainer/parallel/groups.h"

namespace sailor {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{4} << 20;

std::string describe(const GradientGroup& group, int num_layers) {
  const auto by_layer = [](const SubShard& a, const SubShard& b) { return a.layer < b.layer; };
  const auto [first, last] = std::minmax_element(group.shards.begin(), group.shards.end(), by_layer);
  if (first->layer >= num_layers) return "the tied embedding";
  if (first->layer == last->layer) return fmt::format("layer {}", first->layer);
  return fmt::format("layers {} to {}", first->layer, last->layer);
}

std::string name_of(int rank, const RankLayout& layout) {
  const RankSlot& slot = layout.slots().at(static_cast<std::size_t>(rank));
  return fmt::format("rank {} (pipeline {}, stage {}{}{})", rank, slot.pipeline, slot.stage,
                     slot.node.empty() ? "" : ", node ", slot.node);
}

}  // namespace

ReplicaCheck::ReplicaCheck(const Plan& plan, const RankLayout& layout, int rank, const GradientSync& sync,
                           Communicator* tp, Communicator& world, bool tied_embeddings, Device& device)
    : rank_(rank), layout_(layout), order_(sync.layout().order), world_(world), device_(device) {
  add_gradient_groups(plan, layout, sync, tied_embeddings);
  add_tp_groups(layout, tp);
}

void ReplicaCheck::add_gradient_groups(const Plan& plan, const RankLayout& layout, const GradientSync& sync,
                                       bool tied_embeddings) {
  const int num_layers = plan.pipelines.front().stages.back().end_layer;
  const std::vector<GradientGroup> all = gradient_groups(plan, layout, tied_embeddings);
  const auto parts = static_cast<std::size_t>(num_zero_groups(plan));
  std::vector<std::size_t> sharing(all.size()), copies(all.size());  // this rank's, in groups_
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<int>& ranks = all[i].ranks;
    const std::size_t each = ranks.size() / parts;
    const std::string what = describe(all[i], num_layers);
    const auto add = [&](std::size_t first, std::size_t step, std::size_t count, Communicator* communicator,
                         std::size_t& own) {
      Group group{{}, what, nullptr, {}};
      for (std::size_t k = 0; k < count; ++k) group.ranks.push_back(ranks[first + k * step]);
      if (std::find(group.ranks.begin(), group.ranks.end(), rank_) != group.ranks.end()) {
        group.communicator = communicator;
        own = groups_.size();
      }
      groups_.push_back(std::move(group));
    };
    for (std::size_t part = 0; part < parts; ++part) add(part * each, 1, each, sync.group(i), sharing[i]);
    for (std::size_t member = 0; parts > 1 && member < each; ++member)
      add(member, each, parts, sync.copies(i), copies[i]);
  }
  for (const GradientBucket& bucket : sync.layout().buckets) {
    for (const GradientPart& part : bucket.parts) {
      std::vector<GradientSegment>& segments = groups_[sharing[part.group]].segments;
      segments.insert(segments.end(), part.segments.begin(), part.segments.end());
    }
  }
  const std::vector<std::size_t> of_slices = sync.groups_of_slices();
  for (std::size_t i = 0; i < of_slices.size(); ++i) groups_[copies[of_slices[i]]].slices.push_back(i);
}

// The ranks of a TP group follow each other.
void ReplicaCheck::add_tp_groups(const RankLayout& layout, Communicator* tp) {
  for (const RankSlot& slot : layout.slots()) {
    if (slot.shape.parts() == 1) continue;
    if (slot.tp_rank == 0) groups_.push_back({{}, "what the TP ranks of a stage share", nullptr, {}});
    Group& group = groups_.back();
    group.ranks.push_back(slot.rank);
    if (slot.rank != rank_) continue;
    group.communicator = tp;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (!order_[i]->sharded) group.segments.push_back({i, 0, order_[i]->value.numel()});
    }
  }
}

std::vector<std::span<char>> ReplicaCheck::memory_of(const Group& group, const ReplicatedState& state) const {
  std::vector<std::span<char>> memory;
  bool more = true;
  for (std::size_t kind = 0; more; ++kind) {
    more = false;
    const auto add = [&](const std::vector<at::Tensor>& tensors, int64_t first, int64_t count) {
      if (kind >= tensors.size()) return;
      more = true;
      const auto element = static_cast<std::size_t>(tensors[kind].element_size());
      memory.emplace_back(
          static_cast<char*>(tensors[kind].data_ptr()) + static_cast<std::size_t>(first) * element,
          static_cast<std::size_t>(count) * element);
    };
    for (const GradientSegment& segment : group.segments)
      add(state.parameters.at(order_[segment.parameter]->name), segment.first, segment.count);
    for (const std::size_t slice : group.slices) {
      const std::vector<at::Tensor>& tensors = state.slices[slice];
      add(tensors, 0, tensors.front().numel());
    }
  }
  return memory;
}

int64_t ReplicaCheck::hash(const Group& group, const ReplicatedState& state) const {
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  const std::shared_ptr<char> staging =
      device_.asynchronous() ? device_.host_memory(kChunkBytes) : std::shared_ptr<char>();
  for (const std::span<char> run : memory_of(group, state)) {
    if (!staging) XXH3_64bits_update(&hash, run.data(), run.size());
    for (std::size_t done = 0; staging && done < run.size(); done += kChunkBytes) {
      const std::size_t bytes = std::min(kChunkBytes, run.size() - done);
      device_.copy(staging.get(), run.data() + done, bytes, device_.compute());
      device_.wait(device_.compute());
      XXH3_64bits_update(&hash, staging.get(), bytes);
    }
  }
  return static_cast<int64_t>(XXH3_64bits_digest(&hash));
}

std::vector<ReplicaCheck::Divergence> ReplicaCheck::compare(const ReplicatedState& state) const {
  if (groups_.empty()) return {};
  device_.wait(device_.compute());
  std::vector<int64_t> own;
  for (const Group& group : groups_) own.push_back(group.communicator ? hash(group, state) : 0);
  std::vector<int64_t> all(own.size() * static_cast<std::size_t>(world_.size()));
  world_.all_gather(own.data(), all.data(), own.size(), ElementType::i64);
  std::vector<Divergence> found;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    std::map<int64_t, std::vector<int>> by_hash;
    const std::vector<int>& members = groups_[i].ranks;
    for (const int rank : members)
      by_hash[all[static_cast<std::size_t>(rank) * own.size() + i]].push_back(rank);
    if (by_hash.size() == 1) continue;
    Divergence& divergence = found.emplace_back();
    divergence.group = i;
    for (const auto& [hash, ranks] : by_hash)
      if (2 * ranks.size() > members.size()) divergence.healthy = ranks.front();
    for (const auto& [hash, ranks] : by_hash) {
      if (divergence.healthy < 0 || ranks.front() != divergence.healthy)
        divergence.ranks.insert(divergence.ranks.end(), ranks.begin(), ranks.end());
    }
    std::sort(divergence.ranks.begin(), divergence.ranks.end());
  }
  return found;
}

void ReplicaCheck::copy_from(int root, const Group& group, const ReplicatedState& state) const {
  const Stream stream = device_.compute();
  const std::shared_ptr<char> piece = device_.device_memory(kChunkBytes);
  const bool sends = group.communicator->rank() == root;
  // All members divide the same bytes alike, although their runs may differ.
  const std::vector<std::span<char>> runs = memory_of(group, state);
  std::vector<std::span<char>> in_piece;
  std::size_t filled = 0;
  const auto flush = [&] {
    std::size_t at = 0;
    for (const std::span<char> part : in_piece) {
      if (sends) device_.copy(piece.get() + at, part.data(), part.size(), stream);
      at += part.size();
    }
    group.communicator->broadcast(piece.get(), filled, ElementType::u8, root, stream);
    at = 0;
    for (const std::span<char> part : in_piece) {
      if (!sends) device_.copy(part.data(), piece.get() + at, part.size(), stream);
      at += part.size();
    }
    in_piece.clear();
    filled = 0;
  };
  for (std::span<char> run : runs) {
    while (!run.empty()) {
      const std::size_t bytes = std::min(run.size(), kChunkBytes - filled);
      in_piece.push_back(run.first(bytes));
      run = run.subspan(bytes);
      filled += bytes;
      if (filled == kChunkBytes) flush();
    }
  }
  if (filled > 0) flush();
  device_.wait(stream);
}

std::vector<std::string> ReplicaCheck::lines_of(const Divergence& divergence) const {
  const Group& group = groups_[divergence.group];
  std::vector<std::string> names;
  for (const int rank : divergence.ranks) names.push_back(name_of(rank, layout_));
  if (divergence.healthy < 0)
    return {fmt::format("{} have different states of {}", fmt::join(names, ", "), group.what)};
  const std::size_t others = group.ranks.size() - names.size();
  for (std::string& name : names)
    name += fmt::format(" has another state of {} than {} other ranks", group.what, others);
  return names;
}

ReplicaReport ReplicaCheck::run(const ReplicatedState& state, OnDivergence action) const {
  ReplicaReport report;
  for (const Divergence& divergence : compare(state)) {
    for (std::string& line : lines_of(divergence)) report.lines.push_back(std::move(line));
    if (action == OnDivergence::stop || (action == OnDivergence::heal && divergence.healthy < 0))
      report.ends_job = true;
    const Group& group = groups_[divergence.group];
    if (action != OnDivergence::heal || divergence.healthy < 0 || !group.communicator) continue;
    const std::vector<int>& ranks = group.communicator->ranks();
    const auto root = std::find(ranks.begin(), ranks.end(), divergence.healthy);
    copy_from(static_cast<int>(root - ranks.begin()), group, state);
  }
  return report;
}

ReplicatedState replicated_state(const std::vector<Parameter*>& parameters, const Optimizer& optimizer,
                                 bool sharded) {
  ReplicatedState replicated;
  for (const Parameter* parameter : parameters) {
    std::vector<at::Tensor>& tensors = replicated.parameters[parameter->name];
    if (!parameter->gathered) tensors.push_back(parameter->value.detach().view({-1}));
  }
  for (std::size_t i = 0; i < optimizer.slices().size(); ++i) {
    const OptimizerSlice& slice = optimizer.slices()[i];
    std::vector<at::Tensor>& tensors =
        sharded ? replicated.slices.emplace_back(1, slice.value) : replicated.parameters.at(slice.name);
    for (const OptimizerState& state : optimizer.state(i)) tensors.push_back(state.tensor);
  }
  return replicated;
}

}  // namespace sailor
