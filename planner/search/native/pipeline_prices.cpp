#include "planner/search/native/pipeline_prices.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sailor::native {
namespace {

constexpr int kWorthBisections = 12;  // for the worth of a block
// Numbers of groups are distinguished up to twice that of a mean pipeline's GPUs and a few; of pipelines with
// few microbatches only the few.
constexpr int kFewGroups = 4, kFewMicrobatches = 4;

// The end of the class of numbers of interleaved groups that begins with one.
int class_end(int groups, int most) {
  return std::min(groups < 8 ? groups : groups * 5 / 4, most);
}

// A multiple of the number of groups, as interleaved pipelines have: the least that there can be of
// `microbatches` or more. Rounded up so, prices still grow with microbatches.
int whole_rounds(int microbatches, int least_groups, int most_groups) {
  int least = std::numeric_limits<int>::max();
  for (int groups = least_groups; groups <= most_groups; ++groups)
    least = std::min(least, (microbatches + groups - 1) / groups * groups);
  return least;
}

}  // namespace

double PipelinePrices::least(double s, int microbatches, bool interleave, const std::vector<double>& prices,
                             const LimitWeights& weights) {
  s_ = s - ways_.overhead_s;
  m_ = microbatches;
  gpus_.assign(prices.size(), 0);
  weights_ = weights;
  trip_price_ = weights.trips * weights.typical / (s_ * ways_.gpus());
  split_ = ways_.split && !interleave;
  if (interleave) return interleaved(prices);
  double least_price = 0;
  if (weights.waits > 0) {
    weights_ = {};
    least_price = classic(prices, 0);
    if (least_price == kNever) return kNever;
    weights_ = weights;
  }
  return classic(prices, least_price);
}

bool PipelinePrices::in_time(const LayerNeeds& of, const LayerNeeds& before, double late) const {
  const double all_s = m_ * of.both_s();
  // What follows the sums on a later group is hidden by the first forwards of those before it.
  const double first_s = ways_.fastest[kFirst].after_s;
  const double begin_s = std::max(before.forward_s + first_s, of.after_s);
  const bool by_sums = begin_s + m_ * of.forward_s + late * of.backward_s + of.sums_s <= s_ &&
                       ways_.forward_s + of.near_sums_s + first_s <= s_;
  if (split_) {
    const double sum_s = before.forward_s > 0 ? ways_.last_sum_s : ways_.first_sum_s;
    return begin_s + all_s + (several_ ? sum_s : 0) <= s_ && (!several_ || by_sums);
  }
  const double end_s = begin_s + all_s + before.backward_s;
  if (!several_) return end_s <= s_;
  return end_s + ways_.first_sum_s <= s_ && begin_s + all_s + ways_.last_sum_s <= s_ && by_sums;
}

bool PipelinePrices::in_time(const GroupWay& way, int first, int end) const {
  const bool is_first = first == 0, is_last = end == ways_.blocks() + 2;
  LayerNeeds of, before;
  if (is_first) of.add(way.needs[kFirst], 1);
  if (is_last) of.add(way.needs[kLast], 1);
  if (const int blocks = end - first - is_first - is_last; blocks > 0) of.add(way.needs[kBlock], blocks);
  if (!is_first) {
    before.add(ways_.fastest[kFirst], 1);
    before.add(ways_.fastest[kBlock], first - 1);
  }
  return in_time(of, before, m_ - 1);
}

