#include "tests/layout_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "planner/spec/error.h"

namespace sailor {

std::string to_text(const TpLayout& layout) {
  std::vector<std::string> pipelines;
  for (const auto& stages : layout) pipelines.push_back(fmt::format("{}", fmt::join(stages, ",")));
  return fmt::format("{}", fmt::join(pipelines, "/"));
}

TpLayout parse_layout(const std::string& text) {
  TpLayout layout;
  std::istringstream pipelines(text);
  for (std::string pipeline; std::getline(pipelines, pipeline, '/');) {
    layout.emplace_back();
    std::istringstream stages(pipeline);
    for (std::string stage; std::getline(stages, stage, ',');) {
      int tp = 0;
      const auto parsed = std::from_chars(stage.data(), stage.data() + stage.size(), tp);
      if (parsed.ec != std::errc() || parsed.ptr != stage.data() + stage.size() || tp < 1 || tp > 64) break;
      layout.back().push_back(tp);
    }
  }
  if (layout.empty() || to_text(layout) != text ||
      std::any_of(layout.begin(), layout.end(), [](const auto& stages) { return stages.empty(); })) {
    throw InputError("--layout: " + text + " is no layout; write pipelines as TP degrees, such as 4,1/2");
  }
  return layout;
}

}  // namespace sailor
