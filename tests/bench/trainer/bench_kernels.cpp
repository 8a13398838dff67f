// Times each device kernel on a GPU, on the shapes of GPT-2 1.5B and Llama 8B, and prints how fast it moves
// its bytes, beside a copy: CSV of kernel, model, microseconds, GB/s, part of the copy's GB/s.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "planner/cli/program.h"
#include "trainer/gpu/gpu.h"
#include "trainer/kernels/activation.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/heads.h"
#include "trainer/kernels/norm.h"
#include "trainer/kernels/traffic.h"

namespace sailor::bench {
namespace {

using kernels::Element;

struct Shape {
  const char* name;
  int64_t hidden, queries, groups, head, up, vocabulary;
  bool centred, gated, turned;
};
constexpr Shape kShapes[] = {
    {"gpt2-1.5b", 1600, 1, 25, 64, 6400, 50304, true, false, false},
    {"llama-8b", 4096, 4, 8, 128, 14336, 128256, false, true, true},
};
constexpr int64_t kTokens = 16384, kTokensOfSequence = 1024, kTokensOfHead = 4096;

class ByteCounter : public kernels::TrafficRecorder {
 public:
  ByteCounter() { kernels::recorder_of_thread = this; }
  ~ByteCounter() override { kernels::recorder_of_thread = nullptr; }
  void begin(const char*, int64_t more, int) override { bytes += more; }
  void end() override {}
  int64_t bytes = 0;
};

class KernelBench {
 public:
  KernelBench(Device& device, Element type, int repeats) : device_(device), type_(type), repeats_(repeats) {
    const int64_t bytes = int64_t{1} << 29;
    const auto from = memory(bytes), to = memory(bytes);
    copy_rate_ = rate("copy", "-", 2 * bytes, [&] {
      device_.copy(to.get(), from.get(), static_cast<std::size_t>(bytes), device_.compute());
    });
  }

  void norm(const Shape& shape) {
    const int64_t count = kTokens * shape.hidden;
    const auto x = values(count), addition = values(count), for_y = values(count),
               weight = values(shape.hidden), sum = values(count), y = values(count),
               numbers = memory(8 * kTokens);
    kernels::NormForward forward{.type = type_,
                                 .weight_type = type_,
                                 .centred = shape.centred,
                                 .rows = kTokens,
                                 .columns = shape.hidden,
                                 .epsilon = 1e-5,
                                 .x = x.get(),
                                 .weight = weight.get(),
                                 .y = y.get(),
                                 .mean = shape.centred ? numbers.get() : nullptr,
                                 .scale = numbers.get() + 4 * kTokens};
    kernel("norm", shape, [&](const auto& place) { kernels::norm_forward(forward, place); });
    forward.addition = addition.get();
    forward.sum = sum.get();
    kernel("residual and norm", shape, [&](const auto& place) { kernels::norm_forward(forward, place); });
    kernels::NormBackward backward{.type = type_,
                                   .weight_type = type_,
                                   .gradient_type = type_,
                                   .centred = shape.centred,
                                   .rows = kTokens,
                                   .columns = shape.hidden,
                                   .sum = sum.get(),
                                   .weight = weight.get(),
                                   .mean = numbers.get(),
                                   .scale = numbers.get() + 4 * kTokens,
                                   .for_y = for_y.get(),
                                   .for_sum = addition.get(),
                                   .for_x = x.get(),
                                   .adds = true,
                                   .for_weight = weight.get()};
    const auto sums = memory(backward.parts() * 2 * shape.hidden * 4);
    backward.partial_sums = sums.get();
    kernel("norm backward", shape, [&](const auto& place) { kernels::norm_backward(backward, place); });
  }

  void activation(const Shape& shape) {
    const int64_t count = kTokens * shape.up;
    const auto x = values(count * (shape.gated ? 2 : 1)), y = values(count),
               gradient = values(count * (shape.gated ? 2 : 1));
    kernels::ActivationPass pass{
        .type = type_,
        .kind = shape.gated ? kernels::ActivationKind::silu : kernels::ActivationKind::gelu_tanh,
        .gated = shape.gated,
        .count = count,
        .x = x.get(),
        .result = y.get()};
    kernel("activation", shape, [&](const auto& place) { kernels::activation_forward(pass, place); });
    pass.for_y = y.get();
    pass.result = gradient.get();
    kernel("activation backward", shape,
           [&](const auto& place) { kernels::activation_backward(pass, place); });
  }

  void heads(const Shape& shape) {
    const int64_t heads = shape.groups * (shape.queries + 2), row = heads * shape.head;
    const auto packed = values(kTokens * row),
               query = values(kTokens * shape.groups * shape.queries * shape.head),
               key = values(kTokens * shape.groups * shape.head),
               value = values(kTokens * shape.groups * shape.head),
               angles = values(kTokensOfSequence * shape.head);
    const auto separate = [&](const std::shared_ptr<char>& data, int64_t of_heads) {
      return kernels::HeadRows{data.get(), kTokensOfSequence * of_heads * shape.head,
                               kTokensOfSequence * shape.head, shape.head};
    };
    kernels::HeadMove move{.type = type_,
                           .has_values = true,
                           .batch = kTokens / kTokensOfSequence,
                           .tokens = kTokensOfSequence,
                           .groups = shape.groups,
                           .queries = shape.queries,
                           .size = shape.head,
                           .packed = {packed.get(), kTokensOfSequence * row, shape.head, row},
                           .query = separate(query, shape.groups * shape.queries),
                           .key = separate(key, shape.groups),
                           .value = separate(value, shape.groups),
                           .pairs = shape.turned ? shape.head / 2 : 0,
                           .cosine = angles.get(),
                           .sine = angles.get() + kTokensOfSequence * shape.head};
    kernel("heads from packed", shape, [&](const auto& place) { kernels::move_heads(move, place); });
    move.to_packed = move.backwards = true;
    kernel("heads to packed", shape, [&](const auto& place) { kernels::move_heads(move, place); });
  }

