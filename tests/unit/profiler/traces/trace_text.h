// Traces as torch.profiler writes them, for tests, and a pass of a model of two blocks.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "planner/spec/model_spec.h"

namespace sailor::test {

inline constexpr int kHost = 100, kAutograd = 101, kStream = 7, kOtherStream = 8;

class TraceText {
 public:
  // Returns the operator's id.
  int op(const std::string& name, double at_us, double us, int sequence = -1, int thread = kHost) {
    const std::string number = sequence < 0 ? "" : fmt::format(R"(, "Sequence number": {})", sequence);
    event("cpu_op", name, at_us, us, thread, fmt::format(R"("External id": {}{})", ++id_, number));
    return id_;
  }
  int node(const std::string& name, double at_us, double us, int sequence = -1, int thread = kHost) {
    return op("autograd::engine::evaluate_function: " + name, at_us, us, sequence, thread);
  }
  void module(const std::string& of, double at_us, double us) {
    event("python_function", "nn.Module: " + of, at_us, us, kHost, R"("Python id": 1)");
  }
  void step(double at_us, double us) {
    event("user_annotation", "Optimizer.step#AdamW.step", at_us, us, kHost, R"("External id": 0)");
  }
  void kernel(const std::string& name, double at_us, double us, int id, int stream = kStream) {
    event("kernel", name, at_us, us, stream, fmt::format(R"("External id": {}, "stream": {})", id, stream));
  }
  // Launched by a call at `launch_us`, without an operator's id.
  void launched_kernel(const std::string& name, double launch_us, double at_us, double us, int correlation) {
    const std::string which = fmt::format(R"("correlation": {})", correlation);
    event("cuda_runtime", "cudaLaunchKernel", launch_us, 0.5, kHost, which);
    event("kernel", name, at_us, us, kStream, which);
  }
  std::string text() const {
    return fmt::format(
        R"({{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "A GPU", "numSms": 3}}],
"traceEvents": [
{}
], "traceName": "t.json"}})",
        events_);
  }
  std::string file() const {
    const std::string path =
        std::filesystem::temp_directory_path() /
        fmt::format("sailor-trace-{}-{}.json", ::getpid(), static_cast<const void*>(this));
    std::ofstream(path) << text();
    return path;
  }

 private:
  void event(const std::string& category, const std::string& name, double at_us, double us, int thread,
             const std::string& arguments) {
    events_ += fmt::format(
        R"({}{{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {{{}}}}})",
        events_.empty() ? "" : ",\n", category, name, thread, kStart_us + at_us, us, arguments);
  }

  static constexpr double kStart_us = 5126213533057.0;
  std::string events_;
  int id_ = 0;
};

// Matches a time in seconds that is this number of microseconds.
inline auto us(double value) {
  constexpr double kExact_s = 1e-10;
  return testing::DoubleNear(value * 1e-6, kExact_s);
}

inline ModelSpec two_blocks() {
  ModelSpec model;
  model.family = "gpt2";
  model.layers = 2;
  model.hidden = 8;
  model.heads = 2;
  model.feed_forward = 32;
  model.sequence = 16;
  model.vocabulary = 32;
  return model;
}

// One pass that begins at `at_us` and takes 220 us; its nodes have numbers from `sequence` on. What belongs
// to the embedding takes 10 (20 backward), to a block 11 and 13 (30, 26), to the head 12 (19).
inline void add_pass(TraceText& trace, double at_us, int sequence) {
  const auto at = [at_us](double us) { return at_us + us; };
  trace.op("aten::randint", at(-20), 10);        // data
  trace.op("aten::slice", at(-5), 3, sequence);  // names the number of the next node, and makes none
  trace.module("Model_0", at(0), 100);
  trace.op("aten::embedding", at(2), 10, sequence);
  trace.module("Block_0", at(20), 20);
  trace.op("aten::linear", at(22), 8, sequence + 1);
  trace.op("aten::addmm", at(23), 4, sequence + 1);
  trace.op("aten::view", at(32), 3, sequence + 2);
  trace.module("Block_1", at(50), 20);
  trace.op("aten::linear", at(52), 13, sequence + 2);
  trace.op("aten::linear", at(80), 7, sequence + 3);
  trace.op("aten::cross_entropy_loss", at(105), 5, sequence + 4);
  trace.op("aten::detach", at(111), 2, sequence + 5);  // no node, either
  trace.node("NllLossBackward0", at(120), 4, sequence + 4);
  trace.op("NllLossBackward0", at(121), 2, sequence + 4);
  trace.node("AddmmBackward0", at(125), 15, sequence + 3);
  trace.node("AddmmBackward0", at(141), 20, sequence + 2);
  trace.node("torch::autograd::AccumulateGrad", at(162), 6);
  trace.node("AddmmBackward0", at(169), 30, sequence + 1);
  trace.node("EmbeddingBackward0", at(200), 20, sequence);
}

}  // namespace sailor::test
