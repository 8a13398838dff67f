#include "tests/layout_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "planner/spec/error.h"

namespace sailor {

std::string to_text(const ShapeLayout& layout) {
  std::vector<std::string> pipelines;
  for (const auto& stages : layout) {
    std::string& text = pipelines.emplace_back();
    for (const ReplicaShape& shape : stages) text += (text.empty() ? "" : ",") + to_string(shape);
  }
  return fmt::format("{}", fmt::join(pipelines, "/"));
}

ShapeLayout parse_layout(const std::string& text) {
  ShapeLayout layout;
  std::istringstream pipelines(text);
  for (std::string pipeline; std::getline(pipelines, pipeline, '/');) {
    layout.emplace_back();
    std::istringstream stages(pipeline);
    for (std::string stage; std::getline(stages, stage, ',');) {
      ReplicaShape shape;
      const char* const end = stage.data() + stage.size();
      auto parsed = std::from_chars(stage.data(), end, shape.tp);
      if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == 'x')
        parsed = std::from_chars(parsed.ptr + 1, end, shape.cp);
      if (parsed.ec != std::errc() || parsed.ptr != end || shape.tp < 1 || shape.cp < 1 || shape.gpus() > 64)
        break;
      layout.back().push_back(shape);
    }
  }
  if (layout.empty() || to_text(layout) != text ||
      std::any_of(layout.begin(), layout.end(), [](const auto& stages) { return stages.empty(); })) {
    throw InputError("--layout: " + text +
                     " is no layout; write pipelines as TP degrees, such as 4,1/2, or 2x4 with a CP "
                     "degree of 4");
  }
  return layout;
}

}  // namespace sailor
