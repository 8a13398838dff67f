#include "trainer/checkpoint/memory_copies.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "trainer/comm/host_memory.h"

namespace sailor {
namespace {

constexpr int64_t kCopyMessageBytes = int64_t{8} << 20;
// Of what a host has left: the rest is for training, whose need grows now and then.
constexpr double kShareForCopies = 0.5;

bool has_room(const RankLayout& layout, int rank, const StateSnapshot& kept, int64_t bytes) {
  if (bytes <= kept.capacity()) return true;
  const std::string& node = layout.slots()[static_cast<std::size_t>(rank)].node;
  const std::size_t sharers = node.empty() ? layout.slots().size() : layout.ranks_on(node).size();
  const double room =
      kShareForCopies * static_cast<double>(available_host_bytes()) / static_cast<double>(sharers);
  return static_cast<double>(bytes - kept.capacity()) <= room;
}

// One message to one rank while one of the same kind comes from another.
void swap_numbers(Communicator& group, int to, int64_t sent, int from, int64_t& received) {
  const Transfer transfers[] = {{Transfer::Kind::send, &sent, 1, ElementType::i64, to},
                                {Transfer::Kind::recv, &received, 1, ElementType::i64, from}};
  group.exchange(transfers)->wait();
}

void swap_bytes(Communicator& group, int to, const char* sent, int64_t sent_bytes, int from, char* received,
                int64_t received_bytes) {
  for (int64_t first = 0; first < std::max(sent_bytes, received_bytes); first += kCopyMessageBytes) {
    const auto part = [first](int64_t bytes) {
      return static_cast<std::size_t>(std::clamp<int64_t>(bytes - first, 0, kCopyMessageBytes));
    };
    const Transfer transfers[] = {
        {Transfer::Kind::send, const_cast<char*>(sent) + first, part(sent_bytes), ElementType::u8, to},
        {Transfer::Kind::recv, received + first, part(received_bytes), ElementType::u8, from}};
    group.exchange(transfers)->wait();
  }
}

}  // namespace

std::vector<int> copy_keepers(const RankLayout& layout) {
  const auto node_of = [&](int rank) -> const std::string& {
    return layout.slots()[static_cast<std::size_t>(rank)].node;
  };
  std::vector<int> by_node(static_cast<std::size_t>(layout.size()));  // ranks, node by node
  std::iota(by_node.begin(), by_node.end(), 0);
  std::stable_sort(by_node.begin(), by_node.end(), [&](int a, int b) { return node_of(a) < node_of(b); });
  std::size_t most = 1;  // on one node; where no node is named, every rank has its own
  for (std::size_t i = 0, same = 0; i < by_node.size(); ++i) {
    const std::string& node = node_of(by_node[i]);
    same = i > 0 && !node.empty() && node == node_of(by_node[i - 1]) ? same + 1 : 1;
    most = std::max(most, same);
  }
  // As many places on as the largest node has ranks, everybody comes to another node.
  const std::size_t shift = most < by_node.size() ? most : 1;
  std::vector<int> keepers(by_node.size());
  for (std::size_t i = 0; i < by_node.size(); ++i)
    keepers[static_cast<std::size_t>(by_node[i])] = by_node[(i + shift) % by_node.size()];
  return keepers;
}

int64_t exchange_copies(Communicator& group, const RankLayout& layout, const StateSnapshot& own,
                        StateSnapshot& kept) {
  const std::vector<int> keepers = copy_keepers(layout);
  const int to = keepers[static_cast<std::size_t>(group.rank())];
  const auto from =
      static_cast<int>(std::find(keepers.begin(), keepers.end(), group.rank()) - keepers.begin());
  if (to == group.rank()) return 0;
  const std::string told = own.description();
  int64_t bytes = 0;
  swap_numbers(group, to, static_cast<int64_t>(told.size()), from, bytes);
  std::string heard(static_cast<std::size_t>(bytes), '\0');
  swap_bytes(group, to, told.data(), static_cast<int64_t>(told.size()), from, heard.data(), bytes);
  // The keeper says whether it has room; the owner then sends, or does not.
  swap_numbers(group, to, own.bytes(), from, bytes);
  const int64_t takes = has_room(layout, group.rank(), kept, bytes) ? 1 : 0;
  int64_t taken = 0, refused = 1 - takes;
  swap_numbers(group, from, takes, to, taken);
  if (takes != 0) kept.expect(heard);
  swap_bytes(group, to, own.memory(), taken != 0 ? own.bytes() : 0, from, kept.memory(),
             takes != 0 ? kept.bytes() : 0);
  if (takes != 0) kept.arrived();
  group.all_reduce(&refused, 1, ElementType::i64, ReduceOp::sum);
  return refused;
}

}  // namespace sailor
