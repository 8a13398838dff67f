#include "profiler/traces/nsys_trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "planner/process/scratch_directory.h"
#include "planner/spec/error.h"
#include "profiler/traces/traced_layers.h"
#include "tests/unit/profiler/traces/trace_text.h"

namespace sailor {
namespace {

using test::kAutograd;
using test::kHost;
using test::us;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHeader =
    "Name,Projected Start (ns),Projected Duration (ns),Orig Start (ns),Orig Duration "
    "(ns),Style,PID,TID,NumGPUOps,"
    "Lvl,NumChild,RangeId,ParentId,RangeStack\n";

// A report as nsys writes it. Times are in us.
class ReportText {
 public:
  struct Range {
    std::string name;
    double host_us, host_length_us;  // on the host
    double us, length_us;            // from its first kernel to the end of its last
    int work = 1;                    // kernels, those of inner ranges included
    int parent = 0;
    int thread = kHost;
  };
  // Returns its id.
  int add(const Range& range, int process = 42) {
    const auto ns = [](double us) { return std::llround(1000 * us); };
    ++id_;
    std::string name;
    for (const char c : ":" + range.name) name += c == '"' ? std::string("\"\"") : std::string(1, c);
    rows_ += fmt::format("\"{}\",{},{},{},{},PushPop,{},{},{},0,0,{},{},:{}\n", name,
                         kStart_ns + ns(range.us), ns(range.length_us), kStart_ns + ns(range.host_us),
                         ns(range.host_length_us), process, range.thread, range.work, id_,
                         range.parent == 0 ? std::string() : std::to_string(range.parent), id_);
    return id_;
  }
  std::string text() const {
    return "Processing [run.sqlite] with [nvtx_gpu_proj_trace.py]... \n\n" + (kHeader + rows_);
  }

 private:
  static constexpr long long kStart_ns = 9'000'000'000'000;
  std::string rows_;
  int id_ = 0;
};

class NsysTraceTest : public ::testing::Test {
 protected:
  ProgramTrace read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_nsys_trace(path_);
  }
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

