#include "planner/search/native/pipeline_prices.h"

#include <algorithm>
#include <cmath>

namespace sailor::native {
namespace {

constexpr int kBisections = 12;  // for the worth of a block

// The end of the class of numbers of interleaved groups that begins with one.
int class_end(int groups, int most) {
  return std::min(groups < 8 ? groups : groups * 5 / 4, most);
}

}  // namespace

double PipelinePrices::least(double s, int microbatches, bool interleave, const std::vector<double>& prices) {
  s_ = s - ways_.overhead_s;
  m_ = microbatches;
  gpus_.assign(prices.size(), 0);
  return interleave ? interleaved(prices) : classic(prices);
}

bool PipelinePrices::in_time(const LayerNeeds& of, const LayerNeeds& before, double late) const {
  const double all_s = m_ * of.both_s();
  if (!several_) return before.both_s() + all_s <= s_ && before.forward_s + all_s + of.after_s <= s_;
  return before.both_s() + all_s + ways_.first_sum_s + of.after_s <= s_ &&
         before.forward_s + m_ * of.forward_s + late * of.backward_s + of.sums_s + of.after_s <= s_;
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

double PipelinePrices::classic(const std::vector<double>& prices) {
  const int layers = ways_.blocks() + 2;
  price_.assign(static_cast<size_t>(layers) + 1, kNever);
  groups_.assign(price_.size(), layers);
  choice_.assign(price_.size(), {});
  price_.back() = groups_.back() = 0;
  std::vector<int> earliest(ways_.ways.size(), layers);  // first layer in time, by way
  for (int end = layers; end > 0; --end) {
    const auto e = static_cast<size_t>(end);
    if (price_[e] == kNever) return kNever;
    const int in_flight = std::min(groups_[e] + 1, m_);
    steps_ += static_cast<int64_t>(ways_.ways.size());
    for (size_t w = 0; w < ways_.ways.size(); ++w) {
      const GroupWay& way = ways_.ways[w];
      int& in_time_from = earliest[w];
      in_time_from = std::min(in_time_from, end);
      while (in_time_from > 0 && in_time(way, in_time_from - 1, end)) --in_time_from;
      const GroupWays::Room& room = ways_.room(static_cast<int>(w), end == layers ? 1 : in_flight);
      const int fits_from = end == layers      ? end - room.tail
                            : end <= room.head ? 0
                                               : std::max(1, end - room.middle);
      const double price = price_[e] + prices[static_cast<size_t>(way.supply)] * way.tp;
      for (int first = std::max(in_time_from, fits_from); first < end; ++first) {
        const auto f = static_cast<size_t>(first);
        groups_[f] = std::min(groups_[f], groups_[e] + 1);
        if (price >= price_[f]) continue;
        price_[f] = price;
        choice_[f] = {static_cast<int>(w), end};
      }
    }
  }
  for (int at = 0; at < layers && price_[0] < kNever; at = choice_[static_cast<size_t>(at)].end) {
    const GroupWay& way = ways_.ways[static_cast<size_t>(choice_[static_cast<size_t>(at)].way)];
    gpus_[static_cast<size_t>(way.supply)] += way.tp;
  }
  return price_[0];
}

double PipelinePrices::interleaved(const std::vector<double>& prices) {
  double least = kNever, worth = 0;
  const int most_groups = (ways_.blocks() + 2) / 2;
  for (int groups = 2, end = 0; groups <= most_groups; groups = end + 1) {
    end = class_end(groups, most_groups);
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
        slot_of(end - behind, in_flight(behind), end == least, behind == 0, least - end, most, prices));
  }
  if (most == least) return;
  // There may be more of them.
  slots_.push_back(slot_of(most - least, in_flight(least), false, false, 0, most, prices));
  slots_.back().ways.push_back({});
}

PipelinePrices::Slot PipelinePrices::slot_of(int count, int in_flight, bool first, bool last, int before,
                                             int most, const std::vector<double>& prices) const {
  Slot slot;
  slot.count = count;
  LayerNeeds waits;
  waits.add(ways_.fastest[kBlock], std::max(0, before - 1));  // the first layer may be short
  const double late = std::max(0, m_ - most);
  for (size_t w = 0; w < ways_.ways.size(); ++w) {
    const GroupWay& way = ways_.ways[w];
    const auto fits = [&](int blocks) {
      LayerNeeds of;
      if (blocks > 0) of.add(way.needs[kBlock], blocks);
      if (first) of.add(way.needs[kFirst], 1);
      if (last) of.add(way.needs[kLast], 1);
      return in_time(of, waits, late);
    };
    int low = first || last ? 0 : 1, high = ways_.most_blocks(static_cast<int>(w), in_flight);
    if (low > high || !fits(low)) continue;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (fits(middle))
        low = middle;
      else
        high = middle - 1;
    }
    slot.ways.push_back(
        {way.tp * prices[static_cast<size_t>(way.supply)], static_cast<double>(low), static_cast<int>(w)});
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
  for (int i = 0; i < kBisections && best < enough; ++i) look((low + high) / 2);
  worth = best_worth;
  if (best >= enough) return best;
  used_.assign(gpus_.size(), 0);
  for (const Slot& slot : slots_) {
    const SlotWay* most = &slot.ways.front();
    for (const SlotWay& way : slot.ways)
      if (worth * way.blocks - way.price > worth * most->blocks - most->price) most = &way;
    if (most->way < 0) continue;
    const GroupWay& way = ways_.ways[static_cast<size_t>(most->way)];
    used_[static_cast<size_t>(way.supply)] += slot.count * way.tp;
  }
  return best;
}

}  // namespace sailor::native
