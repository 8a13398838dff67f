#include "profiler/traces/kineto_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "planner/spec/error.h"
#include "tests/unit/profiler/traces/trace_text.h"

namespace sailor {
namespace {

using test::TraceText;
using ::testing::HasSubstr;

class KinetoTraceTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::string& text, bool compressed = false) {
    if (!compressed) {
      std::ofstream(path_) << text;
      return;
    }
    const gzFile file = gzopen(path_.c_str(), "wb");
    ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
    gzclose(file);
  }
  std::string refusal() {
    try {
      read_kineto_trace(path_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

  std::string path_ =
      std::filesystem::temp_directory_path() / fmt::format("sailor-kineto-{}.json", ::getpid());
};

TEST_F(KinetoTraceTest, IsReadPlainAndCompressed) {
  TraceText trace;
  add_pass(trace, 1000, 50);
  trace.step(2000, 5);
  trace.kernel("ncclDevKernel_AllReduce", 10, 5, 3);
  for (const bool compressed : {false, true}) {
    write(trace.text(), compressed);
    const ProgramTrace read = read_kineto_trace(path_);
    EXPECT_EQ(read.file, path_);
    EXPECT_EQ(read.device, "A GPU");
    EXPECT_EQ(read.operators.size(), 17u);
    EXPECT_EQ(read.modules.size(), 3u);
    EXPECT_EQ(read.modules[1].of, "Block_0");
    EXPECT_EQ(read.modules[1].class_name(), "Block");
    ASSERT_EQ(read.kernels.size(), 1u);
    EXPECT_TRUE(read.kernels[0].communicates);
    EXPECT_EQ(read.kernels[0].launched_by, 3);
    EXPECT_EQ(read.optimizer_steps.size(), 1u);
    EXPECT_TRUE(std::ranges::is_sorted(read.operators, {}, &TraceSpan::begin_us));
    EXPECT_EQ(std::ranges::count_if(read.operators, &TracedOperator::backward), 6);
    EXPECT_EQ(std::ranges::count_if(read.operators, &TracedOperator::accumulates), 1);
  }
}

TEST_F(KinetoTraceTest, AnIdThatIsNoneIsUnknown) {
  write(R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "tid": 1, "ts": 1, "dur": 2,
            "args": {"External id": 1e308}}]})");
  EXPECT_EQ(read_kineto_trace(path_).operators.at(0).id, -1);
}

TEST_F(KinetoTraceTest, WhatIsNoTraceIsRefused) {
  TraceText trace;
  add_pass(trace, 1000, 50);
  write(trace.text().substr(0, 700));
  EXPECT_THAT(refusal(),
              HasSubstr("no JSON at byte 701: this is no trace of torch.profiler, or an incomplete one"));
  write(trace.text().substr(0, 700), true);
  EXPECT_THAT(refusal(), HasSubstr("or an incomplete one"));
  write(R"({"sailor_plan": 1, "pipelines": [{"name": "traceEvents"}]})");
  EXPECT_THAT(refusal(), HasSubstr("no \"traceEvents\""));
  write(R"([1, 2])");
  EXPECT_THAT(refusal(), HasSubstr("no \"traceEvents\""));
  write("");
  EXPECT_THAT(refusal(), HasSubstr("no JSON at byte 1"));
  write(
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {}}, 7, "x"]})");
  EXPECT_THAT(refusal(), HasSubstr("the trace has no operators"));
  std::filesystem::remove(path_);
  EXPECT_THAT(refusal(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace sailor
