#include "profiler/imported_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "planner/spec/error.h"
#include "tests/unit/profiler/traces/trace_text.h"

namespace sailor {
namespace {

using ::testing::HasSubstr;

JobSpec job() {
  return parse_job_spec(
      "model: {family: gpt2, layers: 2, hidden: 8, heads: 2, sequence: 16, vocabulary: 32}\n"
      "training: {global_batch: 8, steps: 10, precision: fp32}\n"
      "trainer: {kind: accelerate, command: [python, train.py]}\n",
      "job.yaml");
}

class ImportedProfileTest : public ::testing::Test {
 protected:
  ImportedProfileTest() {
    test::add_pass(trace_, 1000, 50);
    trace_.step(3000, 100);
    trace_.op("aten::_fused_adamw_", 3010, 40, 60);
    import_.trace = trace_.file();
    import_.gpu_type = "cpu";
    import_.on_processors = true;
    import_.base_memory_bytes = 1000;
  }
  ~ImportedProfileTest() override { std::filesystem::remove(import_.trace); }

  ImportedProfile imported(const ProfileFile& earlier = {}) const {
    return import_trace(job(), import_, framework_of_trainer(job()), earlier);
  }
  std::string refusal(const JobSpec& of, const ProfileFile& earlier = {}) const {
    try {
      import_trace(of, import_, own_framework(), earlier);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }

  test::TraceText trace_;
  TraceImport import_;
};

TEST_F(ImportedProfileTest, IsACompleteProfileFile) {
  const ImportedProfile imported = this->imported();
  EXPECT_EQ(imported.block_class, "Block");
  EXPECT_FALSE(imported.on_gpu);
  const ProfileFile profile = parse_profile_file(to_json(imported.profile), "profile.json");
  EXPECT_TRUE(matches(profile, job().model, Precision::fp32));
  EXPECT_EQ(profile.measured.libraries, "accelerate");
  EXPECT_EQ(profile.overheads.base_memory_bytes, 1000);
  const LayerProfile layers = unroll(profile, 2);
  const LayerProfile::Cell* cell = layers.find(1, {.tp = 1});
  ASSERT_NE(cell, nullptr);
  EXPECT_NEAR((*cell)[0].forward_s, 10e-6, 1e-10);
  EXPECT_NEAR((*cell)[1].forward_s, 12e-6, 1e-10);
  EXPECT_NEAR((*cell)[1].backward_s, 28e-6, 1e-10);
  EXPECT_NEAR((*cell)[3].backward_s, 19e-6, 1e-10);
  // The update is that of all layers together, and larger where there are more parameters.
  double update_s = 0;
  for (const LayerTimes& times : *cell) update_s += times.update_s;
  EXPECT_NEAR(update_s, 40e-6, 1e-10);
  const std::vector<LayerSizes> sizes = *unroll_sizes(profile, 2).find({.tp = 1});
  EXPECT_NEAR((*cell)[1].update_s / (*cell)[3].update_s,
              static_cast<double>(sizes[1].parameters) / static_cast<double>(sizes[3].parameters), 1e-9);
}

TEST_F(ImportedProfileTest, FurtherTracesAddToTheFile) {
  const ProfileFile first = imported().profile;
  import_.microbatch = 4;
  ProfileFile both = imported(first).profile;
  EXPECT_EQ(unroll(both, 2).microbatches(), (std::vector{1, 4}));
  both = imported(both).profile;  // again
  EXPECT_EQ(both.times.size(), 6u);
  EXPECT_EQ(both.sizes.size(), 3u);
}

TEST_F(ImportedProfileTest, WhatWasMeasuredOtherwiseIsNotReplaced) {
  ProfileFile earlier = imported().profile;
  earlier.file = "profiles/x.json";
  earlier.measured.libraries = "libtorch 2.11";
  EXPECT_THAT(refusal(job(), earlier),
              HasSubstr("profiles/x.json: was measured with something else than the trace"));
}

TEST_F(ImportedProfileTest, ATraceOfSomethingElseIsRefused) {
  JobSpec adapted = job();
  adapted.training.lora.emplace();
  EXPECT_THAT(refusal(adapted), HasSubstr("training.lora: layers are profiled without adapters"));
  test::TraceText only_passes;
  test::add_pass(only_passes, 1000, 50);
  const std::string whole = std::exchange(import_.trace, only_passes.file());
  EXPECT_THAT(refusal(job()), HasSubstr("the trace has no step of a torch.optim.Optimizer"));
  std::filesystem::remove(std::exchange(import_.trace, whole));
  import_.on_processors = false;
  EXPECT_THAT(refusal(job()), HasSubstr("no kernels of a GPU: profile with ProfilerActivity.CUDA, too"));
  import_.tp = 3;
  EXPECT_THAT(refusal(job()), HasSubstr("--tp: the model does not divide by 3"));
}

}  // namespace
}  // namespace sailor
