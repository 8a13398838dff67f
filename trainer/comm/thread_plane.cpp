#include "trainer/comm/thread_plane.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "trainer/comm/mesh_communicator.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kHost = "this process";

// Transfers posted together; guarded by the group's mutex.
struct Batch {
  int remaining = 0;
  const char* operation = "";
};

struct Message {  // on its way: a copy, so that the sender may vanish
  std::vector<char> payload;
  std::shared_ptr<Batch> batch;
};
struct Wanted {  // a posted receive
  void* data;
  std::size_t bytes;
  std::shared_ptr<Batch> batch;
};
struct Channel {
  std::deque<Message> messages;
  std::deque<Wanted> wanted;
};

struct Member {
  bool joined = false;
  bool gone = false;     // left or failed: sends nothing more, takes nothing more
  std::string failure;   // why its own operations throw; empty = healthy
  int failed_peer = -1;  // rank in the group to blame
  std::condition_variable changed;
};

// What the members of one communicator share.
struct Group {
  Group(std::string n, std::vector<int> r) : name(std::move(n)), ranks(std::move(r)), members(ranks.size()) {
    channels.resize(ranks.size() * ranks.size());
  }
  Channel& channel(int from, int to) { return channels[from * ranks.size() + to]; }
  void notify_all() {
    for (Member& member : members) member.changed.notify_all();
  }
  // `member` fails: its receives are dropped and peers learn that it is gone.
  void fail(int member, const std::string& reason, int peer = -1) {
    Member& m = members[member];
    if (m.failure.empty()) {
      m.failure = reason;
      m.failed_peer = peer;
    }
    leave(member);
  }
  void leave(int member) {
    members[member].gone = true;
    for (std::size_t peer = 0; peer < ranks.size(); ++peer)
      channel(static_cast<int>(peer), member).wanted.clear();
    notify_all();
  }
  // Hands messages to receives as far as both are there.
  void match(int from, int to) {
    Channel& c = channel(from, to);
    while (!c.messages.empty() && !c.wanted.empty()) {
      Message& message = c.messages.front();
      Wanted& wanted = c.wanted.front();
      if (message.payload.size() != wanted.bytes) {
        fail(to, fmt::format("sent {} bytes where {} were expected", message.payload.size(), wanted.bytes),
             from);
        return;
      }
      std::memcpy(wanted.data, message.payload.data(), wanted.bytes);
      if (--message.batch->remaining == 0) members[from].changed.notify_all();
      if (--wanted.batch->remaining == 0) members[to].changed.notify_all();
      c.messages.pop_front();
      c.wanted.pop_front();
    }
  }

  const std::string name;
  const std::vector<int> ranks;
  std::mutex mutex;
  std::vector<Member> members;
  std::vector<Channel> channels;  // [from * n + to]
};

class ThreadCommunicator;

class ThreadWork : public Work {
 public:
  ThreadWork(ThreadCommunicator* owner, std::shared_ptr<Batch> batch)
      : owner_(owner), batch_(std::move(batch)) {}
  ~ThreadWork() override;
  void wait() override;
  bool done() override;

 private:
  ThreadCommunicator* owner_;
  std::shared_ptr<Batch> batch_;
};

class ThreadCommunicator : public MeshCommunicator {
 public:
  ThreadCommunicator(std::shared_ptr<Group> group, int rank, std::chrono::milliseconds deadline,
                     std::function<void(ThreadCommunicator*)> on_destroy)
      : MeshCommunicator(group->name, rank, group->ranks),
        group_(std::move(group)),
        deadline_(deadline),
        on_destroy_(std::move(on_destroy)) {}

  ~ThreadCommunicator() override {
    on_destroy_(this);
    const std::lock_guard lock(group_->mutex);
    group_->leave(rank());
  }

  void abort() noexcept override {
    const std::lock_guard lock(group_->mutex);
    group_->fail(rank(), "aborted");
  }

  // Returns when all members have joined.
  void join() {
    std::unique_lock lock(group_->mutex);
    const auto deadline = Clock::now() + deadline_;
    Member& me = group_->members[rank()];
    me.joined = true;
    group_->notify_all();
    const auto missing = [&] {
      return std::find_if(group_->members.begin(), group_->members.end(),
                          [](const Member& m) { return !m.joined; });
    };
    while (missing() != group_->members.end()) {
      if (!me.failure.empty()) throw_failure("create");
      if (me.changed.wait_until(lock, deadline) == std::cv_status::timeout &&
          missing() != group_->members.end()) {
        group_->fail(rank(), "did not join in time", static_cast<int>(missing() - group_->members.begin()));
      }
    }
  }

  void wait(const std::shared_ptr<Batch>& batch) {
    std::unique_lock lock(group_->mutex);
    const auto deadline = Clock::now() + deadline_;
    Member& me = group_->members[rank()];
    while (true) {
      if (!me.failure.empty()) throw_failure(batch->operation);
      if (batch->remaining == 0) return;
      if (const int peer = first_gone_peer(*batch); peer >= 0) {
        group_->fail(rank(), "is gone", peer);
        continue;
      }
      if (me.changed.wait_until(lock, deadline) == std::cv_status::timeout && batch->remaining > 0 &&
          me.failure.empty()) {
        const std::vector<int> peers = pending_peers(*batch);
        group_->fail(
            rank(),
            fmt::format("no answer within {:.1f} s", std::chrono::duration<double>(deadline_).count()),
            peers.empty() ? -1 : peers.front());
      }
    }
  }

