#include "trainer/checkpoint/fetch_plan.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <set>
#include <string>

namespace sailor {
namespace {

constexpr int64_t kSharedElements = 1 << 14;  // from here on a range is taken from all its holders

class FetchPlanner {
 public:
  FetchPlanner(const RankLayout& layout, int rank, int64_t element_bytes, const RangesByParameter& known)
      : layout_(layout), rank_(rank), element_bytes_(element_bytes), known_(known) {}

  void add(const NeededRange& needed) {
    const int64_t end = needed.first + needed.count;
    std::vector<const KnownRange*> ranges;
    std::set<int64_t> cuts = {needed.first, end};  // between two of them the holders are the same
    for (const KnownRange& range : known_.at(needed.parameter)) {
      if (range.end <= needed.first || range.first >= end) continue;
      ranges.push_back(&range);
      cuts.insert(std::max(range.first, needed.first));
      cuts.insert(std::min(range.end, end));
    }
    for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
      std::vector<const KnownRange*> holders;
      for (const KnownRange* range : ranges) {
        if (range->first <= *cut && range->end > *cut) holders.push_back(range);
      }
      share(needed, *cut, *std::next(cut), closest(std::move(holders)));
    }
  }

  const std::vector<Fetch>& fetches() const { return fetches_; }

 private:
  // The range in this process alone, if there is one; else those on this rank's node; else all.
  std::vector<const KnownRange*> closest(std::vector<const KnownRange*> holders) const {
    const std::string& node = node_of(rank_);
    for (const KnownRange* holder : holders) {
      if (holder->rank == rank_) return {holder};
    }
    std::vector<const KnownRange*> near;
    for (const KnownRange* holder : holders) {
      if (!node.empty() && node_of(holder->rank) == node) near.push_back(holder);
    }
    return near.empty() ? holders : near;
  }

  void share(const NeededRange& needed, int64_t first, int64_t end,
             const std::vector<const KnownRange*>& holders) {
    const auto take = [&](const KnownRange& from, int64_t begin, int64_t count) {
      if (count > 0)
        fetches_.push_back({from.rank, from.state, from.range, needed.tensor, begin - from.first, count,
                            needed.memory + (begin - needed.first) * element_bytes_});
    };
    // Ranks that need the same begin with different holders.
    const auto holder = [&](std::size_t i) -> const KnownRange& { return *holders[i % holders.size()]; };
    const auto own = static_cast<std::size_t>(rank_);
    if (end - first < kSharedElements) return take(holder(own + small_++), first, end - first);
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const BlockRange block = block_of(static_cast<std::size_t>(end - first),
                                        static_cast<int>(holders.size()), static_cast<int>(i));
      take(holder(own + i), first + static_cast<int64_t>(block.first), static_cast<int64_t>(block.count));
    }
  }

  // Nothing is known of ranks that are not in the plan and only give.
  const std::string& node_of(int rank) const {
    static const std::string unknown;
    return rank < layout_.size() ? layout_.slots()[static_cast<std::size_t>(rank)].node : unknown;
  }

  const RankLayout& layout_;
  const int rank_;
  const int64_t element_bytes_;
  const RangesByParameter& known_;
  std::vector<Fetch> fetches_;
  std::size_t small_ = 0;
};

}  // namespace

NumberList told(const std::vector<HeldState>& held) {
  NumberList list = {static_cast<int64_t>(held.size())};
  for (const HeldState& state : held) {
    const LossScaleState& scale = state.loss_scale;
    list.insert(list.end(), {state.version.steps_done, state.version.lineage, state.optimizer_steps,
                             state.copy ? 1 : 0, static_cast<int64_t>(state.ranges.size()),
                             std::bit_cast<int64_t>(scale.scale), scale.clean_steps, scale.tolerated,
                             scale.skipped_steps, scale.skipped_at_minimum, state.spikes.skipped_steps,
                             state.spikes.skipped_in_row, static_cast<int64_t>(state.spikes.norms.size())});
    for (const double norm : state.spikes.norms) list.push_back(std::bit_cast<int64_t>(norm));
    for (const HeldRange& range : state.ranges)
      list.insert(list.end(), {static_cast<int64_t>(range.parameter), range.first, range.count});
  }
  return list;
}

std::vector<KnownState> heard(const std::vector<NumberList>& lists) {
  std::vector<KnownState> states;
  for (std::size_t rank = 0; rank < lists.size(); ++rank) {
    auto next = lists[rank].begin();
    const auto count = static_cast<std::size_t>(*next++);
    for (std::size_t s = 0; s < count; ++s) {
      KnownState state;
      state.version = {next[0], next[1]};
      state.optimizer_steps = next[2];
      state.copy = next[3] != 0;
      const auto ranges = static_cast<std::size_t>(next[4]);
      state.loss_scale = {std::bit_cast<double>(next[5]), next[6], next[7], next[8], next[9]};
      state.spikes.skipped_steps = next[10];
      state.spikes.skipped_in_row = next[11];
      const auto norms = next[12];
      next += 13;
      for (const auto end = next + norms; next != end; ++next)
        state.spikes.norms.push_back(std::bit_cast<double>(*next));
      for (std::size_t r = 0; r < ranges; ++r, next += 3)
        state.ranges.push_back(
            {static_cast<std::size_t>(next[0]), {next[1], next[1] + next[2], static_cast<int>(rank), s, r}});
      states.push_back(std::move(state));
    }
  }
  return states;
}

std::vector<StateChoice> choices_of(const std::vector<KnownState>& known) {
  std::set<StateVersion, std::greater<>> versions;
  for (const KnownState& state : known) versions.insert(state.version);
  std::vector<StateChoice> choices;
  for (const StateVersion& version : versions) {
    choices.push_back({version, false});
    choices.push_back({version, true});
  }
  return choices;
}

RangesByParameter ranges_of(const std::vector<KnownState>& known, const StateChoice& choice) {
  RangesByParameter ranges;
  for (const KnownState& state : known) {
    if (!choice.admits(state)) continue;
    for (const auto& [parameter, range] : state.ranges) ranges[parameter].push_back(range);
  }
  return ranges;
}

int64_t missing(const std::vector<NeededRange>& needed, const RangesByParameter& known) {
  RangesByParameter sorted = known;
  for (auto& [parameter, ranges] : sorted) {
    std::sort(ranges.begin(), ranges.end(),
              [](const KnownRange& a, const KnownRange& b) { return a.first < b.first; });
  }
  int64_t missing = 0;
  for (const NeededRange& range : needed) {
    int64_t at = range.first;
    const int64_t end = range.first + range.count;
    for (const KnownRange& held : sorted[range.parameter]) {
      if (held.first >= end) break;
      missing += std::max<int64_t>(0, held.first - at);
      at = std::max(at, std::min(held.end, end));
    }
    missing += end - at;
  }
  return missing;
}

std::vector<Fetch> plan_fetches(const RankLayout& layout, int rank, int64_t element_bytes,
                                const std::vector<NeededRange>& needed, const RangesByParameter& known) {
  FetchPlanner planner(layout, rank, element_bytes, known);
  for (const NeededRange& range : needed) planner.add(range);
  return planner.fetches();
}

}  // namespace sailor
