#include "trainer/kernels/activation.h"

#include "trainer/kernels/activation_functions.h"
#include "trainer/kernels/grid.h"
#include "trainer/kernels/host_loops.h"
#include "trainer/kernels/traffic.h"

namespace sailor::kernels {
namespace {

constexpr int64_t kGrain = 1 << 13;
constexpr int kActivationsOfAThread = 16;

template <class T, bool kBackward>
void activation_on_processor(const ActivationPass& pass) {
  with_activation(pass.kind, [&](auto kind) {
    for_ranges(pass.count, kGrain, [&](int64_t begin, int64_t end) {
      vectorised([&] {
        if constexpr (kBackward) {
          activate_backward<decltype(kind)::value, T>(pass, begin, end, 1);
        } else {
          activate<decltype(kind)::value, T>(pass, begin, end, 1);
        }
      });
    });
  });
}

template <bool kBackward>
void run_activation(const ActivationPass& pass, const Place& place) {
  if (pass.count == 0) return;
  const int64_t arrays = (kBackward ? 3 : 2) + (pass.gated ? (kBackward ? 2 : 1) : 0);
  const RecordedKernel kernel(kBackward ? "activation backward" : "activation",
                              arrays * pass.count * bytes_of(pass.type));
  if (place.on_device)
    return launch(kBackward ? "activation_backward" : "activation_forward", pass.type,
                  (pass.count + kActivationsOfAThread * kThreadsOfActivation - 1) /
                      (kActivationsOfAThread * kThreadsOfActivation),
                  kThreadsOfActivation, 0, &pass, place);
  with_element(pass.type, [&](auto element) { activation_on_processor<decltype(element), kBackward>(pass); });
}

}  // namespace

void activation_forward(const ActivationPass& pass, const Place& place) {
  run_activation<false>(pass, place);
}
void activation_backward(const ActivationPass& pass, const Place& place) {
  run_activation<true>(pass, place);
}

}  // namespace sailor::kernels
