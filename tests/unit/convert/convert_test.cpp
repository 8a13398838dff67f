// The converters of published data sets, each on a few rows of its set's kind.
#include "tests/convert/convert.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "planner/plan/plan_json.h"
#include "planner/simulator/run_prediction.h"
#include "tests/convert/csv.h"
#include "tests/convert/uniform_plan.h"
#include "tests/unit/planner/error_of.h"
#include "tests/unit/planner/scratch.h"

namespace sailor::convert {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string file(const std::string& text, const std::string& name = "rows.csv") {
  static const fs::path directory = test::scratch_directory("convert");
  const fs::path path = directory / name;
  std::ofstream(path) << text;
  return path.string();
}

std::vector<int> cuts_of(const Plan& plan) {
  std::vector<int> cuts{0};
  for (const PlanStage& stage : plan.pipelines.at(0).stages) cuts.push_back(stage.end_layer);
  return cuts;
}

std::vector<std::string> nodes_of(const PlanPipeline& pipeline) {
  std::vector<std::string> nodes;
  for (const PlanStage& stage : pipeline.stages) nodes.push_back(stage.node);
  return nodes;
}

// What every converted run must be: readable in the product's format, placed on GPUs that no other has.
void expect_good(const std::vector<MeasuredRun>& records) {
  for (const MeasuredRun& record : records) {
    EXPECT_EQ(to_json(parse_measured_run(to_json(record), "r")), to_json(record)) << record.name;
    std::set<std::pair<std::string, int>> used;
    int64_t microbatches = 0;
    for (const PlanPipeline& pipeline : record.plan.pipelines) {
      microbatches += pipeline.microbatches;
      const size_t groups = pipeline.stages.size() / static_cast<size_t>(record.plan.interleave);
      for (size_t i = 0; i < groups; ++i)
        for (int gpu : pipeline.stages[i].gpus)
          EXPECT_TRUE(used.insert({pipeline.stages[i].node, gpu}).second) << record.name;
    }
    EXPECT_EQ(microbatches, num_microbatches(record.plan.global_batch, record.plan.microbatch))
        << record.name;
    EXPECT_EQ(static_cast<int>(used.size()), num_ranks(record.plan)) << record.name;
  }
}

void expect_predictable(const std::vector<MeasuredRun>& records) {
  static const Assumptions assumptions = load_assumptions(SAILOR_SOURCE_DIR "/etc");
  for (const MeasuredRun& record : records) {
    const Prediction prediction = predict_run(record, assumptions);
    EXPECT_GT(prediction.iteration_s, 0) << record.name;
    EXPECT_GT(predicted_peak_bytes(record, prediction), 0) << record.name;
  }
}

TEST(Csv, QuotedCellsHoldCommasQuotesAndLineBreaks) {
  Csv csv;
  load_csv(file("a,b,c\n1,\"x, \"\"y\"\"\nz\",3\n\n4,,6\r\n"), csv);
  ASSERT_EQ(csv.rows.size(), 2u);
  EXPECT_EQ(csv.rows[0].text("b"), "x, \"y\"\nz");
  EXPECT_EQ(csv.rows[0].where().line, 2);
  EXPECT_EQ(csv.rows[0].integer("c"), 3);
  EXPECT_TRUE(csv.rows[1].empty("b"));
  EXPECT_EQ(csv.rows[1].integer_or("b", 7), 7);
  EXPECT_EQ(csv.rows[1].text("c"), "6");
  EXPECT_EQ(csv.rows[1].where().line, 5);
}

TEST(Csv, ErrorsNameFileAndLine) {
  const std::string path = file("a,b\n1,2\nx,2.5\n");
  Csv csv;
  load_csv(path, csv);
  EXPECT_THAT(test::error_of([&] { csv.rows[1].number("a"); }),
              StartsWith(path + ":3: a: \"x\" is not a number"));
  EXPECT_THAT(test::error_of([&] { csv.rows[1].integer("b"); }),
              StartsWith(path + ":3: b: \"2.5\" is not an integer"));
  EXPECT_THAT(test::error_of([&] { csv.rows[0].text("d"); }), StartsWith(path + ":2: no column \"d\""));
  const auto load = [](const std::string& text) {
    const std::string broken = file(text, "broken.csv");
    return test::error_of([&] {
      Csv other;
      load_csv(broken, other);
    });
  };
  EXPECT_THAT(load("a,b\n1,2\n1\n"), HasSubstr("broken.csv:3: 1 cells, the header has 2"));
  EXPECT_THAT(load(""), HasSubstr("an empty file"));
}

TEST(UniformPlan, BlocksAreDealtEvenlyAndTheEndsGoWithThem) {
  EXPECT_THAT(even_cuts(24, 1), ElementsAre(0, 26));
  EXPECT_THAT(even_cuts(24, 4), ElementsAre(0, 7, 13, 19, 26));
  EXPECT_THAT(even_cuts(5, 2), ElementsAre(0, 4, 7));
}

TEST(UniformPlan, RanksFillNodesInTheOrderOfTheFramework) {
  UniformPlan uniform;
  uniform.pp = uniform.dp = uniform.tp = 2;
  uniform.cuts = even_cuts(4, 2);
  uniform.global_batch = 7;
  uniform.gpus_per_node = 4;
  Plan plan = uniform.plan();
  ASSERT_EQ(plan.pipelines.size(), 2u);
  EXPECT_EQ(plan.pipelines[0].microbatches, 4);
  EXPECT_EQ(plan.pipelines[1].microbatches, 3);
  // Ranks 0-1 and 2-3 are the first stage of both replicas.
  EXPECT_THAT(nodes_of(plan.pipelines[0]), ElementsAre("0", "1"));
  EXPECT_THAT(nodes_of(plan.pipelines[1]), ElementsAre("0", "1"));
  EXPECT_THAT(plan.pipelines[1].stages[0].gpus, ElementsAre(2, 3));
  uniform.order = RankOrder::tp_pp_dp;
  plan = uniform.plan();
  EXPECT_THAT(nodes_of(plan.pipelines[0]), ElementsAre("0", "0"));
  EXPECT_THAT(nodes_of(plan.pipelines[1]), ElementsAre("1", "1"));
  EXPECT_THAT(plan.pipelines[1].stages[1].gpus, ElementsAre(2, 3));
}

TEST(UniformPlan, ChunksComeBackToTheirGpus) {
  UniformPlan uniform;
  uniform.pp = 2;
  uniform.interleave = 3;
  uniform.cuts = even_cuts(12, 6);
  uniform.global_batch = 4;
  uniform.gpus_per_node = 1;
  const Plan plan = uniform.plan();
  EXPECT_EQ(plan.interleave, 3);
  EXPECT_THAT(nodes_of(plan.pipelines[0]), ElementsAre("0", "1", "0", "1", "0", "1"));
  EXPECT_EQ(num_ranks(plan), 2);
}

TEST(Convert, SetsAreKnownByName) {
  EXPECT_THAT(set_names(), ::testing::IsSupersetOf({"sailor", "vtrain-single", "vtrain-multi", "ultrascale",
                                                    "golden", "bigscience", "amp"}));
  EXPECT_THAT(test::error_of([] { convert("vtrain-singel", "x"); }),
              HasSubstr("did you mean \"vtrain-single\"?"));
  for (const std::string& set : set_names()) EXPECT_THROW(convert(set, "/nowhere/rows"), InputError) << set;
}

const char* const kVtrain =
    "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor "
    "parallelism,data "
    "parallelism,pipeline parallelism,iteration time (ms)\n";

TEST(Convert, Vtrain) {
  const auto records = convert_vtrain(file(std::string(kVtrain) + "8,16,4,2048,16,24,1024,2,2,2,410.5\n"));
  ASSERT_EQ(records.size(), 1u);
  const MeasuredRun& r = records[0];
  EXPECT_EQ(r.name, "2");  // its line
  EXPECT_THAT(cuts_of(r.plan), ElementsAre(0, 13, 26));
  EXPECT_EQ(r.plan.pipelines.size(), 2u);
  EXPECT_EQ(r.plan.pipelines[0].microbatches, 2);
  EXPECT_EQ(r.plan.pipelines[0].stages[0].shape.tp, 2);
  EXPECT_EQ(r.plan.pipelines[0].stages[0].recompute, Recompute::full);
  EXPECT_EQ(r.shape.feed_forward, 4 * 2048);
  EXPECT_EQ(r.shape.head_width, 128);
  EXPECT_DOUBLE_EQ(*r.measured_s(), 0.4105);
  EXPECT_FALSE(r.measured_bytes());
  expect_good(records);
  expect_predictable(records);
  EXPECT_THAT(test::error_of(
                  [] { convert_vtrain(file(std::string(kVtrain) + "8,16,x,2048,16,24,1024,2,2,2,410\n")); }),
              HasSubstr("rows.csv:2: micro batch: \"x\" is not a number"));
}

const char* const kUltrascale =
    "model,params,layers,hidden,heads,kv_heads,ffn,vocab,tied_embed,nodes,dp,tp,pp,zero,mbs,grad_acc,gbs,seq,"
    "status,"
    "mfu_pct,tok_s_gpu,tok_s,derived_iter_s,gpu_mem_gb,hw,source\n";

std::string ultrascale_row(int dp, int tp, int pp, int zero, const std::string& measured) {
  return "1B,1342177280,16,2048,32,32,8192,131072,1,1," + std::to_string(dp) + "," + std::to_string(tp) +
         "," + std::to_string(pp) + "," + std::to_string(zero) + ",2,16,256,4096," + measured +
         ",8xH100,source\n";
}

TEST(Convert, Ultrascale) {
  const std::string ok = "ok,39.2,40150,320000,3.3,50.0", failed = "failed,,,,,";
  const auto records = convert_ultrascale(
      file(kUltrascale + ultrascale_row(4, 1, 2, 1, ok) + ultrascale_row(8, 1, 1, 0, failed)));
  ASSERT_EQ(records.size(), 2u);
  const MeasuredRun& r = records[0];
  // The head counts as much as four of the sixteen blocks: 10 blocks, then 6 and the head.
  EXPECT_THAT(cuts_of(r.plan), ElementsAre(0, 11, 18));
  EXPECT_EQ(r.plan.zero, Zero::optimizer);
  EXPECT_TRUE(r.shape.gated_mlp);
  EXPECT_TRUE(r.shape.tied_embeddings);
  EXPECT_EQ(r.plan.global_batch, 4 * 2 * 16);
  EXPECT_DOUBLE_EQ(*r.measured_s(), 128.0 * 4096 / 320000);
  EXPECT_DOUBLE_EQ(*r.measured_bytes(), 50.0 * (1 << 30));
  EXPECT_EQ(r.memory_stage, 0);
  EXPECT_FALSE(records[1].ran);
  EXPECT_EQ(records[1].plan.zero, Zero::none);
  EXPECT_FALSE(records[1].measured_s());
  expect_good(records);
  expect_predictable(records);
}

TEST(Convert, UltrascaleStagesAreNeverEmpty) {
  std::string rows = kUltrascale;
  for (int pp : {1, 2, 4, 8, 16}) rows += ultrascale_row(16 / pp, 1, pp, 0, "failed,,,,,");
  const auto records = convert_ultrascale(file(rows));
  ASSERT_EQ(records.size(), 5u);
  for (const MeasuredRun& r : records)
    for (const PlanStage& stage : r.plan.pipelines[0].stages)
      EXPECT_LT(stage.first_layer, stage.end_layer) << r.name;
  expect_good(records);
}

const char* const kGolden =
    "family,test,platform,tp,pp,cp,ep,vp,layers,hidden,heads,ffn,seq,mbs,gbs,bf16,sp,dist_opt,recompute,fsdp,"
    "deterministic,attn,iter_time_median_s,n,mem_alloc_bytes,mem_max_alloc_bytes,path\n";

TEST(Convert, GoldenInterleavesByLayersPerChunk) {
  const auto records = convert_golden(
      file(std::string(kGolden) +
           "gpt,gpt3_mcore_te_tp2_pp2_vp1,dev_dgx_a100,2,2,1,1,1,12,512,8,,1024,4,32,true,true,true,full,,"
           "true,,0.5,50,1,"
           "3000000000,p\n"
           "gpt,gpt3_mcore_te_tp1_pp4_cp2,dev_dgx_a100,1,4,2,1,,12,512,8,,1024,4,32,true,,,,,true,,0.5,50,1,"
           "3000000000,p\n"
           "gpt,gpt3_mcore_tp1_pp2_untie,dev_dgx_h100,1,2,1,1,,12,512,8,,1024,4,32,,,,,,true,unfused,0.5,50,"
           "1,2e9,p\n"
           "bert,bert_tp1,dev_dgx_a100,1,1,1,1,,12,512,8,,1024,4,32,,,,,,true,,0.5,50,1,2e9,p\n"
           "gpt,gpt3_fsdp,dev_dgx_a100,1,1,1,1,,12,512,8,,1024,4,32,,,,,true,true,,0.5,50,1,2e9,p\n"));
  ASSERT_EQ(records.size(), 3u);
  const MeasuredRun& r = records[0];
  // 12 blocks on two groups of GPUs, one to a chunk: six chunks each.
  EXPECT_EQ(r.plan.interleave, 6);
  EXPECT_EQ(r.plan.pipelines.size(), 2u);
  ASSERT_EQ(r.plan.pipelines[0].stages.size(), 12u);
  EXPECT_THAT(cuts_of(r.plan), ElementsAre(0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14));
  EXPECT_EQ(r.plan.pipelines[0].stages[0].node, r.plan.pipelines[0].stages[2].node);
  EXPECT_EQ(r.plan.pipelines[0].microbatches % 2, 0);
  EXPECT_EQ(r.plan.zero, Zero::optimizer);
  EXPECT_EQ(r.plan.pipelines[0].stages[0].recompute, Recompute::full);
  EXPECT_EQ(r.options.at("sequence_parallel"), "true");
  EXPECT_EQ(r.memory_stage, -1);
  EXPECT_DOUBLE_EQ(*r.measured_bytes(), 3e9);
  EXPECT_FALSE(r.measured_s());
  // Four stages of two context-parallel ranks fill a node.
  EXPECT_EQ(records[1].name, "3");
  EXPECT_EQ(records[1].plan.pipelines.size(), 1u);
  EXPECT_TRUE(records[1].plan.sequence_parallel);
  EXPECT_EQ(records[1].plan.pipelines[0].stages[3].shape, (ReplicaShape{.tp = 1, .cp = 2}));
  EXPECT_THAT(records[1].plan.pipelines[0].stages[3].gpus, ElementsAre(6, 7));
  EXPECT_EQ(records[2].name, "4");
  EXPECT_EQ(records[2].options.at("attention"), "unfused");
  EXPECT_EQ(records[2].options.at("gradient_bytes"), "2");
  EXPECT_FALSE(records[2].shape.tied_embeddings);
  EXPECT_EQ(records[2].plan.interleave, 1);
  expect_good(records);
  expect_predictable(records);
}

const char* const kAmp = "setting,mbs,tp,dp,pp,partition,predicted,real_s_per_iter,gbs\n";

TEST(Convert, AmpHasOneNodeOfAnotherType) {
  const auto records =
      convert_amp(file(std::string(kAmp) + "het_cluster,1,1.,4.,4.,0/ 7/ 14/ 20/ 30,1.0859,1.47,32\n" +
                       "homogeneous,1,2.,8.,1.,0/ 30,1.2443,inf,32\n"));
  ASSERT_EQ(records.size(), 2u);
  const MeasuredRun& r = records[0];
  // The framework's entries 7, 14 and 20 are the embedding, a cast and 5, 12 and 18 blocks.
  EXPECT_THAT(cuts_of(r.plan), ElementsAre(0, 6, 13, 19, 26));
  for (const PlanPipeline& pipeline : r.plan.pipelines) {
    EXPECT_THAT(nodes_of(pipeline), ElementsAre("0", "1", "2", "3"));
    EXPECT_EQ(pipeline.stages[0].gpu_type, pipeline.stages[2].gpu_type);
    EXPECT_NE(pipeline.stages[0].gpu_type, pipeline.stages[3].gpu_type);
  }
  EXPECT_DOUBLE_EQ(*r.measured_s(), 1.47);
  EXPECT_FALSE(records[1].ran);
  EXPECT_FALSE(records[1].measured_s());
  expect_good(records);
  expect_predictable(records);
  EXPECT_THAT(
      test::error_of([] { convert_amp(file(std::string(kAmp) + "homogeneous,1,1,8,2,0/ 30,1,1,32\n")); }),
      HasSubstr("rows.csv:2: partition: not pp stages"));
}

const char* const kBigscience =
    "file,line,section,context,hw,nodes,gpus,size,hidden,layers,heads,zero,dp,tp,pp,mbs,gbs,pp_chunks,mem,"
    "sec_it,"
    "tflops,notes\n";

TEST(Convert, BigscienceTakesRowsThatSayAllThatAPlanNeeds) {
  const auto records = convert_bigscience(file(
      std::string(kBigscience) +
      "f,1,s,\"a, quoted | context\",A100-80GB,48,384,181B,14336,72,112,1,8,4,12,2,2048,,57GB,102.0,150,x\n"
      "f,2,s,c,A100-80GB,48,384,181B,14336,72,112,1,8,4,12,2,,,57GB,102.0,150,no batch\n"
      "f,3,s,c,V100-32GB,48,384,181B,14336,72,112,1,8,4,12,2,2048,,57GB,102.0,150,x\n"
      "f,4,s,c,A100-80GB,48,384,181B,14336,72,112,1,8,4,12,2,2048,,57GB,,150,not timed\n"));
  ASSERT_EQ(records.size(), 1u);
  const MeasuredRun& r = records[0];
  EXPECT_EQ(r.model, "181B/14336/72");
  EXPECT_EQ(num_ranks(r.plan), 384);
  EXPECT_EQ(r.plan.pipelines.size(), 8u);
  EXPECT_EQ(r.plan.pipelines[0].microbatches, 128);
  EXPECT_EQ(r.plan.pipelines[0].stages.size(), 12u);
  EXPECT_EQ(r.plan.pipelines[0].stages[3].recompute, Recompute::full);
  EXPECT_DOUBLE_EQ(*r.measured_s(), 102);
  EXPECT_DOUBLE_EQ(*r.measured_bytes(), 57e9);
  expect_good(records);
  expect_predictable(records);
}

TEST(Convert, SailorRunsAndTheirRepetitions) {
  const fs::path root = test::scratch_directory("sailor_set");
  fs::create_directories(root / "clariden" / "OPT-350" / "N4");
  std::ofstream(root / "clariden" / "OPT-350" / "N4" / "plan.json")
      << R"({"zone": "z", "pipeline_list": [{"num_stages": 2, "layers_per_stage": [[0, 1, 2], [3, 4]],
          "tmp_per_stage": [[[[["GH-96", 1, "z"]], 4], [[["GH-96", 1, "z"]], 2]],
                            [[[["GH-96", 1, "z"]], 4], [[["GH-96", 1, "z"]], 2]]], "dp": [2]}],
          "mbs": 2, "gbs": 16, "real": 3.0, "red_grads": 0, "max_mem": 5e9, "N": 4})";
  std::ofstream(root / "repeat.csv") << "case,repeat_real_s,repeat_max_mem_bytes\n"
                                        "clariden/OPT-350/N4/plan.json,3.2,5.2e9\n";
  const auto records = convert_sailor(root.string());
  ASSERT_EQ(records.size(), 1u);
  const MeasuredRun& r = records[0];
  EXPECT_EQ(r.platform, "clariden");
  EXPECT_EQ(r.model, "OPT-350");
  EXPECT_EQ(r.shape.num_all_layers(), 26);
  ASSERT_EQ(r.plan.pipelines.size(), 2u);
  EXPECT_EQ(r.plan.pipelines[0].microbatches, 4);
  EXPECT_EQ(r.plan.pipelines[0].stages[0].shape.tp, 4);
  EXPECT_EQ(r.plan.pipelines[1].stages[0].shape.tp, 2);
  EXPECT_THAT(cuts_of(r.plan), ElementsAre(0, 3, 5));
  // A node of its own for every stage of every replica.
  std::set<std::string> nodes;
  for (const PlanPipeline& pipeline : r.plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) nodes.insert(stage.node);
  EXPECT_EQ(nodes.size(), 4u);
  EXPECT_THAT(r.iteration_s, ElementsAre(3.0, 3.2));
  EXPECT_DOUBLE_EQ(*r.measured_bytes(), 5.1e9);
}

}  // namespace
}  // namespace sailor::convert
