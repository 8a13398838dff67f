#include "trainer/elastic/failure_cause.h"

#include <algorithm>

namespace sailor {
namespace {

constexpr double kCauseWait_s = 2;  // how long an echo waits for its cause

}  // namespace

void FailureCause::fail(const std::string& text) {
  if (!closed_ && !cause_) cause_ = text;
}

void FailureCause::node_lost(const std::string& text) {
  if (!closed_ && !node_lost_) node_lost_ = text;
}

void FailureCause::echo(int rank, int lost_peer, const std::string& text) {
  if (!closed_) echoes_.push_back({rank, lost_peer, text});
}

void FailureCause::close() {
  closed_ = true;
}

std::optional<std::string> FailureCause::text() const {
  if (cause_) return cause_;
  if (node_lost_) return node_lost_;
  if (echoes_.empty()) return std::nullopt;
  // A rank that waits for a waiting rank reports too: the rank without a report is to blame.
  const auto silent = [&](const Echo& echo) {
    return echo.lost_peer >= 0 && std::none_of(echoes_.begin(), echoes_.end(), [&](const Echo& other) {
             return other.rank == echo.lost_peer;
           });
  };
  const auto telling = std::find_if(echoes_.begin(), echoes_.end(), silent);
  return (telling == echoes_.end() ? echoes_.front() : *telling).text;
}

bool FailureCause::decided(double now_s) {
  if (cause_) return true;
  if (!text()) return false;
  if (!since_s_) since_s_ = now_s;
  return now_s > *since_s_ + kCauseWait_s;
}

}  // namespace sailor
