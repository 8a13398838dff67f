// Who is to blame when an operation of an NCCL communicator does not complete, as far as one member can tell
// from what the others say they are in. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/nccl/last_words.h"

namespace sailor {

// Why a communicator has failed, as one member sees it.
struct Verdict {
  int rank = -1;  // to blame, in the communicator; -1 when nobody is
  std::string reason;
};

// What a member has said it is in; none when it said nothing in time.
using Answers = std::vector<std::optional<Doing>>;

// `waited` is how the time without progress reads ("0.5 s"). `needed` are the members that the operation
// cannot do without, oneself not among them. First to blame is who says nothing (a process that hangs), then
// who is in something else.
Verdict judge_timeout(const Doing& own, const std::vector<int>& needed, const Answers& answers,
                      const std::string& waited);

}  // namespace sailor
