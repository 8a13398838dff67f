#include "planner/report/plan_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "planner/report/plan_text.h"
#include "planner/report/timeline_pipelines.h"

namespace sailor {
namespace {

constexpr size_t kDrawingWidth = 100, kLabel = 23, kWidestText = 18;
constexpr size_t kMostKinds = 8;
constexpr size_t kFewStages = 4;  // are drawn one by one
constexpr const char* kArrow = " -> ";
constexpr size_t kArrowWidth = 4;

std::string zones_text(const std::set<std::string>& zones) {
  return zones.size() == 1 ? *zones.begin() : fmt::format("{} zones", zones.size());
}

int layers_of(const Plan& plan, const PlanPipeline& pipeline, size_t group) {
  const auto groups = static_cast<size_t>(num_gpu_groups(plan, pipeline));
  int layers = 0;
  for (size_t i = group; i < pipeline.stages.size(); i += groups)
    layers += pipeline.stages[i].end_layer - pipeline.stages[i].first_layer;
  return layers;
}

// One stage of a kind of pipelines; `base` is where each pipeline begins in the prediction's stages.
DrawnStage stage_of(const Plan& plan, const Prediction& prediction, const std::vector<int>& pipelines,
                    const std::vector<size_t>& base, size_t group) {
  const PlanPipeline& first = plan.pipelines[static_cast<size_t>(pipelines[0])];
  const PlanStage& stage = first.stages[group];
  DrawnStage out;
  out.gpu_type = stage.gpu_type;
  out.gpus = fmt::format("{} x{}", cut_to(stage.gpu_type, kWidestText - 4), stage.shape.gpus());
  out.layers = "layers " + gpu_group_layers(plan, first, static_cast<int>(group));
  std::set<std::string> zones;
  for (const int j : pipelines) {
    const std::vector<PlanStage>& chunks = plan.pipelines[static_cast<size_t>(j)].stages;
    zones.insert(chunks[group].zone);
    for (size_t i = group; i < chunks.size(); i += static_cast<size_t>(num_gpu_groups(plan, first)))
      if (chunks[i].recompute != Recompute::none) out.recompute = "recomputes";
    const StagePrediction& p = prediction.stages.at(base[static_cast<size_t>(j)] + group);
    out.busy_part = std::max(out.busy_part, p.busy_fraction);
    if (p.capacity_bytes > 0)
      out.memory_part = std::max(
          out.memory_part, static_cast<double>(p.memory.total()) / static_cast<double>(p.capacity_bytes));
  }
  out.zone = zones_text(zones);
  return out;
}

// Names the stages. Of many, those one after the other that differ in nothing but which layers they have
// become one.
std::vector<DrawnStage> merged(const std::vector<DrawnStage>& stages, const std::vector<int>& layers) {
  std::vector<DrawnStage> out;
  for (size_t i = 0; i < stages.size();) {
    const auto like = [&](size_t a, size_t b) {
      return std::tie(stages[a].gpus, stages[a].zone, stages[a].recompute, layers[a]) ==
             std::tie(stages[b].gpus, stages[b].zone, stages[b].recompute, layers[b]);
    };
    size_t end = i + 1;
    while (stages.size() > kFewStages && end < stages.size() && like(i, end)) ++end;
    DrawnStage stage = stages[i];
    stage.name = fmt::format("stage {}", i);
    if (end - i > 1) {
      stage.name = fmt::format("stages {}-{}", i, end - 1);
      stage.layers = fmt::format("{} layer{} each", layers[i], layers[i] == 1 ? "" : "s");
    }
    for (size_t k = i; k < end; ++k) {
      stage.memory_part = std::max(stage.memory_part, stages[k].memory_part);
      stage.busy_part = std::max(stage.busy_part, stages[k].busy_part);
    }
    out.push_back(std::move(stage));
    i = end;
  }
  return out;
}

std::vector<std::string> lines_of(const DrawnStage& stage, bool with_recompute) {
  std::vector<std::string> lines = {stage.name,
                                    stage.gpus,
                                    stage.layers,
                                    stage.zone,
                                    fmt::format("memory {:.0f}%", 100 * stage.memory_part),
                                    fmt::format("busy {:.0f}%", 100 * stage.busy_part)};
  if (with_recompute) lines.push_back(stage.recompute);
  return lines;
}

// The boxes of one kind of pipelines in a row; if there are too many, the middle is omitted.
std::string boxes(const DrawnPipeline& pipeline) {
  std::vector<std::vector<std::string>> cells;
  const bool with_recompute = std::any_of(pipeline.stages.begin(), pipeline.stages.end(),
                                          [](const DrawnStage& stage) { return !stage.recompute.empty(); });
  for (const DrawnStage& stage : pipeline.stages) cells.push_back(lines_of(stage, with_recompute));
  size_t width = 0;
  for (std::vector<std::string>& cell : cells)
    for (std::string& line : cell) {
      line = cut_to(line, kWidestText);
      width = std::max(width, line.size());
    }
  const size_t fit = (kDrawingWidth - kLabel + kArrowWidth) / (width + 4 + kArrowWidth);
  if (cells.size() > fit) {
    const size_t left_out = cells.size() - (fit - 1);
    std::vector<std::string> middle(cells[0].size());
    middle[1] = "...";
    middle[2] = fmt::format("{} more", left_out);
    cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(fit - 2), cells.end() - 1);
    cells.insert(cells.end() - 1, middle);
  }
  const std::string edge = "+" + std::string(width + 2, '-') + "+";
  const auto row = [&](const std::string& label, const auto& of_cell, const char* between) {
    std::string line = fmt::format("{:<{}}", label, kLabel);
    for (size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : between) + of_cell(cells[i]);
    return line + "\n";
  };
  const auto whole_edge = [&](const auto&) { return edge; };
  std::string out = row("", whole_edge, "    ");
  for (size_t k = 0; k < cells[0].size(); ++k)
    out += row(
        k == 0   ? cut_to(pipeline.name, kLabel - 1)
        : k == 1 ? cut_to(pipeline.work, kLabel - 1)
                 : "",
        [&](const auto& cell) { return fmt::format("| {:<{}} |", cell[k], width); },
        k == 1 ? kArrow : "    ");
  return out + row("", whole_edge, "    ");
}

}  // namespace

