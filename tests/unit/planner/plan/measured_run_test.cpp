#include "planner/plan/measured_run.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "planner/plan/plan_json.h"
#include "planner/spec/text_file.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

MeasuredRun example_run(const std::string& name = "row 17") {
  MeasuredRun record;
  record.name = name;
  record.framework = "f";
  record.options = {{"sequence_parallel", "true"}, {"gradient_bytes", "4"}};
  record.platform = "p";
  record.precision = Precision::bf16;
  record.model = "small";
  record.shape.layers = 4;
  record.shape.hidden = 64;
  record.shape.heads = 8;
  record.shape.kv_heads = 2;
  record.shape.head_width = 8;
  record.shape.feed_forward = 256;
  record.shape.sequence = 128;
  record.shape.vocabulary = 1000;
  record.shape.gated_mlp = true;
  record.shape.biases = false;
  record.plan.model = "small";
  record.plan.global_batch = 8;
  record.plan.microbatch = 2;
  record.plan.zero = Zero::optimizer;
  PlanStage first, second;
  first.end_layer = second.first_layer = 3;
  second.end_layer = 6;
  first.gpu_type = second.gpu_type = "A";
  first.zone = second.zone = "z";
  first.recompute = Recompute::full;
  first.node = second.node = "n";
  first.gpus = {0};
  second.gpus = {1};
  record.plan.pipelines = {{4, {first, second}}};
  record.iteration_s = {1.5, 1.7};
  record.peak_memory_bytes = {2.4e10};
  record.memory_stage = -1;
  return record;
}

std::string run_error(const std::string& json) {
  return test::error_of([&] { parse_measured_run(json, "/d/run.json"); });
}

std::string replaced(const std::string& find, const std::string& replace) {
  std::string text = to_json(example_run());
  const size_t at = text.find(find);
  EXPECT_NE(at, std::string::npos) << find;
  return text.replace(at, find.size(), replace);
}

TEST(MeasuredRun, WritingAndReadingGivesTheSame) {
  for (int indent : {-1, 2}) {
    const MeasuredRun read = parse_measured_run(to_json(example_run(), indent), "/d/run.json");
    EXPECT_EQ(to_json(read, indent), to_json(example_run(), indent));
    EXPECT_EQ(read.options, example_run().options);
    EXPECT_EQ(read.shape.kv_heads, 2);
    EXPECT_TRUE(read.shape.gated_mlp);
    EXPECT_FALSE(read.shape.biases);
    EXPECT_EQ(to_json(read.plan), to_json(example_run().plan));
    EXPECT_EQ(read.model, "small");
    EXPECT_EQ(read.memory_stage, -1);
    EXPECT_EQ(read.where.file, "/d/run.json");
  }
  // One line on request.
  EXPECT_EQ(to_json(example_run()).find('\n'), std::string::npos);
}

TEST(MeasuredRun, OptionsMayBeWordsFlagsOrNumbers) {
  const MeasuredRun read = parse_measured_run(
      replaced("{\"gradient_bytes\":\"4\",\"sequence_parallel\":\"true\"}",
               "{\"gradient_bytes\": 4, \"sequence_parallel\": true, \"attention\": \"fused\"}"),
      "/d/run.json");
  EXPECT_EQ(read.options.at("gradient_bytes"), "4");
  EXPECT_EQ(read.options.at("sequence_parallel"), "true");
  EXPECT_EQ(read.options.at("attention"), "fused");
}

TEST(MeasuredRun, SeveralMeasurementsAreScoredByTheirMean) {
  EXPECT_DOUBLE_EQ(*example_run().measured_s(), 1.6);
  EXPECT_DOUBLE_EQ(*example_run().measured_bytes(), 2.4e10);
  MeasuredRun failed = example_run();
  failed.ran = false;
  failed.iteration_s.clear();
  failed.peak_memory_bytes.clear();
  failed.memory_stage.reset();
  const MeasuredRun read = parse_measured_run(to_json(failed), "/d/run.json");
  EXPECT_FALSE(read.ran);
  EXPECT_FALSE(read.measured_s());
  EXPECT_FALSE(read.measured_bytes());
  EXPECT_FALSE(read.memory_stage);
}

