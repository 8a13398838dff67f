#include "spank_plugin/waiting_offer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "planner/plan/plan.h"
#include "planner/spec/text.h"
#include "planner/start/start_times.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {
namespace {

constexpr size_t kMostWaits = 3;  // planner calls
constexpr double kLeastEarlier_s = 60;
constexpr double kLeastShare = 0.02;  // of the training's time: predictions are no better than that

// The next times at which nodes come free, in seconds from now, ascending.
std::vector<double> next_ends(const std::vector<BusyNode>& nodes) {
  std::vector<double> all;
  for (const BusyNode& busy : nodes)
    if (busy.free_in_s) all.push_back(*busy.free_in_s);
  return first_times(std::move(all), kMostWaits);
}

bool free_by(const BusyNode& busy, double wait_s) {
  return busy.free_in_s && *busy.free_in_s <= wait_s;
}

}  // namespace

std::optional<WaitingOffer> worth_waiting(const Snapshot& snapshot, const Candidate& now, int64_t steps,
                                          double effort_s, const ShortSearch& plan) {
  const double now_s = static_cast<double>(steps) * now.prediction.iteration_s;
  const double least_s = std::max(kLeastEarlier_s, kLeastShare * now_s);
  std::vector<double> waits = next_ends(snapshot.busy);
  std::erase_if(waits, [&](double wait_s) { return wait_s + least_s >= now_s; });
  std::optional<WaitingOffer> best;
  for (const double wait_s : waits) {
    Snapshot then = snapshot;
    std::vector<std::string> later;
    for (const BusyNode& busy : snapshot.busy) {
      if (free_by(busy, wait_s))
        then.nodes.push_back(busy.node);
      else
        later.push_back(busy.node.name);
    }
    const SearchResult result = plan(then, effort_s / static_cast<double>(waits.size()));
    if (result.status != SearchStatus::found || result.candidates.empty()) continue;
    const Candidate& candidate = result.candidates.front();
    const double then_s = wait_s + static_cast<double>(steps) * candidate.prediction.iteration_s;
    const double earlier_s = now_s - then_s;
    if (earlier_s < least_s || (best && earlier_s <= best->earlier_s)) continue;
    best = WaitingOffer{wait_s, earlier_s, num_ranks(candidate.plan) - num_ranks(now.plan), std::move(later)};
  }
  return best;
}

std::string local_time_text(int64_t time_s, int64_t now_s) {
  const auto local = [](int64_t seconds) {
    const std::time_t time = seconds;
    std::tm parts{};
    localtime_r(&time, &parts);
    return parts;
  };
  const std::tm then = local(time_s), now = local(now_s);
  if (then.tm_year == now.tm_year && then.tm_yday == now.tm_yday) return fmt::format("{:%H:%M}", then);
  return fmt::format("{:%Y-%m-%dT%H:%M}", then);
}

std::string waiting_text(const WaitingOffer& offer, int64_t clock_s) {
  const std::string gpus =
      offer.more_gpus > 0 ? fmt::format("{} more GPU{}", offer.more_gpus, offer.more_gpus == 1 ? "" : "s")
                          : "other GPUs";
  const std::string without =
      offer.later_nodes.empty() ? "" : " --exclude=" + compress_hosts(offer.later_nodes);
  return fmt::format(
      "note: waiting until {} for {} would end the training {} earlier: --sailor-wait=nodes{}\n",
      local_time_text(clock_s + static_cast<int64_t>(offer.wait_s), clock_s), gpus,
      duration_text(offer.earlier_s), without);
}

}  // namespace sailor