  ScratchDirectory scratch_;
  std::string path_ = scratch_.path() + "/ranges.csv";
};

// A step of a model of two blocks in DistributedDataParallel, with ranges of the program's own around it.
ReportText a_step() {
  ReportText report;
  const int step = report.add({"train step", 0, 200, 500, 400, 17});
  const int wrapper = report.add({"DistributedDataParallel.forward, op_id = 1", 0, 65, 500, 150, 7, step});
  const int model = report.add({"nn.Module: Model_0", 1, 60, 500, 150, 7, wrapper});
  report.add({"aten::embedding, seq = 1, op_id = 2", 2, 5, 500, 7, 1, model});
  const int first = report.add({"nn.Module: Block_0", 10, 10, 510, 50, 3, model});
  const int linear =
      report.add({"aten::linear, op_id = 3, sizes = [[2, 8], [8, 8], [8]]", 11, 5, 510, 30, 2, first});
  report.add(
      {"aten::addmm, seq = 2, op_id = 4, sizes = [[8], [2, 8], [8, 8], [], []]", 12, 2, 510, 20, 1, linear});
  report.add({"aten::add, seq = 3, op_id = 5", 14, 1, 535, 5, 1, linear});
  const int sum = report.add({"c10d::allreduce_, seq = 4, op_id = 6", 17, 2, 541, 6, 1, first});
  report.add({"NCCL:ncclAllReduce", 17.5, 1, 541, 6, 1, sum});
  const int second = report.add({"nn.Module: Block_1", 30, 10, 560, 30, 2, model});
  report.add({"FusedLayer, seq = 4, op_id = 7", 31, 5, 560, 22, 2, second});
  report.add({"aten::linear, seq = 5, op_id = 8", 50, 5, 600, 9, 1, model});
  const auto node = [&](const std::string& name, double at, int sequence, double on_gpu, double length) {
    const int outer = report.add({"autograd::engine::evaluate_function: " + name + ", op_id = 20", at, 5,
                                  on_gpu, length, 1, 0, kAutograd});
    const std::string seq = sequence < 0 ? "" : fmt::format(", seq = {}", sequence);
    return report.add({name + seq + ", op_id = 21", at + 1, 3, on_gpu, length, 1, outer, kAutograd});
  };
  node("AddmmBackward0", 70, 5, 610, 18);
  node("FusedLayerBackward", 80, 4, 630, 41);
  const int stores = node("torch::autograd::AccumulateGrad", 85, -1, 680, 2);
  report.add({"NCCL:ncclAllReduce", 86, 1, 690, 500, 1, stores - 1, kAutograd});
  node("AddmmBackward0", 90, 2, 700, 45);
  node("EmbeddingBackward0", 100, 1, 750, 11);
  const int update = report.add({"Optimizer.step#AdamW.step, op_id = 40", 150, 30, 800, 60, 2, step});
  report.add({"aten::_fused_adamw_, op_id = 41", 155, 20, 810, 40, 2, update});
  return report;
}

TEST_F(NsysTraceTest, LayersAreThoseOfPyTorchsRanges) {
  const ProgramTrace trace = read(a_step().text());
  ASSERT_EQ(trace.modules.size(), 3u);
  EXPECT_EQ(trace.modules[1].of, "Block_0");
  EXPECT_EQ(trace.operators.front().sequence, 1) << "the wrapper of the model is no operator";
  TracedLayers layers = traced_layers(trace, test::two_blocks(), 1);
  EXPECT_EQ(layers.block_class, "Block");
  EXPECT_THAT(layers.forward_s.at(LayerKind::embedding), ElementsAre(us(7)));
  // The gap between the two kernels does not count.
  EXPECT_THAT(layers.forward_s.at(LayerKind::block), ElementsAre(us(25), us(22)));
  EXPECT_THAT(layers.forward_s.at(LayerKind::head), ElementsAre(us(9)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::head), ElementsAre(us(18)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::block), ElementsAre(us(45), us(43)));
  EXPECT_THAT(layers.backward_s.at(LayerKind::embedding), ElementsAre(us(11)));
  EXPECT_THAT(layers.update_s, ElementsAre(us(40)));
  layers = traced_layers(trace, test::two_blocks(), 2);
  EXPECT_THAT(layers.forward_s.at(LayerKind::block), ElementsAre(us(31), us(22)))
      << "with the sum of the TP group";
}

// "aten::linear" has a kernel that belongs to none of the ranges in it, at an unknown time.
TEST_F(NsysTraceTest, ARangeWithWorkOfItsOwnCountsAsAWhole) {
  ReportText report;
  const int module = report.add({"nn.Module: Block_0", 10, 10, 510, 50, 3});
  const int linear = report.add({"aten::linear, op_id = 3", 11, 5, 510, 30, 3, module});
  report.add({"aten::addmm, seq = 2, op_id = 4", 12, 2, 510, 20, 2, linear});
  const ProgramTrace trace = read(report.text());
  ASSERT_EQ(trace.kernels.size(), 2u);
  EXPECT_NEAR(trace.kernels[0].end_us - trace.kernels[0].begin_us, 30, 1e-6);
  EXPECT_EQ(trace.kernels[0].launched_by, linear);
  EXPECT_FALSE(trace.kernels[0].communicates);
}

TEST_F(NsysTraceTest, WhatIsNoReportIsRefused) {
  const std::string good = a_step().text();
  EXPECT_THAT(refusal(""),
              HasSubstr("no report of NVTX ranges of Nsight Systems: export it with `nsys stats"));
  EXPECT_THAT(refusal("Start (ns),Duration (ns),CorrId\n1,2,3\n"), HasSubstr("no report of NVTX ranges"));
  std::string other = good;
  other.replace(other.find("NumGPUOps"), 9, "NumOps");
  EXPECT_THAT(refusal(other), HasSubstr("ranges.csv:3: no column \"NumGPUOps\""));
  EXPECT_THAT(refusal(good.substr(0, good.size() - 40)), HasSubstr("the report is incomplete"));
  other = good;
  other.replace(other.find(",9000000500000,"), 15, ",9000000.5ms,");
  EXPECT_THAT(refusal(other), HasSubstr("must be a whole number, is \"9000000.5ms\""));
  EXPECT_THAT(refusal(kHeader), HasSubstr("no ranges of PyTorch's operators"));
  ReportText two = a_step();
  two.add({"aten::add, op_id = 9", 1, 1, 1, 1}, 43);
  EXPECT_THAT(refusal(two.text()), HasSubstr("has operators of 2 processes: profile a single rank"));
  ReportText bare;
  bare.add({"aten::add, op_id = 9", 1, 1, 1, 1});
  const ProgramTrace trace = read(bare.text());
  try {
    traced_layers(trace, test::two_blocks(), 1);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no module calls: call sailor_steps.name_modules() before training"));
  }
}

TEST_F(NsysTraceTest, FilesAreKnownByTheirNames) {
  EXPECT_TRUE(is_nsys_report("a/run_nvtx_gpu_proj_trace.csv"));
  EXPECT_FALSE(is_nsys_report("trace.json.gz"));
  EXPECT_THROW(is_nsys_report("run.nsys-rep"), InputError);
}

// Parents that are each other's, or their own, end no search.
TEST_F(NsysTraceTest, NestingInCirclesIsSurvived) {
  std::string text = kHeader;
  text += "\":nn.Module: A_0\",1,1,1,1,PushPop,1,1,1,0,0,1,2,\n";
  text += "\":outer\",1,1,1,1,PushPop,1,1,1,0,0,2,1,\n";
  text += "\":aten::add, op_id = 3\",1,1,1,1,PushPop,1,1,1,0,0,3,3,\n";
  EXPECT_EQ(read(text).operators.size(), 1u);
}

}  // namespace
}  // namespace sailor