  bool complete(const Batch& batch) {
    const std::lock_guard lock(group_->mutex);
    return batch.remaining == 0;
  }

  // A handle dropped while its transfers are in flight: their buffers may vanish now.
  void abandon(const std::shared_ptr<Batch>& batch) noexcept {
    const std::lock_guard lock(group_->mutex);
    if (batch->remaining > 0) group_->fail(rank(), "abandoned");
  }

 protected:
  std::unique_ptr<Work> post(std::span<const Transfer> transfers, const char* operation, bool) override {
    auto batch = std::make_shared<Batch>();
    batch->operation = operation;
    const std::lock_guard lock(group_->mutex);
    if (!group_->members[rank()].failure.empty()) throw_failure(operation);
    for (const Transfer& transfer : transfers) {
      if (transfer.count > 0) ++batch->remaining;
    }
    for (const Transfer& transfer : transfers) {
      const std::size_t bytes = transfer.count * element_size(transfer.type);
      if (bytes == 0) continue;
      auto* data = static_cast<char*>(transfer.data);
      if (transfer.kind == Transfer::Kind::send) {
        group_->channel(rank(), transfer.peer)
            .messages.push_back({std::vector<char>(data, data + bytes), batch});
        group_->match(rank(), transfer.peer);
      } else {
        group_->channel(transfer.peer, rank()).wanted.push_back({data, bytes, batch});
        group_->match(transfer.peer, rank());
      }
    }
    return std::make_unique<ThreadWork>(this, std::move(batch));
  }

 private:
  std::vector<int> pending_peers(const Batch& batch) const {
    std::vector<int> peers;
    for (int peer = 0; peer < size(); ++peer) {
      const auto mine = [&](const auto& entry) { return entry.batch.get() == &batch; };
      const Channel& in = group_->channel(peer, rank());
      const Channel& out = group_->channel(rank(), peer);
      if (std::any_of(in.wanted.begin(), in.wanted.end(), mine) ||
          std::any_of(out.messages.begin(), out.messages.end(), mine)) {
        peers.push_back(peer);
      }
    }
    return peers;
  }

  int first_gone_peer(const Batch& batch) const {
    for (const int peer : pending_peers(batch)) {
      if (group_->members[peer].gone) return peer;
    }
    return -1;
  }

  [[noreturn]] void throw_failure(const char* operation) const {
    const Member& me = group_->members[rank()];
    throw CommError(operation, name(), me.failed_peer < 0 ? -1 : ranks()[me.failed_peer], kHost, me.failure);
  }

  std::shared_ptr<Group> group_;
  std::chrono::milliseconds deadline_;
  std::function<void(ThreadCommunicator*)> on_destroy_;
};

ThreadWork::~ThreadWork() {
  if (batch_) owner_->abandon(batch_);
}

void ThreadWork::wait() {
  if (!batch_) return;
  const std::shared_ptr<Batch> batch = std::move(batch_);
  owner_->wait(batch);
}

bool ThreadWork::done() {
  return !batch_ || owner_->complete(*batch_);
}

}  // namespace

struct ThreadHub::State {
  State(int n, CommOptions o) : size(n), options(o) {}
  const int size;
  const CommOptions options;
  std::mutex mutex;  // never held while a group's mutex is wanted
  std::map<std::string, std::shared_ptr<Group>>
      groups;  // names are used once: kept, so that late members see who left
};

namespace {

class ThreadFactory : public CommFactory {
 public:
  ThreadFactory(std::shared_ptr<ThreadHub::State> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_->size; }

  void abort() noexcept override {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    for (ThreadCommunicator* communicator : live_) communicator->abort();
  }

 protected:
  std::unique_ptr<Communicator> make(const std::string& name, const std::vector<int>& ranks,
                                     CommUse) override {
    const auto self = std::find(ranks.begin(), ranks.end(), rank_);
    if (self == ranks.end())
      throw std::logic_error(fmt::format("communicator {}: rank {} is not a member", name, rank_));
    const int me = static_cast<int>(self - ranks.begin());
    const std::shared_ptr<Group> group = enter(name, ranks);

    std::unique_ptr<ThreadCommunicator> communicator;
    {
      const std::lock_guard lock(mutex_);
      if (aborted_) throw CommError("create", name, -1, "", "aborted");
      communicator = std::make_unique<ThreadCommunicator>(group, me, hub_->options.deadline,
                                                          [this](ThreadCommunicator* c) {
                                                            const std::lock_guard on_destroy(mutex_);
                                                            live_.erase(c);
                                                          });
      live_.insert(communicator.get());
    }
    communicator->join();
    return communicator;
  }

 private:
  std::shared_ptr<Group> enter(const std::string& name, const std::vector<int>& ranks) {
    const std::lock_guard lock(hub_->mutex);
    std::shared_ptr<Group>& group = hub_->groups[name];
    if (!group) group = std::make_shared<Group>(name, ranks);
    if (group->ranks != ranks)
      throw std::logic_error("communicator " + name + ": members disagree about the ranks");
    return group;
  }

  std::shared_ptr<ThreadHub::State> hub_;
  const int rank_;
  std::mutex mutex_;
  bool aborted_ = false;
  std::set<ThreadCommunicator*> live_;
};

}  // namespace

ThreadHub::ThreadHub(int size, CommOptions options) : state_(std::make_shared<State>(size, options)) {}
ThreadHub::~ThreadHub() = default;

std::unique_ptr<CommFactory> ThreadHub::factory(int rank) {
  return std::make_unique<ThreadFactory>(state_, rank);
}

}  // namespace sailor
