#include "trainer/kernels/adamw.h"

#include <algorithm>
#include <stdexcept>

#include "trainer/kernels/traffic.h"

namespace sailor::kernels {

void adamw(const AdamWUpdate& update, const Place& place) {
  constexpr int64_t kOfABlock = 8 * kThreadsOfAdamW, kMostBlocks = 1 << 16;
  if (!place.on_device) throw std::logic_error("this AdamW is for devices");
  if (update.count == 0) return;
  const RecordedKernel kernel("AdamW", update.count * (7 * bytes_of(update.type) + (update.rounded ? 2 : 0)));
  launch("adamw", update.type, std::min(kMostBlocks, (update.count + kOfABlock - 1) / kOfABlock),
         kThreadsOfAdamW, 0, &update, place);
}

}  // namespace sailor::kernels
