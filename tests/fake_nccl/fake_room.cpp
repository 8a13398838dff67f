#include "tests/fake_nccl/fake_room.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "trainer/comm/narrow_float.h"

namespace sailor::fake {
namespace {

// Rounds after every addition, as NCCL does along a ring.
template <class Bits>
struct Rounded {
  Bits bits;
  Rounded() = default;
  explicit Rounded(float value) { narrow(value, bits); }
  explicit operator float() const { return widen(bits); }
  friend Rounded operator+(Rounded a, Rounded b) {
    return Rounded(static_cast<float>(a) + static_cast<float>(b));
  }
  friend bool operator<(Rounded a, Rounded b) { return static_cast<float>(a) < static_cast<float>(b); }
};

// Who sends and who receives the message of `rank`.
std::pair<int, int> pair_of(int rank, const Task& task) {
  return task.kind == Task::Kind::send ? std::pair(rank, task.peer) : std::pair(task.peer, rank);
}

// result = in[0] op in[1] op ..., `count` elements from `first` on.
template <class T>
std::vector<char> reduce(const std::vector<const Task*>& tasks, std::size_t first, std::size_t count) {
  std::vector<T> result(count);
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    const T* const in = static_cast<const T*>(tasks[rank]->in) + first;
    for (std::size_t i = 0; i < count; ++i) {
      if (rank == 0) {
        result[i] = in[i];
      } else {
        result[i] =
            tasks[rank]->op == ncclMax ? std::max(result[i], in[i]) : static_cast<T>(result[i] + in[i]);
      }
    }
  }
  std::vector<char> bytes(count * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), result.data(), bytes.size());
  return bytes;
}

std::vector<char> reduce_any(const std::vector<const Task*>& tasks, std::size_t first, std::size_t count) {
  switch (tasks.front()->type) {
    case ncclFloat32:
      return reduce<float>(tasks, first, count);
    case ncclFloat64:
      return reduce<double>(tasks, first, count);
    case ncclBfloat16:
      return reduce<Rounded<Bf16>>(tasks, first, count);
    case ncclFloat16:
      return reduce<Rounded<Fp16>>(tasks, first, count);
    case ncclInt64:
      return reduce<int64_t>(tasks, first, count);
    case ncclUint8:
      return reduce<uint8_t>(tasks, first, count);
    default:
      throw std::logic_error("fake NCCL: element type");
  }
}

void copy(void* to, const void* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memmove(to, from, bytes);
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return 4;
    case ncclFloat64:
    case ncclInt64:
      return 8;
    case ncclBfloat16:
    case ncclFloat16:
      return 2;
    case ncclUint8:
      return 1;
    default:
      throw std::logic_error("fake NCCL: element type");
  }
}

void Room::join(int rank) {
  const std::lock_guard lock(mutex_);
  joined_[static_cast<std::size_t>(rank)] = true;
}

bool Room::complete() {
  const std::lock_guard lock(mutex_);
  return std::all_of(joined_.begin(), joined_.end(), [](bool joined) { return joined; });
}

bool Room::connect(int rank, const std::vector<Task>& tasks) {
  {
    const std::lock_guard lock(mutex_);
    for (const Task& task : tasks) {
      (task.is_message() ? used_pairs_[pair_of(rank, task)] : used_collectives_).insert(rank);
    }
  }
  return connected(rank, tasks);
}

bool Room::connected(int rank, const std::vector<Task>& tasks) {
  const std::lock_guard lock(mutex_);
  return std::all_of(tasks.begin(), tasks.end(), [&](const Task& task) {
    if (!task.is_message()) return static_cast<int>(used_collectives_.size()) == size_;
    const auto pair = pair_of(rank, task);
    return used_pairs_[pair].size() == (pair.first == pair.second ? 1U : 2U);
  });
}

uint64_t Room::enqueue_one(Member& member) {
  const std::lock_guard lock(mutex_);
  return member.enqueued++;
}

bool Room::idle(const Member& member) {
  const std::lock_guard lock(mutex_);
  return member.enqueued == member.finished;
}

bool Room::is_aborted(const Member& member) {
  const std::lock_guard lock(mutex_);
  return member.aborted;
}

void Room::run(Member& member, uint64_t number, const std::vector<Task>& tasks) {
  std::unique_lock lock(mutex_);
  if (member.aborted) return;
  ++member.running;
  changed_.wait(lock, [&] { return member.aborted || member.finished == number; });
  for (const Task& task : tasks) {
    if (!member.aborted && !task.is_message()) collective(lock, member, task);
  }
  if (!member.aborted) messages(lock, member, tasks);
  ++member.finished;
  --member.running;
  changed_.notify_all();
}

