#include "planner/simulator/published_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

using nlohmann::json;
using test::Instance;

// COST_MODEL.md implemented again, directly from the formulas over plain JSON files, sharing no code with the
// planner. A plan is [stage][replica] = (type, tp) over layers [first, end) per stage, all in one zone.
struct Formula {
  json times, sizes, network;
  std::string zone;

  double bandwidth_time(double bytes, const json& coefficients) const {
    const double m = std::log2(bytes / 1e6);
    const double gb_per_s = coefficients[0].get<double>() * m * m + coefficients[1].get<double>() * m +
                            coefficients[2].get<double>();
    return bytes / 1e9 / gb_per_s;
  }
  const json& link(const std::string& a, int n, const std::string& b, int m) const {
    return network.at(zone).at(a).at(std::to_string(n)).at(zone).at(b).at(std::to_string(m)).at(0);
  }
  struct Stage {
    int first, end;
    std::vector<std::pair<std::string, int>> replicas;
  };
  double floats(const std::string& what, int tp, int first, int end) const {
    double sum = 0;
    for (int l = first; l < end; ++l)
      sum += sizes.at(std::to_string(tp)).at(std::to_string(l)).at(what).get<double>();
    return sum;
  }

  double iteration_s(const std::vector<Stage>& stages, int mbs, int gbs) const {
    const int P = static_cast<int>(stages.size()), D = static_cast<int>(stages[0].replicas.size());
    const double nmb = std::ceil(static_cast<double>(gbs) / (mbs * D));
    double worst = 0, sum = 0, update = 0, sync = 0;
    for (int i = 0; i < P; ++i) {
      double comp = 0, act = 0, grad = 0;
      int smallest_tp = 1000;
      for (int j = 0; j < D; ++j) {
        const auto& [gpu, t] = stages[i].replicas[j];
        smallest_tp = std::min(smallest_tp, t);
        const json& cell = times.at(gpu).at(std::to_string(mbs)).at(std::to_string(t));
        double s = 0;
        for (int l = stages[i].first; l < stages[i].end; ++l)
          s += cell.at(std::to_string(l))[0].get<double>() + cell.at(std::to_string(l))[1].get<double>();
        comp = std::max(comp, s);
        update = std::max(update, cell.at(std::to_string(stages[i].first))[2].get<double>());
        if (i + 1 < P) {
          const auto& [gpu2, t2] = stages[i + 1].replicas[j];
          act = std::max(
              act, bandwidth_time(floats("act_output_floats", t, stages[i].end - 1, stages[i].end) * 4 * mbs,
                                  link(gpu, t, gpu2, t2)));
        }
        if (i > 0) {
          const auto& [gpu2, t2] = stages[i - 1].replicas[j];
          grad = std::max(
              grad,
              bandwidth_time(floats("act_output_floats", t, stages[i].first, stages[i].first + 1) * 4 * mbs,
                             link(gpu, t, gpu2, t2)));
        }
      }
      double comm = act + grad;
      if (P == 1)
        comm = 0;
      else if (i == 0)
        comm = P <= 3 ? act : 2 * act;
      else if (i == P - 1)
        comm = 2 * grad;
      worst = std::max(worst, comp + comm);
      sum += comp + comm;
      const double bytes =
          4 * floats("params_floats", 1, stages[i].first, stages[i].end) / std::min(4, smallest_tp);
      for (int j = 0; j + 1 < D; ++j) {
        double ar = 0;
        for (double left = bytes; left > 0; left -= 5e8)
          ar += 2.0 * (D - 1) *
                bandwidth_time(std::min(left, 5e8) / D,
                               link(stages[i].replicas[j].first, 1, stages[i].replicas[j + 1].first, 1));
        sync = std::max(sync, ar);
      }
    }
    return (nmb - 1) * worst + sum + update + sync;
  }
};

