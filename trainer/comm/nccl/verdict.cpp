#include "trainer/comm/nccl/verdict.h"

#include <fmt/format.h>

namespace sailor {
namespace {

// Whether a member that is in `theirs` may well be waiting for the same as one that is in `own`.
bool fits(const Doing& own, const Doing& theirs) {
  if (theirs.stuck || theirs.idle()) return false;
  Doing alike = own;
  alike.stuck = false;
  return !own.to_all || alike == theirs;
}

}  // namespace

Verdict judge_timeout(const Doing& own, const std::vector<int>& needed, const Answers& answers,
                      const std::string& waited) {
  int silent = -1, elsewhere = -1;
  std::string others;
  for (const int peer : needed) {
    const std::optional<Doing>& theirs = answers[static_cast<std::size_t>(peer)];
    if (!theirs) {
      if (silent < 0) silent = peer;
      others += fmt::format(", member {} does not say what it is in", peer);
    } else if (!fits(own, *theirs)) {
      if (elsewhere < 0) elsewhere = peer;
      others += fmt::format(", member {} is {}", peer, to_string(*theirs));
    }
  }
  std::string reason = fmt::format("no answer within {}: this rank is {}", waited, to_string(own));
  reason += others.empty() && !needed.empty() ? ", and so is everybody it waits for" : others;
  return {silent >= 0 ? silent : elsewhere, std::move(reason)};
}

}  // namespace sailor
