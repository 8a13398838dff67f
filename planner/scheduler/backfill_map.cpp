#include "planner/scheduler/backfill_map.h"

#include <algorithm>
#include <utility>

namespace sailor {

void BackfillMap::take(const std::vector<size_t>& nodes, int64_t begin_s, int64_t end_s,
                       const std::string& owner, std::optional<int64_t> kept_s) {
  for (const size_t node : nodes) {
    std::vector<Span>& spans = taken_.at(node);
    const auto after =
        std::upper_bound(spans.begin(), spans.end(), begin_s,
                         [](int64_t time_s, const Span& span) { return time_s < span.begin_s; });
    spans.insert(after, {begin_s, end_s, std::min(kept_s.value_or(begin_s), begin_s), owner});
  }
}

void BackfillMap::release(const std::string& owner) {
  for (std::vector<Span>& spans : taken_)
    std::erase_if(spans, [&](const Span& span) { return span.owner == owner; });
}

bool BackfillMap::is_free(size_t node, int64_t begin_s, int64_t end_s) const {
  const std::vector<Span>& spans = taken_.at(node);
  return std::none_of(spans.begin(), spans.end(),
                      [&](const Span& span) { return span.kept_s < end_s && begin_s < span.end_s; });
}

std::optional<BackfillMap::Slot> BackfillMap::earliest(const std::vector<size_t>& nodes, size_t count,
                                                       int64_t from_s, int64_t length_s) const {
  // Where each node's windows of possible begins open (+1) and close (-1).
  std::vector<std::pair<int64_t, int>> windows;
  for (const size_t node : nodes) {
    int64_t free_s = from_s;
    for (const Span& span : taken_.at(node)) {
      if (span.kept_s - length_s >= free_s) {
        windows.emplace_back(free_s, 1);
        windows.emplace_back(span.kept_s - length_s + 1, -1);
      }
      free_s = std::max(free_s, span.end_s);
    }
    if (free_s < kForEver) windows.emplace_back(free_s, 1);
  }
  std::sort(windows.begin(), windows.end());
  size_t open = 0;
  for (size_t i = 0; i < windows.size(); ++i) {
    open += static_cast<size_t>(windows[i].second);
    const bool last_of_time = i + 1 == windows.size() || windows[i + 1].first != windows[i].first;
    if (!last_of_time || open < count) continue;
    Slot slot{windows[i].first, {}};
    const int64_t end_s = std::min(slot.begin_s + length_s, kForEver);
    for (const size_t node : nodes) {
      if (slot.nodes.size() < count && is_free(node, slot.begin_s, end_s)) slot.nodes.push_back(node);
    }
    return slot;
  }
  return std::nullopt;
}

}  // namespace sailor
