#include "planner/search/native/cell_floors.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sailor::native {
namespace {

constexpr double kFloorRounding = 1 - 1e-9;

}  // namespace

AreaBound::AreaBound(const Space& space, IterationModel& model, const ZoneRates& rates,
                     const GroupWays::Question& question)
    : ways_(space, model, rates, question) {
  if (!ways_.usable()) return;
  const std::vector<double> prices = ways_.prices_by_speed();
  const double count[] = {1, static_cast<double>(ways_.blocks()), 1};
  for (const LayerKind kind : kLayerKinds) {
    double computing = kNever, after = kNever;
    for (const GroupWay& way : ways_.ways) {
      const double price = prices[static_cast<size_t>(way.supply)] * way.gpus;
      computing = std::min(computing, price * way.needs[kind].both_s());
      after = std::min(after, price * way.needs[kind].after_s);
    }
    layer_s_[kind] = computing;
    computing_s_ += count[kind] * computing;
    after_s_ += count[kind] * after;
    longest_layer_s_ = std::max(longest_layer_s_, ways_.fastest[kind].both_s());
  }
  std::vector<double> blocks_per_gpu(ways_.supplies.size(), 0);
  for (size_t w = 0; w < ways_.ways.size(); ++w) {
    const GroupWay& way = ways_.ways[w];
    double& most = blocks_per_gpu[static_cast<size_t>(way.supply)];
    most = std::max(most, static_cast<double>(ways_.most_blocks(static_cast<int>(w), 0)) / way.gpus);
  }
  for (size_t s = 0; s < blocks_per_gpu.size(); ++s) models_ += ways_.supplies[s].gpus * blocks_per_gpu[s];
  models_ = ways_.blocks() > 0 ? models_ / ways_.blocks() : kNever;
}

bool AreaBound::holds(int pipelines) const {
  return ways_.usable() && models_ >= pipelines * kFloorRounding;
}

double AreaBound::iteration_s(double microbatches, int pipelines) const {
  const double most = std::ceil(microbatches / pipelines * kFloorRounding);
  return ways_.overhead_s +
         std::max(
             {ways_.last_sum_s + microbatches * computing_s_ + (pipelines > 1 ? pipelines * after_s_ : 0),
              ways_.first_sum_s + ways_.path_s, ways_.last_sum_s + longest_layer_s_ * most});
}

template <typename Visit>
void Crossing::for_each_link(const Visit& visit) {
  for (const SpaceOption& from : space_.options)
    for (const SpaceOption& to : space_.options) {
      if (space_.kinds[from.kind].zone == space_.kinds[to.kind].zone) continue;
      if (const LinkCurve* link = space_.kinds.find_link(from.kind, to.kind, false)) visit(from, to, *link);
    }
}
Crossing::Crossing(const Space& space) : space_(space) {
  const bool mesh = space.context.framework.sums == FrameworkStyle::Sums::mesh;
  std::map<std::string, std::set<int>> nodes;
  for (size_t p = 0; p < space.pools.size(); ++p)
    if (!space.pools[p].joint)
      nodes[space.resources.pools[p].zone].insert(space.pools[p].nodes.begin(), space.pools[p].nodes.end());
  for (const auto& [zone, of] : nodes) most_nodes_ = std::max(most_nodes_, static_cast<double>(of.size()));
  for_each_link([&](const SpaceOption& from, const SpaceOption&, const LinkCurve& link) {
    // The replicas of a node share the step of a ring that leaves it.
    s_per_byte_ = mesh ? std::min(s_per_byte_, least_s_per_byte(&link, 1) / from.shape.gpus()) : 0;
    card_s_per_byte_ = std::min(card_s_per_byte_, mesh ? least_s_per_byte(&link, kManySenders)
                                                       : least_step_s_per_byte(&link, kManySenders));
  });
}

double Crossing::least_s(const GroupWays& ways, int microbatch, int pipelines, double microbatches,
                         bool interleave) {
  // Interleaved pipelines cross three times in each direction, over some link twice.
  const double message_s = least_message_s(microbatch),
               path_s = ways.path_s + (interleave ? 4 * message_s : 0);
  const double every_crosses_s = interleave ? std::max(path_s + 2 * message_s, 2 * microbatches * message_s)
                                            : path_s + (microbatches + 1) * message_s;
  if (pipelines < 2) return ways.overhead_s + every_crosses_s;
  // A layer is held in several zones where some pipeline does not cross; every layer where none does. Of
  // all that hold it those in the zone with fewest send half of their gradients or more to other zones.
  const double halves = (ways.phases + (ways.grouped ? 0 : ways.gathered)) / 2;
  const std::array<double, 3>& bytes = ways.gradient_bytes;
  const double layer_s = halves * std::max(s_per_byte_, card_s_per_byte_) *
                         *std::min_element(bytes.begin(), bytes.end()),
               model_s = halves * card_s_per_byte_ *
                         (bytes[kFirst] + ways.blocks() * bytes[kBlock] + bytes[kLast]) / most_nodes_;
  const double some_cross_s = std::max(path_s + 2 * message_s, ways.forward_s + layer_s),
               none_crosses_s = std::max(ways.path_s, ways.forward_s + std::max(layer_s, model_s));
  return ways.overhead_s + std::min({every_crosses_s, some_cross_s, none_crosses_s});
}

