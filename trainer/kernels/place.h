// Where a kernel runs.
#pragma once

#include <cstddef>

#include "trainer/kernels/element.h"

namespace sailor::kernels {

// Something that runs device kernels; tests have one that runs them on a processor.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual void launch(const char* name, Element type, int64_t blocks, int threads, std::size_t shared_bytes,
                      const void* arguments) = 0;
};

// Host memory, or the current device of the calling thread, ordered by a stream of it.
struct Place {
  bool on_device = false;
  void* stream = nullptr;
  Launcher* launcher = nullptr;  // instead of the device
};

// Starts the device kernel `name` of these elements on the stream. `arguments` points to the structure that
// it takes. Throws std::runtime_error when it cannot, or when this build has no device kernels.
void launch(const char* name, Element type, int64_t blocks, int threads, std::size_t shared_bytes,
            const void* arguments, const Place& place);

}  // namespace sailor::kernels
