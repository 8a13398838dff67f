#include "trainer/comm/exchange_lists.h"

#include <functional>

namespace sailor {
namespace {

using ListTo = std::function<const NumberList&(int peer)>;

std::vector<NumberList> exchange(Communicator& group, const ListTo& list_to) {
  const auto size = static_cast<std::size_t>(group.size());
  const auto own = static_cast<std::size_t>(group.rank());
  std::vector<int64_t> lengths_to(size), lengths(size);
  std::vector<NumberList> lists(size);
  std::vector<Transfer> transfers;
  const auto add = [&](Transfer::Kind kind, const int64_t* data, std::size_t count, int peer) {
    transfers.push_back({kind, const_cast<int64_t*>(data), count, ElementType::i64, peer});
  };
  for (int peer = 0; peer < group.size(); ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    lengths_to[p] = static_cast<int64_t>(list_to(peer).size());
    if (p == own) continue;
    add(Transfer::Kind::send, &lengths_to[p], 1, peer);
    add(Transfer::Kind::recv, &lengths[p], 1, peer);
  }
  group.exchange(transfers)->wait();
  transfers.clear();
  lists[own] = list_to(group.rank());
  for (int peer = 0; peer < group.size(); ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    if (p == own) continue;
    lists[p].resize(static_cast<std::size_t>(lengths[p]));
    add(Transfer::Kind::send, list_to(peer).data(), list_to(peer).size(), peer);
    add(Transfer::Kind::recv, lists[p].data(), lists[p].size(), peer);
  }
  group.exchange(transfers)->wait();
  return lists;
}

}  // namespace

std::vector<NumberList> exchange_lists(Communicator& group, const std::vector<NumberList>& to) {
  return exchange(group,
                  [&](int peer) -> const NumberList& { return to.at(static_cast<std::size_t>(peer)); });
}

std::vector<NumberList> all_gather_lists(Communicator& group, const NumberList& list) {
  return exchange(group, [&](int) -> const NumberList& { return list; });
}

}  // namespace sailor