double PipelinePrices::classic(const std::vector<double>& prices, double least_price) {
  const int layers = ways_.blocks() + 2;
  most_ =
      std::min(layers, m_ < kFewMicrobatches ? kFewGroups : kFewGroups + static_cast<int>(2 * mean_gpus_));
  price_.assign(place(layers + 1, 0), kNever);
  choice_.assign(price_.size(), {});
  price_[place(layers, 0)] = 0;
  flights_.clear();
  for (int behind = 0; behind <= most_; ++behind)
    flights_.push_back(GroupWays::in_flight_class(std::min(behind + 1, m_)));
  std::vector<int> earliest(ways_.ways.size(), layers);  // first layer in time, by way
  for (int end = layers; end > 0; --end) {
    int least_behind = 0, most_behind = most_;
    while (least_behind <= most_ && price_[place(end, least_behind)] == kNever) ++least_behind;
    if (least_behind > most_) continue;
    while (price_[place(end, most_behind)] == kNever) --most_behind;
    steps_ += static_cast<int64_t>(ways_.ways.size()) + most_;
    for (size_t w = 0; w < ways_.ways.size(); ++w) {
      const GroupWay& way = ways_.ways[w];
      int& in_time_from = earliest[w];
      in_time_from = std::min(in_time_from, end);
      while (in_time_from > 0 && in_time(way, in_time_from - 1, end)) --in_time_from;
      const double price = prices[static_cast<size_t>(way.supply)] * way.gpus;
      LayerNeeds needs;
      if (end == layers) needs.add(way.needs[kLast], 1);
      for (int first = end - 1; first >= in_time_from; --first) {
        if (first < layers - 1) needs.add(way.needs[first == 0 ? kFirst : kBlock], 1);
        const double waits = price +
                             waiting(needs, price, least_price * (split_ ? needs.forward_s : needs.both_s())),
                     less = weights_.waits * price * needs.forward_s / s_;
        const double trips = trip(way, needs, first == 0, end == layers);
        const double base = waits + trips;
        const double* rest = &price_[place(end, 0)];
        double* sums = &price_[place(first, 0)];
        const auto keep = [&](int behind, double sum) {
          const int at = std::min(behind + 1, most_);
          if (sum >= sums[at]) return;
          sums[at] = sum;
          choice_[place(first, at)] = {static_cast<int>(w), end, behind};
        };
        int behind = least_behind;
        for (; behind <= most_behind; ++behind) {
          if (!has_room(static_cast<int>(w), first, end, flights_[static_cast<size_t>(behind)])) break;
          const bool exactly = behind + 1 < most_;
          const int most_groups = exactly ? behind + 1 : layers - first;
          double sum = rest[behind] + base - less * std::min(most_groups - 1, m_ - 1);
          if (first == 0) sum += all_trips(needs, most_groups, exactly);
          keep(behind, sum);
        }
        steps_ += behind - least_behind;
        if (behind == least_behind) break;
      }
    }
  }
  const auto of_all = price_.begin() + most_ + 1;
  const int groups = static_cast<int>(std::min_element(price_.begin(), of_all) - price_.begin());
  if (price_[place(0, groups)] == kNever) return kNever;
  gpus_.assign(prices.size(), 0);
  for (size_t at = place(0, groups); at < place(layers, 0); at = place(choice_[at].end, choice_[at].behind)) {
    const GroupWay& way = ways_.ways[static_cast<size_t>(choice_[at].way)];
    gpus_[static_cast<size_t>(way.supply)] += way.gpus;
  }
  return price_[place(0, groups)];
}

bool PipelinePrices::has_room(int way, int first, int end, int flight) const {
  const int layers = ways_.blocks() + 2;
  if (end == layers) return first >= layers - ways_.room(way, 0).tail;
  const GroupWays::Room& room = ways_.room(way, flight);
  return end <= room.head || (first > 0 && end - first <= room.middle);
}

double PipelinePrices::waiting(const LayerNeeds& needs, double price, double others) const {
  if (weights_.waits == 0) return 0;
  const double sum_s = split_ ? ways_.last_sum_s : ways_.first_sum_s;
  const double after_s = several_ ? sum_s + ways_.fastest[kFirst].after_s : 0;
  const double own_s = (m_ - 1) * needs.both_s() + after_s;
  return weights_.waits * (price * (own_s / s_ - 1) + others / s_);
}

double PipelinePrices::trip(const GroupWay& way, const LayerNeeds& needs, bool first, bool last) const {
  if (weights_.trips == 0) return 0;
  if (m_ < weights_.typical) return trip_price_ * (way.far_trip_s - 2 * way.end_trip_s);
  const double messages_s = (last ? 0 : way.near_trip_s) + way.far_trip_s - (first + last) * way.end_trip_s;
  return trip_price_ * ((split_ ? needs.trip_s() : needs.both_s()) + messages_s);
}

double PipelinePrices::all_trips(const LayerNeeds& first, int most_groups, bool exactly) const {
  if (weights_.trips == 0 || m_ < weights_.typical) return 0;
  const int rounds = (m_ - 1) / most_groups, others = (m_ - 1) % most_groups;
  const double later_s = split_ ? first.weight_s : 0;
  const double others_s = exactly ? others * ((rounds > 0 ? first.both_s() : first.backward_s) - later_s) : 0;
  return trip_price_ * (others_s - s_) / (1 + rounds);
}

double PipelinePrices::interleaved(const std::vector<double>& prices) {
  double least = kNever, worth = 0;
  const int microbatches = m_;
  const int most_groups = (ways_.blocks() + 2) / 2;
  for (int groups = 2, end = 0; groups <= most_groups; groups = end + 1) {
    end = class_end(groups, most_groups);
    m_ = whole_rounds(microbatches, groups, end);
    find_slots(groups, end, prices);
    const double price = fill_slots(least, worth);
    if (price >= least) continue;
    least = price;
    gpus_ = used_;
  }
  return least;
}

// Of [least, most] groups.
void PipelinePrices::find_slots(int least, int most, const std::vector<double>& prices) {
  slots_.clear();
  const auto in_flight = [&](int behind) {
    return GroupWays::in_flight_class(std::min(2 * behind + 1, least));
  };
  for (int behind = 0, end = 0; behind < least; behind = end) {
    end = behind + 1;
    while (behind > 0 && end + 1 < least && in_flight(end) == in_flight(behind)) ++end;
    slots_.push_back(
        slot_of(end - behind, in_flight(behind), end == least, behind, least - end, most, prices));
  }
  if (most == least) return;
  // There may be more of them.
  slots_.push_back(slot_of(most - least, in_flight(least), false, 1, 0, most, prices));
  slots_.back().ways.push_back({});
}

