// A cache of values by 64-bit keys other than 0, for repeated queries of a search: a new value replaces the
// one that was in its place, so that the cache stays in a processor's own memory. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sailor::native {

template <typename Value>
class RecentValues {
 public:
  // The key's value, and whether it is new (then Value{}). The reference is valid until the next call.
  std::pair<Value&, bool> at(uint64_t key) {
    // The product's high bits depend on all bits of the key.
    Slot& slot = slots_[static_cast<size_t>(key * 0x9e3779b97f4a7c15 >> (64 - kSlotBits))];
    if (slot.key == key) return {slot.value, false};
    slot = {key, Value{}};
    return {slot.value, true};
  }

 private:
  struct Slot {
    uint64_t key = 0;
    Value value{};
  };

  static constexpr int kSlotBits = 14;
  std::vector<Slot> slots_ = std::vector<Slot>(size_t{1} << kSlotBits);
};

}  // namespace sailor::native
