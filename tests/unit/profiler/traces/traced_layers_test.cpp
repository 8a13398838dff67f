#include "profiler/traces/traced_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "planner/spec/error.h"
#include "planner/spec/model_family.h"
#include "profiler/traces/kineto_trace.h"
#include "tests/unit/profiler/traces/trace_text.h"

namespace sailor {
namespace {

using test::add_pass;
using test::kAutograd;
using test::kOtherStream;
using test::TraceText;
using test::us;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TracedLayers layers_of(const TraceText& trace, int tp = 1, const std::string& blocks = "",
                       const ModelSpec& model = test::two_blocks()) {
  const std::string file = trace.file();
  const ProgramTrace read = read_kineto_trace(file);
  std::filesystem::remove(file);
  return traced_layers(read, model, tp, blocks);
}

std::string refusal(const TraceText& trace, const std::string& blocks = "",
                    const ModelSpec& model = test::two_blocks()) {
  try {
    layers_of(trace, 1, blocks, model);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TracedLayers, OnProcessorsAreTheTimesOfOperators) {
  TraceText trace;
  add_pass(trace, 1000, 50);
  add_pass(trace, 2000, 55);
  trace.step(3000, 100);
  trace.op("aten::_fused_adamw_", 3010, 40, 60);
  const TracedLayers layers = layers_of(trace);
  EXPECT_EQ(layers.block_class, "Block");
  EXPECT_THAT(layers.forward_s.at(LayerKind::embedding), ElementsAre(us(10), us(10)));
  EXPECT_THAT(layers.forward_s.at(LayerKind::block), ElementsAre(us(11), us(13), us(11), us(13)));
  EXPECT_THAT(layers.forward_s.at(LayerKind::head), ElementsAre(us(12), us(12)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::embedding), ElementsAre(us(20), us(20)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::block), ElementsAre(us(30), us(26), us(30), us(26)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::head), ElementsAre(us(19), us(19)));
  EXPECT_THAT(layers.update_s, ElementsAre(us(40)));
}

// Kernels run later than their operators, some of them at once, and the backward is in a thread of its own.
TEST(TracedLayers, OnAGpuAreTheTimesInWhichKernelsRun) {
  TraceText trace;
  trace.module("Model_0", 0, 60);
  const int embedding = trace.op("aten::embedding", 2, 5, 1);
  trace.module("Block_0", 10, 10);
  const int first = trace.op("aten::linear", 11, 5, 2);
  trace.module("Block_1", 30, 10);
  trace.op("aten::linear", 31, 5, 3);
  const int head = trace.op("aten::linear", 50, 5, 4);
  const int of_head = trace.node("AddmmBackward0", 70, 5, 4, kAutograd);
  const int of_second = trace.node("AddmmBackward0", 80, 5, 3, kAutograd);
  const int stores = trace.node("torch::autograd::AccumulateGrad", 85, 5, -1, kAutograd);
  const int of_first = trace.node("AddmmBackward0", 90, 5, 2, kAutograd);
  const int of_embedding = trace.node("EmbeddingBackward0", 100, 5, 1, kAutograd);
  trace.kernel("gather", 500, 7, embedding);
  trace.kernel("gemm", 510, 20, first);
  trace.kernel("gemm", 520, 20, first, kOtherStream);
  trace.kernel("ncclDevKernel_AllReduce_Sum_bf16", 545, 5, first);
  trace.launched_kernel("gemm", 32, 560, 22, 77);
  trace.kernel("gemm", 600, 9, head);
  trace.kernel("gemm", 610, 18, of_head);
  trace.kernel("gemm", 630, 41, of_second);
  trace.kernel("add", 680, 2, stores);
  trace.kernel("ncclDevKernel_AllReduce_Sum_bf16", 690, 500, stores, kOtherStream);
  trace.kernel("gemm", 700, 45, of_first);
  trace.kernel("scatter", 750, 11, of_embedding);
  trace.kernel("unknown", 800, 11, 4711);

  TracedLayers layers = layers_of(trace);
  EXPECT_THAT(layers.forward_s.at(LayerKind::embedding), ElementsAre(us(7)));
  EXPECT_THAT(layers.forward_s.at(LayerKind::block), ElementsAre(us(30), us(22)));
  EXPECT_THAT(layers.forward_s.at(LayerKind::head), ElementsAre(us(9)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::head), ElementsAre(us(18)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::block), ElementsAre(us(45), us(43)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::embedding), ElementsAre(us(11)));
  layers = layers_of(trace, 2);  // the sums of the TP group count, those of data parallelism do not
  EXPECT_THAT(layers.forward_s.at(LayerKind::block), ElementsAre(us(35), us(22)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::block), ElementsAre(us(45), us(43)));
}

TEST(TracedLayers, OfModelsWithUnlikeBlocksAreOfEachKind) {
  TraceText trace;
  add_pass(trace, 1000, 50);
  ModelSpec model = test::two_blocks();
  set_family(model, "gpt_neo");
  model.attention_window = 4;
  ASSERT_EQ(layer_kinds(model).size(), 4u);
  const TracedLayers layers = layers_of(trace, 1, "", model);
  const bool local_first = kind_of_layer(model, 1) == LayerKind::local_block;
  EXPECT_THAT(layers.forward_s.at(local_first ? LayerKind::local_block : LayerKind::block),
              ElementsAre(us(11)));
  EXPECT_THAT(layers.forward_s.at(local_first ? LayerKind::block : LayerKind::local_block),
              ElementsAre(us(13)));
}

// A validation pass has no backward.
TEST(TracedLayers, PassesWithoutBackwardCountForwardOnly) {
  TraceText trace;
  trace.module("Model_0", 0, 100);
  trace.op("aten::embedding", 2, 10);
  for (int block = 0; block < 2; ++block) {
    trace.module(fmt::format("Block_{}", block), 20 + 30 * block, 20);
    trace.op("aten::linear", 22 + 30 * block, 5);
  }
  trace.op("aten::linear", 80, 7);
  add_pass(trace, 1000, 50);
  const TracedLayers layers = layers_of(trace);
  EXPECT_EQ(layers.forward_s.at(LayerKind::block).size(), 4u);
  EXPECT_EQ(layers.backward_s.at(LayerKind::block).size(), 2u);
}

TEST(TracedLayers, BlocksAreTheOutermostModulesOfTheirNumber) {
  TraceText trace;
  add_pass(trace, 1000, 50);
  trace.module("Attention_0", 1021, 5);
  trace.module("Attention_1", 1051, 5);
  EXPECT_EQ(layers_of(trace).block_class, "Block");
  trace.module("Other_0", 1081, 2);
  trace.module("Other_1", 1084, 2);
  EXPECT_THAT(
      refusal(trace),
      HasSubstr("Name their class with --blocks (the trace has 2 Attention, 2 Block, 1 Model, 2 Other)"));
  EXPECT_EQ(layers_of(trace, 1, "Block").block_class, "Block");
}

TEST(TracedLayers, ATraceThatLacksSomethingIsRefusedWithWhatToDo) {
  TraceText trace;
  trace.op("aten::linear", 0, 5, 1);
  EXPECT_THAT(refusal(trace), HasSubstr("no module calls: profile with with_stack=True"));

  TraceText whole;
  add_pass(whole, 1000, 50);
  EXPECT_THAT(refusal(whole, "Layer"),
              HasSubstr("the trace has 0 modules Layer, and the job's model 2 blocks"));
  EXPECT_THAT(refusal(whole, "Model"),
              HasSubstr("the trace has 1 modules Model, and the job's model 2 blocks"));
  whole.module("Block_0", 1150, 5);  // inside the backward of Block_1
  EXPECT_THAT(refusal(whole), HasSubstr("no whole number of passes"));
  whole.module("Block_1", 1156, 4);
  EXPECT_THAT(refusal(whole), HasSubstr("Block_0 runs in a backward: profile without recomputation"));

  TraceText forward_only;
  forward_only.module("Model_0", 0, 100);
  forward_only.op("aten::embedding", 2, 10, 1);
  forward_only.module("Block_0", 20, 20);
  forward_only.op("aten::linear", 22, 10, 2);
  forward_only.module("Block_1", 50, 20);
  forward_only.op("aten::linear", 52, 10, 3);
  EXPECT_THAT(refusal(forward_only), HasSubstr("no backward of the layer \"embedding\""));
}

}  // namespace
}  // namespace sailor
