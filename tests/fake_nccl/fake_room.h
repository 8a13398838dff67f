// Internal to the fake NCCL: shared state of the members of a communicator, and the operations on their
// streams. As in the real one, a kernel waits for its group forever unless the communicator is aborted,
// kernels of a member run one after the other on any streams, and mismatched calls are not detected.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sailor::fake {

struct Task {
  enum class Kind { all_reduce, reduce_scatter, all_gather, reduce, broadcast, send, recv };
  Kind kind = Kind::send;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t op = ncclSum;
  int peer = -1;  // or root
  cudaStream_t stream = nullptr;

  bool is_message() const { return kind == Kind::send || kind == Kind::recv; }
  // What members of a collective must have in common.
  bool fits(const Task& other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op &&
           peer == other.peer;
  }
};
std::size_t size_of(ncclDataType_t type);

class Room {
 public:
  explicit Room(int size) : size_(size), joined_(static_cast<std::size_t>(size)) {}

  void join(int rank);
  bool complete();
  // Are the connections for these tasks established? The first use of one waits for the other side.
  bool connected(int rank, const std::vector<Task>& tasks);
  // The same, for a rank that uses them.
  bool connect(int rank, const std::vector<Task>& tasks);

  // The enqueued work of one member. `aborted` ends it at once.
  struct Member {
    int rank = 0;
    uint64_t enqueued = 0, finished = 0;  // kernels
    uint64_t collectives = 0;
    int running = 0;
    bool aborted = false;
  };
  // Runs as the kernel number `number` of the member.
  void run(Member& member, uint64_t number, const std::vector<Task>& tasks);
  // Returns when nothing of the member runs any more.
  void abort(Member& member);
  bool idle(const Member& member);
  uint64_t enqueue_one(Member& member);
  bool is_aborted(const Member& member);

 private:
  struct Message {
    void* data;
    std::size_t bytes;
    bool done = false;
  };
  using MessagePtr = std::shared_ptr<Message>;
  struct Channel {
    std::deque<MessagePtr> sends, receives;
  };
  struct Meeting {
    std::vector<const Task*> tasks;  // by rank
    int arrived = 0;
    bool mismatch = false;
    bool done = false;
  };

  void collective(std::unique_lock<std::mutex>& lock, Member& member, const Task& task);
  void messages(std::unique_lock<std::mutex>& lock, Member& member, const std::vector<Task>& tasks);
  static void match(Channel& channel);
  void compute(const Meeting& meeting) const;

  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> joined_;
  std::set<int> used_collectives_;                           // ranks
  std::map<std::pair<int, int>, std::set<int>> used_pairs_;  // from, to: the ranks that have used it
  std::map<std::pair<int, int>, Channel> channels_;
  std::map<uint64_t, Meeting> meetings_;
};

}  // namespace sailor::fake
