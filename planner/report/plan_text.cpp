#include "planner/report/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace sailor {
namespace {

// The TP degrees of a pipeline's stages: "4,1".
std::string degrees(const PlanPipeline& pipeline) {
  std::string text;
  for (const PlanStage& stage : pipeline.stages)
    text += fmt::format("{}{}", text.empty() ? "" : ",", stage.tp);
  return text;
}

}  // namespace

std::string cut_to(std::string text, size_t width) {
  if (text.size() > width) text = text.substr(0, width - 2) + "..";
  return text;
}

std::string gpus_by_type(const Plan& plan) {
  std::map<std::string, int> gpus;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) gpus[stage.gpu_type] += stage.tp;
  std::string text;
  for (const auto& [type, count] : gpus)
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", count, type);
  return text;
}

std::string layout(const Plan& plan) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    const std::string kind = degrees(pipeline);
    const auto it = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
    if (it == kinds.end())
      kinds.emplace_back(kind, 1);
    else
      ++it->second;
  }
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += fmt::format("{}{}x({})", text.empty() ? "" : " + ", count, kind);
  return text;
}

std::string estimate_mark(const Prediction& prediction) {
  return prediction.uncertainty > 0 ? "~" : "";
}
std::string estimate_note(double uncertainty) {
  return uncertainty > 0
             ? fmt::format("~ estimated: layer times were not measured (+-{:.0f} %)\n", 100 * uncertainty)
             : "";
}

const char* status_name(SearchStatus status) {
  switch (status) {
    case SearchStatus::found:
      return "found";
    case SearchStatus::infeasible:
      return "infeasible";
    case SearchStatus::time_limit:
      return "time_limit";
  }
  return "";
}

}  // namespace sailor
