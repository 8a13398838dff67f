// A cache of values by 64-bit keys other than 0, without eviction, for repeated queries of a search. Open
// addressing, linear probing, at most half full. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sailor::native {

template <typename Value>
class KnownValues {
 public:
  // The key's value, and whether it is new (then Value{}). The reference is valid until the next call.
  std::pair<Value&, bool> at(uint64_t key) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[find(key)];
    if (slot.key == key) return {slot.value, false};
    slot.key = key;
    ++count_;
    return {slot.value, true};
  }

 private:
  struct Slot {
    uint64_t key = 0;
    Value value{};
  };

  // Position of the key, or where it would be inserted. The product's high bits depend on all bits of the
  // key.
  size_t find(uint64_t key) const {
    size_t i = static_cast<size_t>(key * 0x9e3779b97f4a7c15 >> shift_);
    while (slots_[i].key != 0 && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Slot> before = std::move(slots_);
    slots_.assign(before.empty() ? kFirst : 2 * before.size(), {});
    if (!before.empty()) --shift_;
    for (Slot& slot : before)
      if (slot.key != 0) slots_[find(slot.key)] = std::move(slot);
  }

  static constexpr size_t kFirst = 1024;
  std::vector<Slot> slots_;  // number of slots is a power of two
  int shift_ = 64 - 10;      // 64 - log2 of that number
  size_t count_ = 0;
};

}  // namespace sailor::native
