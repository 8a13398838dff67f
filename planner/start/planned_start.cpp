#include "planner/start/planned_start.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "planner/spec/text.h"

namespace sailor {
namespace {

std::tm local(std::time_t time) {
  std::tm parts{};
  localtime_r(&time, &parts);
  return parts;
}

}  // namespace

std::string time_text(double seconds, std::optional<int64_t> now_s) {
  constexpr double kWeek_s = 6 * 86400;
  if (!now_s) return duration_text(seconds);
  const std::tm now = local(*now_s), then = local(*now_s + static_cast<int64_t>(std::ceil(seconds)));
  if (seconds < kWeek_s)
    return now.tm_yday == then.tm_yday ? fmt::format("{:%H:%M}", then) : fmt::format("{:%a %H:%M}", then);
  return fmt::format("{:%Y-%m-%d %H:%M}", then);
}

std::string start_text(const PlannedStart& start, std::optional<int64_t> now_s) {
  if (start.wait_s <= 0) return "now";
  return (start.source == StartSource::limits ? "~" : "") + time_text(start.wait_s, now_s);
}

}  // namespace sailor
