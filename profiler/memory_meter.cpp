#include "profiler/memory_meter.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace sailor {
namespace {

// libtorch reports every allocation of its allocators to the active profiler.
class Counter : public c10::MemoryReportingInfoBase {
 public:
#if TORCH_VERSION_MAJOR >= 2
  using Total = size_t;
#else
  using Total = int64_t;
#endif
  explicit Counter(c10::DeviceType of) : of_(of) {}
  void reportMemoryUsage(void*, int64_t bytes, Total, Total, c10::Device device) override {
    if (device.type() != of_) return;
    live_bytes += bytes;
    peak_bytes = std::max(peak_bytes, live_bytes);
  }
  bool memoryProfilingEnabled() const override {
    return true;
  }

  int64_t live_bytes = 0;
  int64_t peak_bytes = 0;

 private:
  const c10::DeviceType of_;
};

}  // namespace

struct MemoryMeter::State {
  explicit State(c10::DeviceType of) : counter(std::make_shared<Counter>(of)) {}
  std::shared_ptr<Counter> counter;
  c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, counter};
};

MemoryMeter::MemoryMeter(c10::DeviceType of) : state_(std::make_unique<State>(of)) {}
MemoryMeter::~MemoryMeter() = default;
int64_t MemoryMeter::live_bytes() const {
  return state_->counter->live_bytes;
}
int64_t MemoryMeter::peak_bytes() const {
  return state_->counter->peak_bytes;
}
void MemoryMeter::reset_peak() {
  state_->counter->peak_bytes = state_->counter->live_bytes;
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0, resident_pages = 0;
  if (!(file >> total_pages >> resident_pages)) throw std::runtime_error("cannot read /proc/self/statm");
  return resident_pages * sysconf(_SC_PAGESIZE);
}

}  // namespace sailor
