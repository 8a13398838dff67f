#include "planner/scheduler/backfill_map.h"

#include <algorithm>
#include <set>

namespace sailor {

void BackfillMap::take(const std::vector<size_t>& nodes, int64_t begin_s, int64_t end_s,
                       const std::string& owner) {
  for (const size_t node : nodes) taken_.at(node).push_back({begin_s, end_s, owner});
}

void BackfillMap::release(const std::string& owner) {
  for (std::vector<Span>& spans : taken_)
    std::erase_if(spans, [&](const Span& span) { return span.owner == owner; });
}

bool BackfillMap::is_free(size_t node, int64_t begin_s, int64_t end_s) const {
  const std::vector<Span>& spans = taken_.at(node);
  return std::none_of(spans.begin(), spans.end(),
                      [&](const Span& span) { return span.begin_s < end_s && begin_s < span.end_s; });
}

std::optional<BackfillMap::Slot> BackfillMap::earliest(const std::vector<size_t>& nodes, size_t count,
                                                       int64_t from_s, int64_t length_s) const {
  std::set<int64_t> times = {from_s};  // enough nodes come free only when a span ends
  for (const size_t node : nodes) {
    for (const Span& span : taken_.at(node))
      if (span.end_s > from_s && span.end_s < kForEver) times.insert(span.end_s);
  }
  for (const int64_t begin_s : times) {
    Slot slot{begin_s, {}};
    const int64_t end_s = std::min(begin_s + length_s, kForEver);
    for (const size_t node : nodes) {
      if (slot.nodes.size() < count && is_free(node, begin_s, end_s)) slot.nodes.push_back(node);
    }
    if (slot.nodes.size() == count) return slot;
  }
  return std::nullopt;
}

}  // namespace sailor
