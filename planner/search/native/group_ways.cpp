#include "planner/search/native/group_ways.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "planner/search/native/recompute_levels.h"

namespace sailor::native {
namespace {

// Classes of numbers of microbatches in flight.
constexpr int kInFlight[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 96};

template <typename Fits>
int most(int high, const Fits& fits) {
  int low = 0;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

LayerNeeds least_of(const LayerNeeds& a, const LayerNeeds& b) {
  // The least both of the backward and of its first part.
  const double backward_s = std::min(a.backward_s, b.backward_s),
               first_s = std::min(a.backward_s - a.weight_s, b.backward_s - b.weight_s);
  return {std::min(a.forward_s, b.forward_s),
          backward_s,
          backward_s < kNever ? backward_s - first_s : 0,
          std::min(a.sums_s, b.sums_s),
          std::min(a.near_sums_s, b.near_sums_s),
          std::min(a.after_s, b.after_s)};
}

constexpr LayerNeeds kNoWay{kNever, kNever, 0, kNever, kNever, kNever};

// Of the time of full recomputation.
constexpr double kShortRange = 0.2;

}  // namespace

double least_s_per_byte(const LinkCurve* link, double senders) {
  if (link == nullptr) return kNever;
  double least = kNever;
  for (double bytes = 1e2; bytes < 1e11; bytes *= 4)
    least =
        std::min(least, std::max(0.0, link->time_s(bytes, senders) - link->latency_s()) / senders / bytes);
  return least;
}

double least_step_s_per_byte(const LinkCurve* link, double senders) {
  if (link == nullptr) return kNever;
  double least = kNever;
  for (double bytes = 1e2; bytes < 1e11; bytes *= 4)
    least = std::min(least, std::max(0.0, link->step_transfer_s(bytes, senders)) / senders / bytes);
  return least;
}

ZoneRates::ZoneRates(const Space& space, const std::set<std::string>& zones)
    : near_s(space.options.size(), kNever),
      far_s(near_s),
      card_s(near_s),
      latency_s(near_s),
      charge_per_s(near_s),
      sum_near_s(near_s),
      sum_far_s(near_s),
      sum_card_s(near_s) {
  const bool mesh = space.context.framework.sums == FrameworkStyle::Sums::mesh;
  const auto sum_rate = mesh ? least_s_per_byte : least_step_s_per_byte;
  const auto alike = [&](const SpaceOption& a, const SpaceOption& b) {
    return a.shape == b.shape && space.kinds[a.kind].gpu_type == space.kinds[b.kind].gpu_type;
  };
  const auto keep_least = [&](const SpaceOption& of, std::vector<double>& values, double value) {
    for (size_t o = 0; o < space.options.size(); ++o)
      if (alike(of, space.options[o])) values[o] = std::min(values[o], value);
  };
  const auto outside = [&](const SpaceOption& of) { return !zones.contains(space.kinds[of.kind].zone); };
  for (const SpaceOption& from : space.options) {
    if (outside(from)) continue;
    keep_least(from, charge_per_s, space.kinds[from.kind].rate[space.charged].busy_per_s);
    for (const SpaceOption& to : space.options) {
      if (outside(to)) continue;
      const LinkCurve* near = space.kinds.find_link(from.kind, to.kind, true);
      keep_least(from, near_s, least_s_per_byte(near, 1));
      keep_least(from, sum_near_s, sum_rate(near, 1));
      const LinkCurve* far = space.kinds.find_link(from.kind, to.kind, false);
      keep_least(from, far_s, least_s_per_byte(far, 1));
      keep_least(from, card_s, least_s_per_byte(far, kManySenders));
      keep_least(from, sum_far_s, sum_rate(far, 1));
      keep_least(from, sum_card_s, sum_rate(far, kManySenders));
      if (far != nullptr) keep_least(from, latency_s, far->latency_s());
    }
  }
  for (std::vector<double>* values :
       {&near_s, &far_s, &card_s, &latency_s, &sum_near_s, &sum_far_s, &sum_card_s})
    std::replace(values->begin(), values->end(), kNever, 0.0);
}

double GroupWay::mesh_s_per_byte(int replicas, bool alone, bool grouped) const {
  if (replicas < 2) return 0;
  // To every other one goes a part; those of a node are near, and all of them send over its cards.
  const double all = replicas;
  double least = kNever;
  for (int here = 1; here <= std::min(near_replicas, replicas); ++here) {
    const double cards = card_s * (alone ? 1 : here);
    least = std::min(
        least, std::max({near_s * (here - 1) / all, far_s * (all - here) / all, cards * (all - here) / all}));
    for (int group = 2; grouped && 2 * group <= replicas; ++group) {
      if (replicas % group != 0) continue;
      // Of the own group, and of those with copies of the own part, which exchange it in two phases.
      const int in_group = std::min(here, group), copies = replicas / group;
      for (int members = 1; members <= in_group; ++members) {
        const int same = std::min(copies, here - members + 1);
        const double far = (group - members + 2.0 * (copies - same) / copies) / group,
                     near = (members - 1 + 2.0 * (same - 1) / copies) / group;
        least = std::min(least, std::max({near_s * near, far_s * far, cards * far}));
      }
    }
  }
  return least;
}

// Rings within a group, and those over copies, leave a node with as many bytes as one of all replicas, but
// from several GPUs; on the node, half of them is the least.
double GroupWay::ring_s_per_byte(int replicas, int most_near_replicas, bool grouped) const {
  if (replicas < 2) return 0;
  const double leaving_s = std::max(far_s / most_near_replicas, card_s);
  const double on_several = std::max(far_s, card_s), on_fewer = std::max(near_s, leaving_s);
  double least = most_near_replicas > 1 ? std::min(on_several, on_fewer) : on_several;
  if (grouped && most_near_replicas > 1) least = std::min(least, std::max(leaving_s, near_s / 2));
  if (replicas <= near_replicas) least = std::min(least, near_s);
  return least * (replicas - 1) / replicas;
}

GroupWays::GroupWays(const Space& space, IterationModel& model, const ZoneRates& rates,
                     const Question& question)
    : space_(space), model_(model), question_(question) {
  std::map<std::string, int> numbers;
  for (size_t p = 0; p < space.pools.size(); ++p) {
    const SpacePool& pool = space.pools[p];
    if (pool.joint || pool.options.empty() || !question.zones.contains(space.resources.pools[p].zone))
      continue;
    const auto [number, added] =
        numbers.try_emplace(space.resources.pools[p].gpu_type, static_cast<int>(supplies.size()));
    if (added) supplies.emplace_back();
    add_pool(pool, number->second);
  }
  mesh = space.context.framework.sums == FrameworkStyle::Sums::mesh;
  split = question.split_backward && std::ranges::any_of(ways, [&](const GroupWay& way) {
            return space.times(way.option, question.microbatch).weights(0, space.layers()) > 0;
          });
  find_sum_rates(rates);
  find_needs(rates);
  find_messages(rates);
}

void GroupWays::add_pool(const SpacePool& pool, int number) {
  GpuSupply& supply = supplies[static_cast<size_t>(number)];
  supply.gpus += pool.gpus;
  supply.nodes += static_cast<double>(pool.nodes.size());
  supply.node_gpus = std::max(supply.node_gpus, pool.node_gpus());
  for (const int option : pool.options) {
    const SpaceOption& of = space_.options[static_cast<size_t>(option)];
    supply.least_gpus = std::min(supply.least_gpus, of.shape.gpus());
    supply.most_gpus = std::max(supply.most_gpus, of.shape.gpus());
    // Alike in all zones: the rates are those of the best.
    const bool known = std::any_of(ways.begin(), ways.end(), [&](const GroupWay& other) {
      return other.supply == number && space_.options[static_cast<size_t>(other.option)].shape == of.shape;
    });
    if (known || !space_.has_times(option, question_.microbatch)) continue;
    overhead_s = std::min(overhead_s, space_.kinds[of.kind].profile->overheads.iteration_overhead_s);
    for (const RecomputeRange& recompute : recompute_ranges(option)) {
      GroupWay way;
      way.supply = number;
      way.option = option;
      way.gpus = of.shape.gpus();
      way.recompute = recompute;
      ways.push_back(way);
      rooms_.emplace_back();
      const Room& room = this->room(static_cast<int>(ways.size()) - 1, 0);
      const bool everything = fits(way, 0, space_.layers(), space_.layers());
      if (room.head + room.middle + room.tail == 0) {
        ways.pop_back();
        rooms_.pop_back();
      }
      if (everything) break;  // and need not recompute
    }
  }
}

// Ascending by time; what one has room for, the next ones have. The average of several blocks is within the
// convex hull of the levels, so along the lower hull from one point to the next is a range.
std::vector<RecomputeRange> GroupWays::recompute_ranges(int option) const {
  std::vector<RecomputeRange> ranges(1);
  if (!question_.recompute || !space_.can_recompute(option, Recompute::full)) return ranges;
  const FrameworkStyle& style = space_.context.framework;
  if (!style.recompute_parts && style.recompute_some == FrameworkStyle::SomeBlocks::none) {
    ranges.push_back({true, Recompute::full});
    return ranges;
  }
  GroupWay without;
  without.option = option;
  if (fits(without, 0, space_.layers(), space_.layers())) return ranges;
  const KindTimes& times = space_.times(option, question_.microbatch);
  const std::vector<LayerSizes>& sizes =
      *space_.kinds[space_.options[static_cast<size_t>(option)].kind].sizes;
  std::array<double, kRecomputeLevels> least_s;
  least_s.fill(kNever);
  bool alike = true;
  for (size_t block = 1; block + 1 < sizes.size(); ++block)
    for (const Recompute level : space_.levels(option)) {
      const int layer = static_cast<int>(block);
      double& least = least_s[static_cast<size_t>(level)];
      least = std::min(least, times.again(level, layer, layer + 1));
      alike = alike && sizes[block].kept_bytes(level) == sizes[1].kept_bytes(level);
    }
  ranges.clear();
  // Of unlike blocks it matters which ones recompute.
  if (!alike) return {{false, space_.levels(option).back()}};
  const auto again_s = [&](Recompute level) { return least_s[static_cast<size_t>(level)]; };
  const auto kept = [&](Recompute level) { return static_cast<double>(sizes[1].kept_bytes(level)); };
  const std::vector<Recompute> levels = style.recompute_parts
                                            ? lower_hull(space_.levels(option), again_s, kept)
                                            : std::vector{Recompute::none, Recompute::full};
  for (size_t i = 0; i + 1 < levels.size(); ++i) {
    const double begin_s = again_s(levels[i]), length_s = again_s(levels[i + 1]) - begin_s;
    // What costs next to nothing is one range.
    const int parts = length_s < kShortRange * again_s(Recompute::full) ? 1 : 2;
    for (int part = 0; part < parts; ++part)
      ranges.push_back(
          {false, levels[i], levels[i + 1], (part + 1.0) / parts, begin_s + length_s * part / parts});
  }
  return ranges;
}

StageRecompute RecomputeRange::of_blocks(int blocks) const {
  const auto deep_blocks = static_cast<int>(std::ceil(deep_part * std::max(0, blocks)));
  if (deep_part > 0 && deep_blocks >= blocks) return deep;
  return {deep, deep_blocks, level};
}

// A ring may pass other nodes, with other links; it leaves a node from any of the node's GPUs.
void GroupWays::find_sum_rates(const ZoneRates& rates) {
  double least_near_s = kNever;
  std::vector<double> far_s(supplies.size(), kNever), card_s(far_s);
  for (GroupWay& way : ways) {
    const auto s = static_cast<size_t>(way.supply), option = static_cast<size_t>(way.option);
    // The others on its node may be smaller.
    way.near_replicas = 1 + std::max(0, supplies[s].node_gpus - way.gpus) / supplies[s].least_gpus;
    most_near_replicas_ = std::max(most_near_replicas_, way.near_replicas);
    least_near_s = std::min(least_near_s, rates.sum_near_s[option]);
    far_s[s] = std::min(far_s[s], rates.sum_far_s[option]);
    card_s[s] = std::min(card_s[s], rates.sum_card_s[option]);
  }
  for (GroupWay& way : ways) {
    const auto s = static_cast<size_t>(way.supply), option = static_cast<size_t>(way.option);
    way.near_s = (mesh ? rates.sum_near_s[option] : least_near_s) / way.gpus;
    way.far_s = (mesh ? rates.sum_far_s[option] : far_s[s]) / way.gpus;
    way.card_s = mesh ? rates.sum_card_s[option] : card_s[s];
  }
}

// Of what one replica sends, and of that of all on its node.
std::pair<double, double> GroupWays::sums_s_per_byte(const GroupWay& way) const {
  double alone = kNever, all = kNever;
  for (int replicas = question_.replicas; replicas <= question_.most_replicas; ++replicas) {
    alone = std::min(alone, mesh ? way.mesh_s_per_byte(replicas, true, grouped)
                                 : way.ring_s_per_byte(replicas, most_near_replicas_, grouped));
    all = std::min(all, mesh ? way.mesh_s_per_byte(replicas, false, grouped) : alone);
  }
  return {alone, all};
}

void GroupWays::find_needs(const ZoneRates& rates) {
  const int layers = space_.layers();
  const FrameworkStyle& style = space_.context.framework;
  const Precision precision = space_.context.precision;
  const Zero zero = std::max(question_.zero, style.zero);
  const bool sharded = shards_optimizer(zero), gathers_after = sharded && zero < Zero::parameters;
  const double shards = sharded ? space_.most_sharers(question_.most_replicas) : 1;
  grouped = question_.grouped && sharded && space_.most_sharers(question_.most_replicas) > 3;
  phases = sharded ? 1 : 2;
  gathered = question_.replicas > 1 && gathers_after
                 ? style.weight_bytes(precision) / style.sync_bytes_at(precision)
                 : 0;
  const auto for_each_layer = [&](const auto& visit) {
    for (int layer = 0; layer < layers; ++layer)
      visit(layer == 0 ? kFirst : layer + 1 == layers ? kLast : kBlock, layer);
  };
  gradient_bytes.fill(kNever);
  for (const SpaceOption& option : space_.options)
    for_each_layer([&](LayerKind kind, int layer) {
      double parameters = space_.kinds.parameters(option.kind, layer, layer + 1);
      // Tied matrices are one along a ring where the same ranks hold both, and after rounds.
      if (kind == kLast && (!mesh || zero >= Zero::gradients))
        parameters -= static_cast<double>(space_.kinds[option.kind].sizes->back().tied_parameters);
      gradient_bytes[kind] =
          std::min(gradient_bytes[kind], parameters * option.shape.parts() * style.sync_bytes_at(precision));
    });

  std::vector<double> least_charge(static_cast<size_t>(layers), kNever);
  fastest.fill(kNoWay);
  first_sum_s = question_.replicas > 1 ? kNever : 0;
  last_sum_s = first_sum_s;
  for (size_t w = 0; w < ways.size(); ++w) {
    GroupWay& way = ways[w];
    const auto option = static_cast<size_t>(way.option);
    double alone_s_per_byte = 0, s_per_byte = 0;
    std::tie(alone_s_per_byte, s_per_byte) = sums_s_per_byte(way);
    if (question_.replicas > 1) {
      first_sum_s = std::min(first_sum_s, phases * gradient_bytes[kFirst] * alone_s_per_byte);
      last_sum_s =
          std::min(last_sum_s, phases * *std::min_element(gradient_bytes.begin(), gradient_bytes.end()) *
                                   alone_s_per_byte);
    }
    const double gather_s_per_byte = grouped ? std::min(s_per_byte, way.near_s / 2) : s_per_byte;
    const KindTimes& times = space_.times(way.option, question_.microbatch);
    const Room& room = this->room(static_cast<int>(w), 0);
    const bool holds[3] = {room.head > 0, std::max({room.head - 1, room.middle, room.tail - 1}) > 0,
                           room.tail > 0};
    way.needs.fill(kNoWay);
    for_each_layer([&](LayerKind kind, int layer) {
      const auto l = static_cast<size_t>(layer);
      const double sum_s = gradient_bytes[kind] * s_per_byte;
      const RecomputeRange& range = way.recompute;
      const double again_s = range.uniform    ? times.again(range.level, layer, layer + 1)
                             : kind == kBlock ? range.least_s
                                              : 0;
      const LayerNeeds of{times.forward(layer, layer + 1),
                          times.backward(Recompute::none, layer, layer + 1) + again_s,
                          split ? times.weights(layer, layer + 1) : 0,
                          phases * gradient_bytes[kind] * alone_s_per_byte,
                          phases * sum_s,
                          (times.update_s[l + 1] - times.update_s[l]) / shards +
                              gathered * gradient_bytes[kind] * gather_s_per_byte};
      way.model_s += of.both_s();
      if (!holds[kind]) return;
      way.needs[kind] = least_of(way.needs[kind], of);
      least_charge[l] = std::min(least_charge[l], of.both_s() * rates.charge_per_s[option]);
    });
    for (const LayerKind kind : kLayerKinds) fastest[kind] = least_of(fastest[kind], way.needs[kind]);
  }
  // All wait for it; unless the first group may end before the others.
  if (mesh && !split) last_sum_s = first_sum_s;
  forward_s = fastest[kFirst].forward_s + blocks() * fastest[kBlock].forward_s + fastest[kLast].forward_s;
  path_s = fastest[kFirst].trip_s() + blocks() * fastest[kBlock].trip_s() + fastest[kLast].trip_s();
  for (const double layer_charge : least_charge) charge += layer_charge;
}

// n runs of groups on one node, each without another node in between, send messages that take
//     n max(latency + bytes at a GPU's rate, n bytes at the cards' rate)
// each way, all together: convex in n, so no less than what one run takes and as much for each other one as
// that would grow at one. At the ends of a pipeline runs send one way only.
void GroupWays::find_messages(const ZoneRates& rates) {
  const double element = element_bytes(space_.context.precision);
  if (is_any(question_.microbatch)) latency_part = 1.0 / std::abs(question_.microbatch);
  message_bytes = kNever;
  for (const SpaceOption& option : space_.options) {
    const StageKind& kind = space_.kinds[option.kind];
    const double slowdown = std::min(1.0, kind.profile->overheads.message_slowdown);
    for (size_t l = 0; l + 1 < kind.sizes->size(); ++l)
      message_bytes = std::min(message_bytes, slowdown * element * std::max(1, question_.microbatch) *
                                                  static_cast<double>((*kind.sizes)[l].output_elements));
  }
  // Whoever sends them.
  struct Links {
    double near_s = kNever, port_s = kNever, card_s = kNever, latency_s = kNever;
  };
  std::vector<Links> links(supplies.size());
  double far_s = kNever;
  for (const GroupWay& way : ways) {
    const auto option = static_cast<size_t>(way.option), supply = static_cast<size_t>(way.supply);
    Links& of = links[supply];
    of.near_s = std::min(of.near_s, message_bytes * rates.near_s[option]);
    of.port_s = std::min(of.port_s, message_bytes * rates.far_s[option] / supplies[supply].most_gpus);
    of.card_s = std::min(of.card_s, message_bytes * rates.card_s[option]);
    of.latency_s = std::min(of.latency_s, latency_part * rates.latency_s[option]);
    supplies[supply].card_s = std::min(supplies[supply].card_s, rates.card_s[option]);
    supplies[supply].sum_card_s = std::min(supplies[supply].sum_card_s, rates.sum_card_s[option]);
    supplies[supply].latency_s = of.latency_s;
  }
  for (const Links& of : links) far_s = std::min(far_s, of.latency_s + of.card_s);
  for (GroupWay& way : ways) {
    const GpuSupply& supply = supplies[static_cast<size_t>(way.supply)];
    const Links& of = links[static_cast<size_t>(way.supply)];
    const double beyond_near_s = std::max(
        0.0, of.latency_s + std::max(of.port_s, of.card_s) - std::min(far_s, of.near_s / supply.least_gpus));
    way.near_trip_s = 2 * std::min(far_s, of.near_s / way.gpus);
    way.far_trip_s = 2 * beyond_near_s * way.gpus / supply.node_gpus;
    way.end_trip_s = beyond_near_s > 0 && of.card_s >= of.port_s ? beyond_near_s + of.card_s : beyond_near_s;
  }
}

bool GroupWays::fits(const GroupWay& way, int first, int end, int in_flight) const {
  if (first >= end) return true;
  StageMemoryInput stage;
  stage.kind = space_.options[static_cast<size_t>(way.option)].kind;
  stage.first_layer = first;
  stage.end_layer = end;
  stage.in_flight = in_flight;
  stage.recompute = way.recompute.of_blocks(std::min(end, space_.layers() - 1) - std::max(first, 1));
  stage.nothing_again = !way.recompute.uniform;
  stage.microbatch = is_any(question_.microbatch) ? space_.microbatches.front() : question_.microbatch;
  stage.offload = space_.most_offload(way.option);  // as if it took no time
  stage.ignores_host = space_.can_offload(way.option);
  const bool sharded = shards_optimizer(std::max(question_.zero, space_.context.framework.zero));
  stage.replicas = sharded ? space_.most_sharers(question_.most_replicas) : question_.replicas;
  stage.zero = question_.zero;
  if (model_.fits(stage)) return true;
  // Of a few layers sharded gradients and parameters need more, with whole ones of two layers beside the
  // sums.
  while (stage.zero > Zero::optimizer) {
    stage.zero = stage.zero == Zero::parameters ? Zero::gradients : Zero::optimizer;
    if (model_.fits(stage)) return true;
  }
  return false;
}

const GroupWays::Room& GroupWays::find_room(int number, int flight) const {
  const auto at = static_cast<size_t>(flight);
  std::vector<Room>& of_way = rooms_[static_cast<size_t>(number)];
  if (of_way.size() <= at) of_way.resize(std::size(kInFlight));
  Room& room = of_way[at];
  if (room.head >= 0) return room;
  const GroupWay& way = ways[static_cast<size_t>(number)];
  const int layers = space_.layers(), flying = kInFlight[at];
  if (at == 0 && fits(way, 0, layers, 1)) return room = {layers, layers - 2, layers};
  room.middle = most(layers - 2, [&](int count) { return fits(way, 1, 1 + count, flying); });
  room.head = most(layers - 1, [&](int count) { return fits(way, 0, count, flying); });
  if (at == 0) room.tail = most(layers - 1, [&](int count) { return fits(way, layers - count, layers, 1); });
  return room;
}

int GroupWays::in_flight_class(int in_flight) {
  return static_cast<int>(std::upper_bound(std::begin(kInFlight), std::end(kInFlight), in_flight) -
                          std::begin(kInFlight) - 1);
}

int GroupWays::most_blocks(int way, int flight) const {
  const Room& of = room(way, flight);
  return std::min(blocks(), std::max({of.middle, of.head - 1, of.tail - 1}));
}

double GroupWays::gpus() const {
  double gpus = 0;
  for (const GpuSupply& supply : supplies) gpus += supply.gpus;
  return gpus;
}

std::vector<double> GroupWays::prices_by_speed() const {
  std::vector<double> prices(supplies.size(), 0);
  for (const GroupWay& way : ways) {
    double& price = prices[static_cast<size_t>(way.supply)];
    price = std::max(price, 1 / (way.model_s * way.gpus));
  }
  double all = 0;
  for (size_t s = 0; s < prices.size(); ++s) all += prices[s] * supplies[s].gpus;
  for (double& price : prices) price /= all;
  return prices;
}

}  // namespace sailor::native
