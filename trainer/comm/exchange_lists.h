// Lists of numbers whose lengths only their senders know, among all members of a communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

using NumberList = std::vector<int64_t>;

// `to` has a list for every member; returns one of every member, by rank. All members call it. Throws
// CommError.
std::vector<NumberList> exchange_lists(Communicator& group, const std::vector<NumberList>& to);
// The same list for everybody; its own is among those that come back.
std::vector<NumberList> all_gather_lists(Communicator& group, const NumberList& list);

}  // namespace sailor
