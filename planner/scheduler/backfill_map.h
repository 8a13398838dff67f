// Intervals in which nodes are taken, for backfill. Nodes are numbers from 0, times are whole seconds. Every
// interval has an owner, by whose name it can be released. Value type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sailor {

class BackfillMap {
 public:
  // Later than any time, but sums of two do not overflow.
  static constexpr int64_t kForEver = INT64_MAX / 2;

  explicit BackfillMap(size_t nodes) : taken_(nodes) {}

  // `kept_s`: other intervals that begin before it must end by then; nothing = `begin_s`.
  void take(const std::vector<size_t>& nodes, int64_t begin_s, int64_t end_s, const std::string& owner,
            std::optional<int64_t> kept_s = {});
  void release(const std::string& owner);
  void release_all(size_t node) { taken_.at(node).clear(); }

  struct Slot {
    int64_t begin_s = 0;
    std::vector<size_t> nodes;
  };
  // The earliest time from `from_s` on at which `count` of the nodes are free for `length_s`, with the first
  // of them in the given order; nothing when there is none. Requires count >= 1. Cost: O(n log n) for n spans
  // of these nodes.
  std::optional<Slot> earliest(const std::vector<size_t>& nodes, size_t count, int64_t from_s,
                               int64_t length_s) const;

 private:
  struct Span {
    int64_t begin_s, end_s, kept_s;
    std::string owner;
  };
  bool is_free(size_t node, int64_t begin_s, int64_t end_s) const;

  std::vector<std::vector<Span>> taken_;  // by node, in the order of their begin
};

}  // namespace sailor
