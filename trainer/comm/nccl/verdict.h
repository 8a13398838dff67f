// Decides which member is to blame when an operation of an NCCL communicator does not complete, from the
// operations that the members report. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/nccl/last_words.h"

namespace sailor {

// Why a communicator has failed, as one member sees it.
struct Verdict {
  int rank = -1;  // in the communicator; -1 = nobody
  std::string reason;
};

// The operation that a member reported; none if it did not answer in time.
using Answers = std::vector<std::optional<Doing>>;

// `waited` is the text for the time without progress ("0.5 s"). `needed` are the members that the operation
// needs, without oneself. First to blame is a member that does not answer (its process hangs), then one in
// another operation.
Verdict judge_timeout(const Doing& own, const std::vector<int>& needed, const Answers& answers,
                      const std::string& waited);

}  // namespace sailor
