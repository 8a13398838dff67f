// Exchanges lists of numbers of unknown length among all members of a communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

using NumberList = std::vector<int64_t>;

// `to` has a list for every member; returns one from every member, by rank. All members call it. Throws
// CommError.
std::vector<NumberList> exchange_lists(Communicator& group, const std::vector<NumberList>& to);
// Sends the same list to all; the result includes the own list.
std::vector<NumberList> all_gather_lists(Communicator& group, const NumberList& list);

}  // namespace sailor