  void cross_entropy(const Shape& shape) {
    const auto logits = values(kTokensOfHead * shape.vocabulary), numbers = memory(24 * kTokensOfHead),
               targets = memory(8 * kTokensOfHead);
    const auto number = [&](int64_t index) { return numbers.get() + 4 * kTokensOfHead * index; };
    kernels::CrossEntropy loss{.type = type_,
                               .rows = kTokensOfHead,
                               .columns = shape.vocabulary,
                               .real = shape.vocabulary,
                               .logits = logits.get(),
                               .targets = reinterpret_cast<const int64_t*>(targets.get()),
                               .largest = number(0),
                               .sum = number(1),
                               .score = number(2),
                               .shift = number(3),
                               .of_softmax = number(4),
                               .of_target = number(5)};
    kernel("cross entropy", shape, [&](const auto& place) { kernels::cross_entropy_forward(loss, place); });
    loss.of_softmax = loss.of_target = logits.get();  // not 0: then nothing would be read
    kernel("cross entropy backward", shape,
           [&](const auto& place) { kernels::cross_entropy_backward(loss, place); });
  }

 private:
  std::shared_ptr<char> memory(int64_t bytes) {
    const auto count = static_cast<std::size_t>(bytes);
    std::shared_ptr<char> data = device_.device_memory(count);
    const std::vector<char> zeros(count);
    device_.copy(data.get(), zeros.data(), count, device_.compute());
    device_.wait(device_.compute());
    return data;
  }
  // Between -1 and 1.
  std::shared_ptr<char> values(int64_t count) {
    std::shared_ptr<char> data = device_.device_memory(static_cast<std::size_t>(count * bytes_of(type_)));
    kernels::with_element(type_, [&](auto element) {
      using T = decltype(element);
      std::vector<T> host(static_cast<std::size_t>(count));
      uint32_t state = 1;
      for (T& value : host) {
        state = state * 1664525u + 1013904223u;
        kernels::store(
            static_cast<kernels::Computed<T>>(static_cast<int32_t>(state)) * kernels::Computed<T>(0x1p-31),
            value);
      }
      device_.copy(data.get(), host.data(), host.size() * sizeof(T), device_.compute());
      device_.wait(device_.compute());
    });
    return data;
  }

  void kernel(const char* name, const Shape& shape,
              const std::function<void(const kernels::Place&)>& launch) {
    const kernels::Place place{true, device_.compute()};
    int64_t bytes = 0;
    {
      ByteCounter counter;
      launch(place);
      bytes = counter.bytes;
    }
    rate(name, shape.name, bytes, [&] { launch(place); });
  }
  // Prints the median's row, and returns its GB/s.
  double rate(const char* name, const char* model, int64_t bytes, const std::function<void()>& launch) {
    std::vector<double> seconds;
    for (int repeat = -3; repeat < repeats_; ++repeat) {
      const auto begin = device_.mark();
      launch();
      const auto end = device_.mark();
      const double this_s = device_.seconds_between(*begin, *end);
      if (repeat >= 0) seconds.push_back(this_s);
    }
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    const double median_s = seconds[seconds.size() / 2],
                 gb_per_s = 1e-9 * static_cast<double>(bytes) / median_s;
    fmt::print("{},{},{:.1f},{:.0f},{:.2f}\n", name, model, 1e6 * median_s, gb_per_s,
               copy_rate_ > 0 ? gb_per_s / copy_rate_ : 1.0);
    return gb_per_s;
  }

  Device& device_;
  Element type_;
  int repeats_;
  double copy_rate_ = 0;
};

int run(int argc, char** argv) {
  int repeats = 20;
  bool fp32 = false;
  CLI::App app{"Times device kernels on a GPU", "bench_kernels"};
  app.add_option("--repeats", repeats)->check(CLI::PositiveNumber);
  app.add_flag("--fp32", fp32, "elements of 32 bits (default: bf16)");
  return cli::run_program(app, argc, argv, [&]() -> int {
    const std::unique_ptr<Gpu> gpu = open_gpu({});
    if (!gpu) throw InputError("there is no GPU");
    fmt::print("kernel,model,us,gb_per_s,of_copy\n");
    KernelBench bench(gpu->device(), fp32 ? Element::f32 : Element::bf16, repeats);
    for (const Shape& shape : kShapes) {
      bench.norm(shape);
      bench.activation(shape);
      bench.heads(shape);
      bench.cross_entropy(shape);
    }
    return 0;
  });
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  return sailor::bench::run(argc, argv);
}
