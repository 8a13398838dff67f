#include "planner/report/start_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "planner/report/plan_text.h"
#include "planner/spec/text.h"

namespace sailor {

namespace {

std::string start_of(const StartOption& option, const Snapshot& snapshot) {
  const std::string gpus = gpus_by_type(option.candidate.plan);
  const std::string end = (snapshot.time_s ? "end " : "end in ") + time_text(option.end_s(), snapshot.time_s);
  if (!option.queued.empty()) {
    std::vector<std::string> kinds;
    for (const QueuedNodes& kind : option.queued)
      kinds.push_back(fmt::format("{} {}", kind.nodes * kind.gpus, kind.gpu_type));
    return fmt::format("start now on {} and queue for {}, {}", gpus, fmt::join(kinds, " + "), end);
  }
  if (option.start.wait_s <= 0) return fmt::format("start now on {}, {}", gpus, end);
  constexpr double kInSeconds_s = 600;  // up to here minutes are too coarse
  const double wait_s = std::ceil(option.start.wait_s);
  const std::string wait = wait_s < kInSeconds_s ? fmt::format("{:.0f} s", wait_s) : duration_text(wait_s);
  return fmt::format("wait {} for {}, {}", wait, gpus, end);
}

}  // namespace

std::string starts_text(const std::vector<StartOption>& options, const Snapshot& snapshot) {
  constexpr size_t kMost = 3;
  std::vector<std::string> texts;
  for (const StartOption& option : options) {
    if (texts.size() < kMost)
      texts.push_back(start_of(option, snapshot));
    else if (option.start.wait_s <= 0)
      texts.back() = start_of(option, snapshot);
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace sailor
