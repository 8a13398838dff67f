#include "trainer/elastic/stop_signs.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "trainer/process/signals.h"

namespace sailor {
namespace {

constexpr double kLeave_s = 20;     // after a signal: Slurm kills after 30 s
constexpr double kSamePress_s = 1;  // several processes may forward one Ctrl-C
constexpr double kOfGrace = 0.8;    // part of a leaving node's time that the ranks may use

}  // namespace

void StopSigns::signalled(int number, double clock_s) {
  if (!signal_) {
    signal_ = number;
    signalled_s_ = clock_s;
  } else if (number == SIGINT && clock_s > signalled_s_ + kSamePress_s) {
    impatient_ = true;
  }
}

std::optional<StopReason> StopSigns::reason(const Training& training, int64_t now_s) {
  if (signal_)
    return StopReason{.text = fmt::format("stopped by signal {} ({})", *signal_, strsignal(*signal_)),
                      .continues = asks_to_continue(*signal_),
                      .within_s = kLeave_s};
  if (const auto& leaving = training.told_to_leave)
    return StopReason{.text = fmt::format("stopped because node {} was told to leave", leaving->node),
                      .continues = leaving->continues,
                      .within_s = kOfGrace * leaving->grace_s};
  if (!options_.end_s) return std::nullopt;
  const StopLead lead{.step_s = training.longest_step_s,
                      .save_s = training.save_s.value_or(estimated_save_s(options_.checkpoint_bytes)),
                      .whole_s = static_cast<double>(*options_.end_s - options_.began_s)};
  if (static_cast<double>(*options_.end_s - now_s) > lead_s(lead) || is_extended()) return std::nullopt;
  return StopReason{.text = fmt::format("stopped {} s before its time limit", *options_.end_s - now_s),
                    .continues = true,
                    .within_s = time_to_save_s(lead)};
}

// Takes over a later limit.
bool StopSigns::is_extended() {
  const std::optional<QueuedJob> job = scheduler_.find_job(options_.job);
  if (!job || !job->end_s || *job->end_s <= *options_.end_s) return false;
  options_.end_s = job->end_s;
  return true;
}

}  // namespace sailor
