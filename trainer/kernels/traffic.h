// What kernels move through memory: a recorder of the calling thread hears of every kernel that starts, for
// tests/bench/trainer/bench_traffic.cpp. Without a recorder this costs one comparison a kernel.
#pragma once

#include <cstdint>

namespace sailor::kernels {

class TrafficRecorder {
 public:
  virtual ~TrafficRecorder() = default;
  // `bytes`: read and written, each array once. What happens until end() is part of this kernel.
  virtual void begin(const char* kernel, int64_t bytes, int launches) = 0;
  virtual void end() = 0;
};

inline thread_local TrafficRecorder* recorder_of_thread = nullptr;

// A kernel that runs during its lifetime.
class RecordedKernel {
 public:
  RecordedKernel(const char* kernel, int64_t bytes, int launches = 1) : recorder_(recorder_of_thread) {
    if (recorder_) recorder_->begin(kernel, bytes, launches);
  }
  ~RecordedKernel() {
    if (recorder_) recorder_->end();
  }
  RecordedKernel(const RecordedKernel&) = delete;
  RecordedKernel& operator=(const RecordedKernel&) = delete;

 private:
  TrafficRecorder* recorder_;
};

}  // namespace sailor::kernels
