// What one block of a model, and its head, move through memory forward and backward, beside the least.
// Without a GPU: see traffic_counter.h. Prints CSV; exit 1 if a block in 16 bit moves more than 1.25 times
// the least, or starts more than 25 kernels.
//
// The least: products of matrices and attention are kernels of their own, which read their operands and write
// their result once, and between two of them is one pass, which reads and writes what it has to once
// (etc/doc/architecture.md). Gradients of weights are added to what is there.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>

#include "planner/cli/program.h"
#include "planner/spec/model_family.h"
#include "tests/bench/trainer/traffic_counter.h"
#include "trainer/model/element_types.h"
#include "trainer/model/registry.h"

namespace sailor::bench {
namespace {

struct Row {
  std::string layer;
  Traffic forward, backward;
  int64_t least_forward = 0, least_backward = 0;  // bytes
};

struct Elements {
  int64_t stream, queries, keys, up, hidden_up;          // activations
  int64_t qkv, projection, up_weight, down, vocabulary;  // matrices
  int64_t logits, turned;

  Elements(const ModelSpec& model, int64_t tokens)
      : stream(tokens * model.hidden),
        queries(tokens * model.heads * model.head_width()),
        keys(tokens * model.key_value_heads() * model.head_width()),
        up(tokens * model.feed_forward * (model.gated_mlp ? 2 : 1)),
        hidden_up(tokens * model.feed_forward),
        qkv((queries + 2 * keys) / tokens * model.hidden),
        projection(queries / tokens * model.hidden),
        up_weight(up / tokens * model.hidden),
        down(hidden_up / tokens * model.hidden),
        vocabulary(int64_t{model.vocabulary} * model.hidden),
        logits(tokens * model.vocabulary),
        turned(model.learned_positions() ? 0 : queries + keys) {}

  int64_t packed() const { return queries + 2 * keys; }
  int64_t block_forward() const {
    return 2 * stream                                // norm
           + stream + qkv + packed() + 2 * turned    // queries, keys and values, turned in place
           + 2 * (queries + keys)                    // attention
           + queries + projection + stream           //
           + 4 * stream                              // residual and norm
           + stream + up_weight + up                 //
           + up + hidden_up                          // activation
           + hidden_up + down + stream + 3 * stream  // residual
        ;
  }
  int64_t block_backward() const {
    return 2 * (stream + hidden_up) + 3 * down               // gradients of the activation and of the matrix
           + hidden_up + 2 * up                              // activation
           + 2 * (up + stream) + 3 * up_weight               //
           + 4 * stream                                      // norm and residual
           + 2 * (stream + queries) + 3 * projection         //
           + 4 * (queries + keys) + 2 * turned               // attention
           + 2 * (packed() + stream) + 3 * qkv + 4 * stream  // norm and residual
        ;
  }
  int64_t head_forward() const { return 2 * stream + stream + vocabulary + 2 * logits; }
  int64_t head_backward() const { return 2 * logits + 2 * (logits + stream) + 3 * vocabulary + 3 * stream; }
};

// Small, with about as many weights for a token as a large model has with many tokens.
ModelSpec model_of(const std::string& family) {
  ModelSpec model;
  set_family(model, family);
  model.layers = 1;
  model.hidden = 256;
  model.heads = 8;
  model.kv_heads = family == "llama" ? 2 : 8;
  model.feed_forward = family == "llama" ? 896 : 1024;
  model.sequence = 512;
  model.vocabulary = 8192;
  return model;
}

// The second of two microbatches: then gradients are added.
Row measure(const LayerContext& context, int index, int64_t sequences, bool print_names) {
  const auto layer = build_layer(context, index);
  const at::TensorOptions options = at::TensorOptions().dtype(context.dtype);
  Batch batch;
  batch.targets = at::arange(sequences * context.model.sequence, at::kLong).view({sequences, -1}) %
                  context.model.vocabulary;
  Row row;
  TrafficCounter counter;
  for (int microbatch = 0; microbatch < 2; ++microbatch) {
    const at::Tensor x =
        at::randn({sequences, context.model.sequence, context.model.hidden}, options).set_requires_grad(true);
    counter.take();
    const at::Tensor y = layer->forward(x, batch);
    if (print_names && microbatch == 1)
      for (const auto& [name, traffic] : counter.by_name())
        fmt::print(stderr, "  forward {:28} {:12} {:3}\n", name, traffic.bytes, traffic.launches);
    row.forward = counter.take();
    const at::Tensor gradient = at::ones_like(y);
    counter.take();
    torch::autograd::backward({y}, {gradient});
    if (print_names && microbatch == 1)
      for (const auto& [name, traffic] : counter.by_name())
        fmt::print(stderr, "  backward {:28} {:12} {:3}\n", name, traffic.bytes, traffic.launches);
    row.backward = counter.take();
  }
  return row;
}

int run(int argc, char** argv) {
  bool names = false;
  int64_t sequences = 4;
  CLI::App app{"Bytes and kernels of a block and of the head", "bench_traffic"};
  app.add_flag("--names", names, "what moves them, on stderr");
  app.add_option("--sequences", sequences)->check(CLI::PositiveNumber);
  return cli::run_program(app, argc, argv, [&]() -> int {
    bool good = true;
    fmt::print("layer,direction,precision,bytes,least_bytes,launches\n");
    for (const char* family : {"gpt2", "llama"}) {
      for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
        LayerContext context;
        context.model = model_of(family);
        context.padded_vocabulary = context.model.vocabulary;
        context.dtype = scalar_type(precision);
        const Elements elements(context.model, sequences * context.model.sequence);
        const auto width = static_cast<int64_t>(at::elementSize(context.dtype));
        for (const int index : {1, context.model.layers + 1}) {
          const bool is_block = index == 1;
          const Row row = measure(context, index, sequences, names);
          const auto print = [&](const char* direction, const Traffic& traffic, int64_t least) {
            fmt::print("{} {},{},{},{},{},{}\n", family, is_block ? "block" : "head", direction,
                       to_string(precision), traffic.bytes, least * width, traffic.launches);
            const bool close = 4 * traffic.bytes <= 5 * least * width && traffic.launches <= 25;
            good = good && (close || !is_block || width != 2);
          };
          print("forward", row.forward, is_block ? elements.block_forward() : elements.head_forward());
          print("backward", row.backward, is_block ? elements.block_backward() : elements.head_backward());
        }
      }
    }
    return good ? 0 : 1;
  });
}

}  // namespace
}  // namespace sailor::bench

int main(int argc, char** argv) {
  return sailor::bench::run(argc, argv);
}