PipelinePrices::Slot PipelinePrices::slot_of(int count, int flight, bool first, int behind, int before,
                                             int most, const std::vector<double>& prices) const {
  Slot slot;
  slot.count = count;
  const bool last = behind == 0;
  double cheapest = kNever;
  for (const GroupWay& way : ways_.ways)
    cheapest = std::min(cheapest, way.gpus * prices[static_cast<size_t>(way.supply)]);
  LayerNeeds waits;
  waits.add(ways_.fastest[kBlock], std::max(0, before - 1));  // the first layer may be short
  const double late = ways_.mesh ? std::max(0, m_ - most) : m_ - 1;
  for (size_t w = 0; w < ways_.ways.size(); ++w) {
    const GroupWay& way = ways_.ways[w];
    const int room = ways_.most_blocks(static_cast<int>(w), flight);
    // Chunks of a group may recompute or not. With room for F blocks that do and N that do not, a that do and
    // b that do not fit only if a / (F + 1) + b / (N + 1) is less than 1.
    // Ranges hold for the average of all blocks of a group.
    const bool recomputes = way.recompute.uniform && way.recompute.level != Recompute::none;
    const GroupWay* without = recomputes && w > 0 ? &way - 1 : nullptr;
    if (without && without->option != way.option) without = nullptr;
    const double block_s = without ? std::min(way.needs[kBlock].both_s(), without->needs[kBlock].both_s())
                                   : way.needs[kBlock].both_s();
    const int room_without = without ? ways_.most_blocks(static_cast<int>(w) - 1, flight) : 0;
    const auto again = [&](double blocks) {
      if (room_without == 0 || room <= room_without) return blocks;
      const double some = (blocks / (1 + room_without) - 1) / (1.0 / (1 + room_without) - 1.0 / (1 + room));
      return std::clamp(some, 0.0, blocks);
    };
    const auto needs = [&](int blocks) {
      LayerNeeds of;
      const double recomputed = again(blocks);
      if (recomputed > 0) of.add(way.needs[kBlock], recomputed);
      if (blocks > recomputed) of.add(without->needs[kBlock], blocks - recomputed);
      if (first) of.add(way.needs[kFirst], 1);
      if (last) of.add(way.needs[kLast], 1);
      return of;
    };
    const auto fits = [&](int blocks) { return in_time(needs(blocks), waits, late); };
    const int least_blocks = first || last ? 0 : 1;
    int low = least_blocks, high = room;
    if (low > high || !fits(low)) continue;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (fits(middle))
        low = middle;
      else
        high = middle - 1;
    }
    const double price = way.gpus * prices[static_cast<size_t>(way.supply)];
    const auto add = [&](int blocks) {
      const LayerNeeds of = needs(blocks);
      const double others = price * of.both_s() + (first ? 0 : behind * cheapest * block_s);
      slot.ways.push_back(
          {price + waiting(of, price, others), static_cast<double>(blocks), static_cast<int>(w)});
    };
    if (weights_.waits > 0 && low > least_blocks) {
      add(least_blocks);
      if (room_without > 0 && room_without + 1 > least_blocks && room_without + 1 < low)
        add(room_without + 1);
    }
    add(low);
  }
  return slot;
}

// All blocks at the least price, or `enough`.
double PipelinePrices::fill_slots(double enough, double& worth) {
  const double blocks = ways_.blocks();
  double most_blocks = 0, low = 0, high = 0;
  for (const Slot& slot : slots_) {
    if (slot.ways.empty()) return kNever;
    double most = 0;
    for (const SlotWay& way : slot.ways) {
      most = std::max(most, way.blocks);
      high = std::max(high, way.price);
    }
    most_blocks += slot.count * most;
    steps_ += static_cast<int64_t>(slot.ways.size());
  }
  if (most_blocks < blocks) return kNever;
  double best = 0, best_worth = 0;
  const auto look = [&](double y) {
    double sum = y * blocks, held = 0;
    for (const Slot& slot : slots_) {
      const SlotWay* most = &slot.ways.front();
      for (const SlotWay& way : slot.ways)
        if (y * way.blocks - way.price > y * most->blocks - most->price) most = &way;
      sum -= slot.count * (y * most->blocks - most->price);
      held += slot.count * most->blocks;
      steps_ += static_cast<int64_t>(slot.ways.size());
    }
    if (sum > best) {
      best = sum;
      best_worth = y;
    }
    (held < blocks ? low : high) = y;
  };
  if (worth > 0 && worth < high) look(worth);
  for (int i = 0; i < kWorthBisections && best < enough; ++i) look((low + high) / 2);
  worth = best_worth;
  if (best >= enough) return best;
  used_.assign(gpus_.size(), 0);
  for (const Slot& slot : slots_) {
    const SlotWay* most = &slot.ways.front();
    for (const SlotWay& way : slot.ways)
      if (worth * way.blocks - way.price > worth * most->blocks - most->price) most = &way;
    if (most->way < 0) continue;
    const GroupWay& way = ways_.ways[static_cast<size_t>(most->way)];
    used_[static_cast<size_t>(way.supply)] += slot.count * way.gpus;
  }
  return best;
}

}  // namespace sailor::native