void Room::abort(Member& member) {
  std::unique_lock lock(mutex_);
  member.aborted = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return member.running == 0; });
}

void Room::collective(std::unique_lock<std::mutex>& lock, Member& member, const Task& task) {
  const uint64_t number = member.collectives++;
  Meeting& meeting = meetings_[number];
  meeting.tasks.resize(static_cast<std::size_t>(size_));
  for (const Task* other : meeting.tasks) {
    if (other && !other->fits(task)) meeting.mismatch = true;
  }
  const Task*& mine = meeting.tasks[static_cast<std::size_t>(member.rank)];
  mine = &task;
  if (++meeting.arrived == size_ && !meeting.mismatch) {
    compute(meeting);
    meeting.done = true;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return meeting.done || member.aborted; });
  if (meeting.done) return;
  mine = nullptr;  // its buffers are gone: without it the others wait forever
  meeting.mismatch = true;
}

void Room::compute(const Meeting& meeting) const {
  const Task& first = *meeting.tasks.front();
  const std::size_t bytes = first.count * size_of(first.type);
  switch (first.kind) {
    case Task::Kind::all_reduce: {
      const std::vector<char> result = reduce_any(meeting.tasks, 0, first.count);
      for (const Task* task : meeting.tasks) copy(task->out, result.data(), bytes);
      break;
    }
    case Task::Kind::reduce: {
      const std::vector<char> result = reduce_any(meeting.tasks, 0, first.count);
      copy(meeting.tasks[static_cast<std::size_t>(first.peer)]->out, result.data(), bytes);
      break;
    }
    case Task::Kind::reduce_scatter: {
      std::vector<std::vector<char>> blocks;  // all, before any is written: they may be in place
      for (std::size_t rank = 0; rank < meeting.tasks.size(); ++rank)
        blocks.push_back(reduce_any(meeting.tasks, rank * first.count, first.count));
      for (std::size_t rank = 0; rank < meeting.tasks.size(); ++rank)
        copy(meeting.tasks[rank]->out, blocks[rank].data(), bytes);
      break;
    }
    case Task::Kind::all_gather:
      for (const Task* to : meeting.tasks) {
        for (std::size_t rank = 0; rank < meeting.tasks.size(); ++rank)
          copy(static_cast<char*>(to->out) + rank * bytes, meeting.tasks[rank]->in, bytes);
      }
      break;
    case Task::Kind::broadcast:
      for (const Task* to : meeting.tasks)
        copy(to->out, meeting.tasks[static_cast<std::size_t>(first.peer)]->in, bytes);
      break;
    case Task::Kind::send:
    case Task::Kind::recv:
      break;  // no collectives
  }
}

void Room::messages(std::unique_lock<std::mutex>& lock, Member& member, const std::vector<Task>& tasks) {
  std::vector<MessagePtr> mine;
  std::vector<std::deque<MessagePtr>*> queues;
  for (const Task& task : tasks) {
    if (!task.is_message()) continue;
    const bool send = task.kind == Task::Kind::send;
    Channel& channel =
        channels_[send ? std::pair(member.rank, task.peer) : std::pair(task.peer, member.rank)];
    std::deque<MessagePtr>& queue = send ? channel.sends : channel.receives;
    const auto message = std::make_shared<Message>(
        Message{send ? const_cast<void*>(task.in) : task.out, task.count * size_of(task.type)});
    queue.push_back(message);
    mine.push_back(message);
    queues.push_back(&queue);
    match(channel);
  }
  changed_.notify_all();
  changed_.wait(lock, [&] {
    return member.aborted || std::all_of(mine.begin(), mine.end(), [](const auto& m) { return m->done; });
  });
  for (std::size_t i = 0; i < mine.size(); ++i) std::erase(*queues[i], mine[i]);
}

// Without buffers between: a send is done when it has been received. Messages of different sizes never match.
void Room::match(Channel& channel) {
  while (!channel.sends.empty() && !channel.receives.empty()) {
    Message& from = *channel.sends.front();
    Message& to = *channel.receives.front();
    if (from.bytes != to.bytes) return;
    copy(to.data, from.data, from.bytes);
    from.done = to.done = true;
    channel.sends.pop_front();
    channel.receives.pop_front();
  }
}

}  // namespace sailor::fake
