// The pictures of an iteration: Chrome trace, SVG and HTML page.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "planner/report/chrome_trace.h"
#include "planner/report/html_report.h"
#include "planner/report/timeline_pipelines.h"
#include "planner/report/timeline_svg.h"
#include "tests/unit/occurrences.h"

namespace sailor {
namespace {

using Kind = TimelineEvent::Kind;

struct Iteration {
  Plan plan;
  Prediction prediction;
  std::vector<Timeline> timelines;
};

// `slow`: the last pipeline's stages take twice as long.
Iteration iteration(int pipelines, int stages, int microbatches, int chunks = 1, bool slow = false) {
  Iteration out;
  out.plan.model = "tiny <&>";
  out.plan.microbatch = 2;
  out.plan.global_batch = 2 * pipelines * microbatches;
  out.plan.interleave = chunks;
  PipelineSchedule schedule;
  schedule.chunks = chunks;
  for (int j = 0; j < pipelines; ++j) {
    const double factor = slow && j + 1 == pipelines ? 2 : 1;
    PlanPipeline pipeline;
    pipeline.microbatches = microbatches;
    std::vector<StageTimes> times;
    for (int k = 0; k < stages * chunks; ++k) {
      PlanStage stage;
      stage.first_layer = 2 * k;
      stage.end_layer = 2 * k + 2;
      stage.gpu_type = "fast";
      pipeline.stages.push_back(stage);
      times.push_back({0.01 * factor, 0.02 * factor, 0.001, 0.001});
      StagePrediction s;
      s.pipeline = j;
      s.stage = k;
      s.forward_s = times.back().forward_s;
      s.memory.weights_bytes = int64_t{3} << 30;
      s.memory.base_bytes = int64_t{1} << 29;
      s.capacity_bytes = int64_t{4} << 30;
      out.prediction.stages.push_back(s);
    }
    out.plan.pipelines.push_back(pipeline);
    Timeline timeline = pipeline_timeline(schedule, times, microbatches, {}, true);
    for (int i = 0; i < stages; ++i) {
      const double end = timeline.stage_end_s[i];
      timeline.events.push_back({Kind::sync, i, -1, timeline.last_backward_s[i], end + 0.01});
      timeline.events.push_back({Kind::update, i, -1, end + 0.01, end + 0.02});
      out.prediction.iteration_s = std::max(out.prediction.iteration_s, end + 0.025);
    }
    out.timelines.push_back(std::move(timeline));
  }
  return out;
}

// Every element is closed, in order.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-zA-Z0-9]+)[^>]*?(/?)>");
  for (auto it = std::sregex_iterator(xml.begin(), xml.end(), tag); it != std::sregex_iterator(); ++it) {
    const std::string name = (*it)[2];
    if ((*it)[3] == "/" || name == "meta") continue;
    if ((*it)[1] != "/") {
      open.push_back(name);
    } else {
      ASSERT_FALSE(open.empty()) << name;
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(ChromeTrace, HasAThreadPerStageAndEveryEvent) {
  const Iteration in = iteration(2, 3, 4);
  const auto trace = nlohmann::json::parse(chrome_trace(in.plan, in.timelines));
  std::map<std::string, int> categories;
  std::map<std::pair<int, int>, double> free_at;  // spans of one thread never overlap
  std::map<std::string, int> names;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    ASSERT_EQ(event.at("ph"), "X");
    ++categories[event.at("cat")];
    ++names[event.at("name")];
    double& free = free_at[{event.at("pid"), event.at("tid")}];
    EXPECT_GE(event.at("ts").get<double>(), free - 0.002) << event.dump();
    free = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(categories, (std::map<std::string, int>{
                            {"forward", 24}, {"backward", 24}, {"send", 32}, {"sync", 6}, {"update", 6}}));
  EXPECT_EQ(names["F3"], 6);
  EXPECT_EQ(names["B0"], 6);
  EXPECT_EQ(names["send F3"], 4);
  EXPECT_EQ(trace.at("displayTimeUnit"), "ms");
}

TEST(ChromeTrace, TimesAreMicrosecondsAndChunksAreNamed) {
  const Iteration in = iteration(1, 2, 2, 2);
  const auto trace = nlohmann::json::parse(chrome_trace(in.plan, in.timelines));
  bool found = false;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("name") == "F1.0" && event.at("tid") == 0) {
      found = true;
      EXPECT_DOUBLE_EQ(event.at("ts"), 10000);
      EXPECT_DOUBLE_EQ(event.at("dur"), 10000);
    }
  EXPECT_TRUE(found);
}

TEST(TimelineSvg, DrawsABarPerOperation) {
  const Iteration in = iteration(1, 3, 4);
  const std::string svg = timeline_svg(in.plan, in.prediction, in.timelines);
  expect_well_formed(svg);
  EXPECT_EQ(occurrences(svg, R"(<rect class="tl-f")"), 1 + 12u);  // and the legend
  EXPECT_EQ(occurrences(svg, R"(<rect class="tl-b")"), 1 + 12u);
  EXPECT_EQ(occurrences(svg, R"(<rect class="tl-s")"), 1 + 3u);
  EXPECT_NE(svg.find("stage 2: fast x1, layers 4-5"), std::string::npos);
  EXPECT_NE(svg.find("tiny &lt;&amp;&gt;"), std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(svg.find("time in ms"), std::string::npos);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(TimelineSvg, EqualPipelinesAreDrawnOnce) {
  const Iteration equal = iteration(4, 3, 4), slow = iteration(4, 3, 4, 1, true);
  const std::string one = timeline_svg(equal.plan, equal.prediction, equal.timelines);
  const std::string two = timeline_svg(slow.plan, slow.prediction, slow.timelines);
  EXPECT_NE(one.find("pipelines 0-3: 4 microbatches"), std::string::npos);
  EXPECT_EQ(occurrences(one, "layers 0-1</text>"), 1u);
  EXPECT_NE(two.find("pipelines 0-2: 4 microbatches"), std::string::npos);
  EXPECT_NE(two.find("pipeline 3: 4 microbatches"), std::string::npos);
}

TEST(TimelineSvg, StaysSmallForThousandsOfMicrobatches) {
  const Iteration in = iteration(2, 64, 1024);
  const std::string svg = timeline_svg(in.plan, in.prediction, in.timelines);
  expect_well_formed(svg);
  EXPECT_LT(svg.size(), 1'000'000u);
  EXPECT_NE(svg.find("heights are shares of time"), std::string::npos);
  EXPECT_NE(svg.find("stage 63"), std::string::npos);
}

TEST(TimelineSvg, NothingToDrawIsNoError) {
  Iteration in = iteration(1, 1, 1);
  in.timelines[0].events.clear();
  in.prediction.iteration_s = 0;
  in.timelines[0].makespan_s = 0;
  expect_well_formed(timeline_svg(in.plan, in.prediction, in.timelines));
  EXPECT_THROW(timeline_svg(in.plan, in.prediction, {}), std::invalid_argument);
}

TEST(HtmlReport, HasTheTablesAndThePicture) {
  Iteration in = iteration(2, 2, 4);
  const std::string page =
      html_report(in.plan, in.prediction, in.timelines, {"slow: layer times are <estimated>"});
  expect_well_formed(page.substr(page.find("<html")));
  EXPECT_NE(page.find("layer times are &lt;estimated&gt;"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("Memory by source"), std::string::npos);
  EXPECT_NE(page.find("<td>3.00</td>"), std::string::npos);               // weights
  EXPECT_NE(page.find("<td><b>3.50</b></td>"), std::string::npos);        // their sum with the base
  EXPECT_EQ(page.find(">other<"), std::string::npos);                     // every source has its column
  EXPECT_EQ(page.find("http"), page.find("http://www.w3.org/2000/svg"));  // a name, nothing to load
  EXPECT_EQ(page.find("<script"), std::string::npos);
  const std::string without = html_report(in.plan, in.prediction, {});
  EXPECT_EQ(without.find("<svg"), std::string::npos);
}

TEST(HtmlReport, MarksWhatDoesNotFit) {
  Iteration in = iteration(1, 2, 4);
  in.prediction.stages[1].memory.activations_bytes = int64_t{2} << 30;
  in.prediction.fits = false;
  const std::string page = html_report(in.plan, in.prediction, in.timelines);
  EXPECT_NE(page.find("does not fit"), std::string::npos);
  EXPECT_NE(page.find(R"(<b class="bad">5.50</b>)"), std::string::npos);
}

TEST(PipelineNames, CollapseRuns) {
  EXPECT_EQ(pipelines_name({3}), "pipeline 3");
  EXPECT_EQ(pipelines_name({0, 1, 2, 5, 7, 8}), "pipelines 0-2, 5, 7-8");
  const Iteration in = iteration(1, 2, 2, 2);
  EXPECT_EQ(num_gpu_groups(in.plan, in.plan.pipelines[0]), 2);
  EXPECT_EQ(gpu_group_name(in.plan, in.plan.pipelines[0], 1), "stage 1: fast x1, layers 2-3, 6-7");
}

}  // namespace
}  // namespace sailor
