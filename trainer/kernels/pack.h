// Packs: as many neighbouring elements as a thread of a device reads or writes at once, 16 bytes. Kernels
// that move packs reach the speed of the device's memory; they need rows of whole packs at aligned addresses,
// and leave others to loops over elements.
#pragma once

#include <cstdint>

#include "trainer/kernels/grid.h"

namespace sailor::kernels {

inline constexpr int kPackBytes = 16;
template <class T>
inline constexpr int kPack = kPackBytes / static_cast<int>(sizeof(T));

template <class T>
struct alignas(kPackBytes) Pack {
  T elements[kPack<T>];
};

template <class T>
SAILOR_KERNEL Computed<T> load(const Pack<T>& pack, int i) {
  return load(pack.elements[i]);
}
template <class T>
SAILOR_BLOCKS const Pack<T>* packs_at(const void* place) {
  return static_cast<const Pack<T>*>(place);
}
template <class T>
SAILOR_BLOCKS Pack<T>* packs_at(void* place) {
  return static_cast<Pack<T>*>(place);
}

// Are all of them at the beginning of a pack? nullptr is.
template <class... Places>
SAILOR_KERNEL bool aligned(const Places*... places) {
  return ((reinterpret_cast<uintptr_t>(places) | ... | uintptr_t{0}) % kPackBytes) == 0;
}
SAILOR_KERNEL bool whole_packs(int64_t elements, Element type) {
  return elements * bytes_of(type) % kPackBytes == 0;
}

}  // namespace sailor::kernels
