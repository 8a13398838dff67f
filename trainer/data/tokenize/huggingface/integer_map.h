// A hash map from 64-bit keys to non-negative ints, with open addressing: what a tokenizer looks up for every
// character. Thread-safe for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sailor {

class IntegerMap {
 public:
  void set(uint64_t key, int value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[slot_of(key)];
    if (slot.value < 0) ++size_;
    slot = {key, value};
  }
  // -1 if absent.
  int find(uint64_t key) const { return slots_.empty() ? -1 : slots_[slot_of(key)].value; }

  static uint64_t pair(uint32_t first, uint32_t second) { return uint64_t{first} << 32 | second; }

 private:
  struct Slot {
    uint64_t key = 0;
    int value = -1;
  };

  // The slot of the key, or the free one that it would get.
  std::size_t slot_of(uint64_t key) const {
    const uint64_t mixed = key * 0x9e3779b97f4a7c15u;
    std::size_t at = (mixed ^ (mixed >> 32)) & (slots_.size() - 1);
    while (slots_[at].value >= 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.value >= 0) slots_[slot_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two
  std::size_t size_ = 0;
};

}  // namespace sailor