double Crossing::least_message_s(int microbatch) {
  const auto [place, added] = message_s_.try_emplace(microbatch, kNever);
  double& least_s = place->second;
  if (!added) return least_s;
  if (is_any(microbatch)) {
    for (const int size : space_.sizes_of(microbatch))
      least_s = std::min(least_s, least_message_s(size) / size);
    return least_s;
  }
  const PlanningContext& context = space_.context;
  for_each_link([&](const SpaceOption& from, const SpaceOption& to, const LinkCurve& link) {
    const StageKind& kind = space_.kinds[from.kind];
    const double links = std::min(from.shape.gpus(), to.shape.gpus());
    for (size_t l = 0; l + 1 < kind.sizes->size(); ++l) {
      const double bytes = static_cast<double>((*kind.sizes)[l].output_elements) *
                           element_bytes(context.precision) * microbatch;
      least_s = std::min(
          least_s, kind.profile->overheads.message_slowdown *
                       link.time_s(context.framework.partitioned_messages ? bytes / links : bytes, links));
    }
  });
  return least_s;
}

NodeCrossing::NodeCrossing(const Space& space) {
  const double element = element_bytes(space.context.precision);
  for (const SpaceOption& option : space.options) {
    const StageKind& kind = space.kinds[option.kind];
    const double slowdown = std::min(1.0, kind.profile->overheads.message_slowdown);
    for (size_t l = 0; l + 1 < kind.sizes->size(); ++l)
      message_bytes_ = std::min(message_bytes_,
                                slowdown * element * static_cast<double>((*kind.sizes)[l].output_elements));
  }
}

double NodeCrossing::one_node_s(const GroupWays& ways, int pipelines, double microbatches) {
  double least_s = kNever;
  for (size_t s = 0; s < ways.supplies.size(); ++s) {
    std::array<double, 3> gpu_s;
    gpu_s.fill(kNever);
    double blocks_per_gpu = 0;
    for (size_t w = 0; w < ways.ways.size(); ++w) {
      const GroupWay& way = ways.ways[w];
      if (static_cast<size_t>(way.supply) != s || way.gpus > ways.supplies[s].node_gpus) continue;
      blocks_per_gpu =
          std::max(blocks_per_gpu, static_cast<double>(ways.most_blocks(static_cast<int>(w), 0)) / way.gpus);
      for (const LayerKind kind : kLayerKinds)
        gpu_s[kind] = std::min(gpu_s[kind], way.gpus * way.needs[kind].both_s());
    }
    const double gpus = ways.supplies[s].node_gpus;
    if (gpus * blocks_per_gpu < pipelines * ways.blocks() * kFloorRounding) continue;
    const double model_s =
        gpu_s[kFirst] + (ways.blocks() > 0 ? ways.blocks() * gpu_s[kBlock] : 0) + gpu_s[kLast];
    least_s = std::min(least_s, microbatches * model_s / gpus);
  }
  return least_s;
}

double NodeCrossing::sums_s(const GroupWays& ways, int pipelines, double microbatches) {
  double bytes_per_s = 0;   // of all cards
  double nodes_blocks = 0;  // that a node computes in a second, of all microbatches
  int most_replicas = 1;    // of a layer on a node
  for (size_t s = 0; s < ways.supplies.size(); ++s) {
    double card_s = kNever, block_s = kNever;
    for (const GroupWay& way : ways.ways) {
      if (static_cast<size_t>(way.supply) != s) continue;
      card_s = std::min(card_s, way.card_s);
      block_s = std::min(block_s, way.gpus * way.needs[kBlock].both_s());
      most_replicas = std::max(most_replicas, way.near_replicas);
    }
    if (card_s < kNever) bytes_per_s += ways.supplies[s].nodes / card_s;
    nodes_blocks = std::max(nodes_blocks, ways.supplies[s].node_gpus / (microbatches * block_s));
  }
  // A layer with k of D replicas on a node sends k (D - k) / D times its gradients from there; along a ring
  // (D - 1) / D times.
  const double all = pipelines;
  const double nodes = std::max(2.0, std::ceil(all / most_replicas));
  const double times = ways.phases / bytes_per_s *
                       (!ways.mesh     ? nodes * (all - 1) / all
                        : ways.grouped ? nodes - 1
                                       : std::max(all - most_replicas, 2 * (all - 1) / all));
  const double block_s = times * ways.gradient_bytes[kBlock];
  if (pipelines > most_replicas)
    return ways.forward_s + block_s * ways.blocks() +
           times * (ways.gradient_bytes[kFirst] + ways.gradient_bytes[kLast]);
  // In x seconds one node computes x nodes_blocks, which need no sums.
  return (ways.forward_s + block_s * ways.blocks()) / (1 + block_s * nodes_blocks);
}

double NodeCrossing::least_s(const GroupWays& ways, int microbatch, int pipelines, double microbatches,
                             bool interleave) const {
  double nodes = 0, card_s = kNever;
  for (const GpuSupply& supply : ways.supplies) nodes += supply.nodes;
  if (nodes < 2) return 0;
  for (const GpuSupply& supply : ways.supplies) card_s = std::min(card_s, supply.card_s);
  // Interleaved pipelines cross three times, in two directions.
  double several_s =
      (interleave ? 1.5 : 1) * microbatches * std::max(1, microbatch) * message_bytes_ * card_s;
  if (pipelines > 1) {
    const double summed_s = sums_s(ways, pipelines, microbatches);
    int most_replicas = 1;
    for (const GroupWay& way : ways.ways) most_replicas = std::max(most_replicas, way.near_replicas);
    several_s = pipelines > most_replicas ? summed_s : std::min(several_s, summed_s);
  }
  return ways.overhead_s +
         std::max(ways.path_s, std::min(several_s, one_node_s(ways, pipelines, microbatches)));
}

}  // namespace sailor::native