std::vector<DrawnPipeline> drawn_pipelines(const Plan& plan, const Prediction& prediction) {
  const std::vector<size_t> base = pipeline_bases(plan);
  std::vector<DrawnPipeline> out;
  for (const std::vector<int>& pipelines : alike_pipelines(plan, {}, {})) {
    const PlanPipeline& first = plan.pipelines[static_cast<size_t>(pipelines[0])];
    DrawnPipeline drawn;
    drawn.name = pipelines_name(pipelines);
    drawn.microbatch = microbatch_of(plan, first);
    drawn.work = fmt::format("{} microbatch{}", first.microbatches, first.microbatches == 1 ? "" : "es");
    if (has_unlike_microbatches(plan))
      drawn.work += fmt::format(" of {}", drawn.microbatch);
    else if (pipelines.size() > 1)
      drawn.work += " each";
    std::vector<DrawnStage> stages;
    std::vector<int> layers;
    for (size_t i = 0; i < static_cast<size_t>(num_gpu_groups(plan, first)); ++i) {
      stages.push_back(stage_of(plan, prediction, pipelines, base, i));
      layers.push_back(layers_of(plan, first, i));
    }
    drawn.stages = merged(stages, layers);
    out.push_back(std::move(drawn));
  }
  return out;
}

std::string plan_drawing(const Plan& plan, const Prediction& prediction) {
  const std::vector<DrawnPipeline> pipelines = drawn_pipelines(plan, prediction);
  std::string out;
  for (size_t i = 0; i < std::min(kMostKinds, pipelines.size()); ++i) out += boxes(pipelines[i]);
  if (pipelines.size() > kMostKinds)
    out += fmt::format("and {} more kinds of pipelines\n", pipelines.size() - kMostKinds);
  return out;
}

}  // namespace sailor
