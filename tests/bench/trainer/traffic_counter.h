// Adds up what the calling thread's computations move through memory: libtorch's operators, each with its
// inputs read and its outputs written once, and the kernels that report themselves
// (trainer/kernels/traffic.h). Products and attention count as a device's kernels move them, however a
// processor computes them: attention reads queries, keys and values and writes its result, and its backward
// moves twice as much in three kernels. Views are free.
#pragma once

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/kernels/traffic.h"

namespace sailor::bench {

struct Traffic {
  int64_t bytes = 0;
  int launches = 0;
};

class TrafficCounter : public kernels::TrafficRecorder {
 public:
  TrafficCounter();
  ~TrafficCounter() override;
  TrafficCounter(const TrafficCounter&) = delete;
  TrafficCounter& operator=(const TrafficCounter&) = delete;

  void begin(const char* kernel, int64_t bytes, int launches) override;
  void end() override;
  void begin(const at::RecordFunction& function);
  void end(const at::RecordFunction& function);

  // Since the last call; with the names of what moved it.
  Traffic take();
  const std::map<std::string, Traffic>& by_name() const { return by_name_; }

 private:
  struct Operator {
    std::string name;
    std::vector<at::Tensor> inputs;
    bool has_children = false;  // an operator within it was counted
  };
  // A range of autograd's sequence numbers, whose backward is one kernel.
  struct Fused {
    uint64_t first, end;
    int64_t bytes;
    int launches;
    bool counted = false;
  };
  void add(const std::string& name, int64_t bytes, int launches);
  Fused* fused_of(int64_t sequence_number);

  at::CallbackHandle handle_;
  int inside_ = 0;                    // kernels and fused backwards that are under way
  std::vector<Operator> operators_;   // under way
  std::vector<std::string> kernels_;  // under way
  uint64_t first_of_fused_ = 0;
  int64_t bytes_of_fused_ = 0;
  std::vector<Fused> fused_;
  Traffic sum_;
  std::map<std::string, Traffic> by_name_;
};

}  // namespace sailor::bench