TEST(MeasuredRun, BrokenRecordsAreErrors) {
  EXPECT_THAT(run_error(replaced("\"layers\":4", "\"layers\":5")),
              HasSubstr("the plan's pipeline 0 ends at layer 6, the model has 7 layers"));
  EXPECT_THAT(run_error(replaced("\"status\":\"ok\"", "\"status\":\"good\"")),
              HasSubstr("measured.status: must be ok or failed"));
  EXPECT_THAT(run_error(replaced("[1.5,1.7]", "[1.5,-1]")),
              HasSubstr("measured.iteration_s[1]: must be a number above 0"));
  EXPECT_THAT(run_error(replaced("\"precision\":\"bf16\"", "\"precision\":\"bf8\"")),
              HasSubstr("precision: must be "));
  EXPECT_THAT(run_error(replaced("\"platform\"", "\"platfrom\"")), HasSubstr("did you mean \"platform\"?"));
  EXPECT_THAT(run_error(replaced("\"sailor_run\":1", "\"sailor_run\":3")),
              HasSubstr("version 3 is not supported"));
  EXPECT_THAT(run_error(replaced("[3,6]", "[4,6]")), HasSubstr("layer 3 is next"));
  EXPECT_THAT(run_error("{"), StartsWith("/d/run.json:1: "));
  EXPECT_THAT(run_error("[]"), StartsWith("/d/run.json:1: "));
  EXPECT_THAT(run_error(""), StartsWith("/d/run.json"));
}

class RunFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = test::scratch_directory("runs");
    fs::create_directories(root_ + "/inner");
  }
  std::string root_;
};

TEST_F(RunFiles, ALineIsARunAndEmptyLinesAreNone) {
  const std::string path = root_ + "/runs.jsonl";
  write_file_atomically(path, to_json(example_run("a")) + "\n\n" + to_json(example_run("b")) + "\n  \n" +
                                  to_json(example_run("c")));
  const std::vector<MeasuredRun> records = load_measured_runs(path);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].where.line, 1);
  EXPECT_EQ(records[1].where.line, 3);
  EXPECT_EQ(records[2].where.line, 5);
  EXPECT_EQ(records[2].name, "c");
}

TEST_F(RunFiles, AnErrorNamesItsLine) {
  const std::string path = root_ + "/runs.jsonl", good = to_json(example_run()) + "\n";
  const auto error = [&](const std::string& line) {
    write_file_atomically(path, good + good + "\n" + line + "\n" + good);
    return test::error_of([&] { load_measured_runs(path); });
  };
  EXPECT_THAT(error(replaced("\"status\":\"ok\"", "\"status\":\"good\"")),
              StartsWith(path + ":4: measured.status"));
  EXPECT_THAT(error(replaced("\"layers\":4", "\"layers\":9")), StartsWith(path + ":4: model: "));
  EXPECT_THAT(error("{\"sailor_run\": 1, "), StartsWith(path + ":4: "));
  EXPECT_THAT(error("nonsense"), StartsWith(path + ":4: "));
  EXPECT_THAT(error(good + good), StartsWith("no error"));
}

TEST_F(RunFiles, ADirectoryIsReadInTheOrderOfItsNames) {
  write_file_atomically(root_ + "/b.json", to_json(example_run("third"), 2));
  write_file_atomically(root_ + "/a.jsonl",
                        to_json(example_run("first")) + "\n" + to_json(example_run("second")) + "\n");
  write_file_atomically(root_ + "/inner/c.json", to_json(example_run("fourth")));
  write_file_atomically(root_ + "/notes.txt", "not a run");
  std::vector<std::string> names;
  for (const MeasuredRun& record : load_measured_runs(root_)) names.push_back(record.name);
  EXPECT_THAT(names, ElementsAre("first", "second", "third", "fourth"));
}

TEST_F(RunFiles, NoRunsAreAnError) {
  EXPECT_THAT(test::error_of([&] { load_measured_runs(root_); }), HasSubstr("no run (*.json, *.jsonl)"));
  EXPECT_THAT(test::error_of([&] { load_measured_runs(root_ + "/nothing.json"); }),
              StartsWith(root_ + "/nothing.json"));
}

}  // namespace
}  // namespace sailor
