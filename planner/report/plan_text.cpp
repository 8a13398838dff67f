#include "planner/report/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace sailor {
namespace {

std::string tp_of(const PlanPipeline& pipeline, size_t groups) {
  std::string text;
  bool equal = true;
  for (size_t i = 0; i < groups; ++i) {
    equal = equal && pipeline.stages[i].shape == pipeline.stages[0].shape;
    text += (i == 0 ? "" : ",") + to_string(pipeline.stages[i].shape);
  }
  return equal ? to_string(pipeline.stages.at(0).shape) : text;
}

}  // namespace

std::string cut_to(std::string text, size_t width) {
  if (text.size() > width) text = text.substr(0, width - 2) + "..";
  return text;
}

std::string rate_text(double per_s) {
  return per_s >= 1000 ? fmt::format("{:.0f}", per_s) : fmt::format("{:.4g}", per_s);
}

std::string gpus_by_type(const Plan& plan) {
  return gpus_by_type_and_zone(plan, true, std::string::npos);
}

std::string gpus_by_type_and_zone(const Plan& plan, bool one_zone, size_t width) {
  std::string full, counted;
  for (const auto& [type, zones] : gpu_counts_of(plan)) {
    int all = 0;
    for (const auto& [zone, count] : zones) {
      all += count;
      if (!one_zone) full += fmt::format("{}{} {}@{}", full.empty() ? "" : " + ", count, type, zone);
    }
    counted += fmt::format("{}{} {}", counted.empty() ? "" : " + ", all, type);
    if (one_zone) continue;
    counted += zones.size() == 1 ? "@" + zones.begin()->first : fmt::format(" in {} zones", zones.size());
  }
  return one_zone || full.size() > width ? cut_to(counted, width) : full;
}

std::string num_stages_text(const Plan& plan) {
  int least = plan.pipelines.empty() ? 0 : num_groups(plan, plan.pipelines[0]), most = 0;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    least = std::min(least, num_groups(plan, pipeline));
    most = std::max(most, num_groups(plan, pipeline));
  }
  return least == most ? fmt::format("{}", most) : fmt::format("{}-{}", least, most);
}

std::string tp_text(const Plan& plan) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    const std::string kind = tp_of(pipeline, static_cast<size_t>(num_groups(plan, pipeline)));
    const auto it = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
    if (it == kinds.end())
      kinds.emplace_back(kind, 1);
    else
      ++it->second;
  }
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += kinds.size() == 1 ? kind : fmt::format("{}{}x({})", text.empty() ? "" : "+", count, kind);
  return text;
}

std::string microbatch_text(const Plan& plan) {
  return fmt::format("{}", fmt::join(microbatch_sizes(plan), ","));
}

std::string estimate_mark(const Prediction& prediction) {
  return prediction.uncertainty > 0 ? "~" : "";
}
std::string estimate_note(double uncertainty) {
  return uncertainty > 0
             ? fmt::format("~ estimated: layer times were not measured (+-{:.0f} %)\n", 100 * uncertainty)
             : "";
}

std::string estimate_note(const Prediction& prediction) {
  const double share = prediction.estimated_share();
  if (prediction.uncertainty <= 0 || share >= 1) return estimate_note(prediction.uncertainty);
  return fmt::format("~ estimated: {} % of the layer times of this plan were not measured (+-{:.0f} %)\n",
                     share < 0.01 ? "less than 1" : fmt::format("{:.0f}", 100 * share),
                     100 * prediction.uncertainty);
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