TEST(PublishedModel, MemoryOfOneStageByHand) {
  std::vector<LayerSizes> layers(2);
  layers[0].parameters = 1000;
  layers[0].activation_bytes = 400;
  layers[1].parameters = 500;
  layers[1].activation_bytes = 100;
  EXPECT_EQ(published::memory(layers, {1}, 4, 3).total(), 24 * 1500 + 3 * 4 * 500 + 2'000'000'000);
  EXPECT_EQ(published::memory(layers, {2}, 4, 3).total(), 24 * 1500 + 3 * 4 * 500 + 3'000'000'000);
}

TEST(PublishedModel, AllReduceGoesBucketByBucket) {
  const LinkCurve line = LinkCurve::from_points({{1e6, 1e-3}, {1e9, 1.0}});  // 1 GB/s
  EXPECT_NEAR(published::all_reduce_s(line, 1.2e9, 4), 2 * 3 * 1.2 / 4, 1e-9);
  EXPECT_DOUBLE_EQ(published::all_reduce_s(line, 1e9, 1), 0);
  // Latency counts once per bucket: three buckets.
  const LinkCurve slow = LinkCurve::from_points({{1e6, 1.001}, {1e9, 2.0}});
  EXPECT_NEAR(published::all_reduce_s(slow, 1.2e9, 4), 2 * 3 * (1.2 / 4 + 3 * 1.0), 1e-6);
}

TEST(PublishedModel, CommunicationOfFirstMiddleAndLastStage) {
  EXPECT_DOUBLE_EQ(published::stage_comm_s(0, 1, 3, 5), 0);
  EXPECT_DOUBLE_EQ(published::stage_comm_s(0, 3, 3, 5), 3);
  EXPECT_DOUBLE_EQ(published::stage_comm_s(0, 4, 3, 5), 6);
  EXPECT_DOUBLE_EQ(published::stage_comm_s(1, 4, 3, 5), 8);
  EXPECT_DOUBLE_EQ(published::stage_comm_s(3, 4, 3, 5), 10);
}

TEST(PublishedModel, SmallPlanByHand) {
  Instance in = test::empty_instance(2, 7);
  in.add_type("fast", 0.03, int64_t{1} << 40, 3.6);
  in.add_type("slow", 0.06, int64_t{1} << 40, 1.8);
  in.add_node("f", "fast", 4);
  in.add_node("s", "slow", 4);
  in.set_network(0, 1e9);
  const Plan plan = test::make_plan(
      in, 1, {{{0, 2, "fast", 1}, {2, 4, "slow", 1}}, {{0, 2, "fast", 1}, {2, 4, "slow", 1}}});
  const Prediction p = simulate(in.context(), plan, CostModel::published);
  const double comp0 = 0.03 * 1.2, comp1 = 0.06 * 2.3, message = 4e5 / 1e9;
  const double worst = std::max(comp0 + message, comp1 + 2 * message);
  const double sync = 2 * 1 * (8e6 / 2) / 1e9;
  EXPECT_NEAR(p.iteration_s, 3 * worst + comp0 + comp1 + 3 * message + 0.06 * 0.05 + sync, 1e-6);
  EXPECT_NEAR(p.spent[Expense::cost].gpus, p.iteration_s * (2 * 3.6 + 2 * 1.8) / 3600, 1e-12);
  EXPECT_DOUBLE_EQ(p.spent[Expense::cost].traffic, 0);
}

TEST(PublishedModel, TransferCostsCountEveryMessageAndTheWrappedRing) {
  Instance in = test::empty_instance(2, 4);
  in.add_type("fast", 0.03, int64_t{1} << 40, 3.6);
  in.add_node("f", "fast", 4, "z1");
  in.add_node("g", "fast", 4, "z2");
  in.snapshot.egress_usd_per_gb = {{"z1", {{"z2", 0.01}}}, {"z2", {{"z1", 0.02}}}};
  Plan plan = test::make_plan(
      in, 1, {{{0, 2, "fast", 1}, {2, 4, "fast", 1}}, {{0, 2, "fast", 1}, {2, 4, "fast", 1}}});
  plan.pipelines[0].stages[1].zone = "z2";  // stage 1: z2 then z1; stage 0: z1, z1
  const Prediction p = simulate(in.context(), plan, CostModel::published);
  const double messages = 2 * (2 * 0.01 * 4e5);         // two rounds, one pair across zones
  const double ring = (0.02 + 0.01) * 8e6 / 2 * 2 * 1;  // both directions, 2 (D - 1) / D of the stage
  EXPECT_NEAR(p.spent[Expense::cost].traffic, 1e-9 * (messages + ring), 1e-15);
}

TEST(PublishedModel, UnlikeCutsAndMissingCellsAreErrors) {
  Instance in = test::empty_instance(2, 4);
  in.add_type("fast", 0.03, int64_t{1} << 40, 3.6);
  in.add_node("f", "fast", 4);
  const Plan unlike = test::make_plan(
      in, 1, {{{0, 1, "fast", 1}, {1, 4, "fast", 1}}, {{0, 2, "fast", 1}, {2, 4, "fast", 1}}});
  EXPECT_THROW(simulate(in.context(), unlike, CostModel::published), InputError);
  const Plan missing = test::make_plan(in, 1, {{{0, 4, "fast", 4}}});
  EXPECT_THROW(simulate(in.context(), missing, CostModel::published), InputError);
}

// Every public validation run of the reference pack, predicted by both implementations.
TEST(PublishedModel, EqualsTheFormulasOnEveryPublicValidationRun) {
  const char* directory = std::getenv("SAILOR_REFERENCE");
  if (directory == nullptr || !std::filesystem::exists(directory))
    GTEST_SKIP() << "skipped: no data (SAILOR_REFERENCE)";
  const std::string root = directory;
  const auto read = [](const std::string& path) { return json::parse(std::ifstream(path)); };
  const json all_times = read(root + "/profiles/profiles_tmp.json"),
             all_sizes = read(root + "/profiles/llm_info.json");
  const json network = read(root + "/network/multizone_bandwidths_het.json");
  int runs = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root + "/validation_public")) {
    if (entry.path().extension() != ".json") continue;
    const json run = read(entry.path());
    const std::string model =
        entry.path().string().find("GPT-NEO") != std::string::npos ? "GPT-Neo-2.7" : "OPT-350";
    const json& pipeline = run.at("pipeline_list").at(0);
    Formula formula{all_times.at(model), all_sizes.at(model), network, run.at("zone")};
    std::vector<Formula::Stage> stages;
    std::vector<std::string> types;
    for (size_t i = 0; i < pipeline.at("layers_per_stage").size(); ++i) {
      const json& layers = pipeline.at("layers_per_stage")[i];
      Formula::Stage stage{layers.front(), layers.back().get<int>() + 1, {}};
      for (const json& replica : pipeline.at("tmp_per_stage")[i]) {
        stage.replicas.emplace_back(replica[0][0][0], replica[1]);
        types.push_back(replica[0][0][0]);
      }
      stages.push_back(stage);
    }
    Instance in;
    in.job.model.name = model;
    in.job.model.layers = static_cast<int>(all_sizes.at(model).at("1").size()) - 2;
    in.job.training.global_batch = run.at("gbs");
    in.profiles = load_reference_profiles(root, model, types, ReferenceTimes::simulator_copy);
    Plan plan;
    plan.global_batch = run.at("gbs");
    plan.microbatch = run.at("mbs");
    plan.pipelines.resize(stages[0].replicas.size());
    for (const std::string& type : types) in.catalog.gpu_types[type].memory_bytes = int64_t{1} << 40;
    for (size_t j = 0; j < plan.pipelines.size(); ++j)
      for (const auto& stage : stages)
        plan.pipelines[j].stages.push_back({stage.first,
                                            stage.end,
                                            stage.replicas.at(j).first,
                                            formula.zone,
                                            {stage.replicas.at(j).second},
                                            Recompute::none,
                                            kWholeBackward,
                                            Offload::none,
                                            "",
                                            {}});
    EXPECT_NEAR(simulate(in.context(), plan, CostModel::published).iteration_s /
                    formula.iteration_s(stages, plan.microbatch, run.at("gbs")),
                1.0, 1e-9)
        << entry.path();
    ++runs;
  }
  EXPECT_EQ(runs, 20);
}

}  // namespace
}  // namespace sailor
