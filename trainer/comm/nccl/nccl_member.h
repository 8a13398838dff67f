// One rank's part of an NCCL communicator: its two ncclComm_t, the operations in progress, and failure
// handling.
//
// There are two lanes, each an ncclComm_t with its own stream, because NCCL runs the operations of a
// communicator one after the other, messages too. Messages to higher ranks of the communicator use one lane,
// those to lower ranks the other, so that a message that waits for its receiver does not block the one that
// the receiver waits for. Collectives use the first lane, and a group that has nothing else has only that.
// (ncclCommSplit could create the second one from the first, but a split waits for all members like a
// creation, and the two would have to end together.)
//
// Only look() decides about failure, for the factory's watching thread and for waiting threads: a member is
// gone, or there was no progress within the deadline. Errors of NCCL and CUDA come from the calls. Then the
// members are told, the lanes are aborted, each by its own thread, because ncclCommAbort may not return, and
// after that waits throw. Events only count while nothing has failed, because an abort lets streams continue,
// too.
//
// Thread-safety: as Communicator; look() and abort() from any thread. Lock order: calls_mutex_, state_mutex_,
// the watch's. No call of NCCL or CUDA is made under state_mutex_.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/nccl/last_words.h"
#include "trainer/comm/nccl/nccl_lane.h"
#include "trainer/comm/nccl/verdict.h"

namespace sailor {

// The part of an operation that one call enqueues on one lane.
struct NcclPart {
  enum class State { queued, launching, enqueued, done };
  cudaStream_t stream = nullptr;
  std::optional<CudaEvent> after;  // the lane's stream waits for it
  std::function<ncclResult_t(ncclComm_t, cudaStream_t)> call;
  State state = State::queued;
  std::optional<CudaEvent> end;  // of what was enqueued
};

struct NcclOperation {
  Doing doing;
  std::vector<int> needed;  // members that it needs, without oneself
  bool on_own_stream = true;
  std::array<std::optional<NcclPart>, 2> parts;  // by lane; guarded by calls_mutex_, as the next
  bool launched = false;                         // all its parts are enqueued
  // Since when a thread relies on it; guarded by state_mutex_.
  std::optional<std::chrono::steady_clock::time_point> awaited;
  std::atomic<bool> done{false};
};
using NcclOperationPtr = std::shared_ptr<NcclOperation>;

class NcclMember : public std::enable_shared_from_this<NcclMember> {
 public:
  using Clock = std::chrono::steady_clock;
  using LaneIds = std::array<ncclUniqueId, 2>;
  enum Lane { up, down };

  struct Setup {
    DeviceLibraries libraries;
    int device = 0;
    std::string name;
    int rank = 0;
    std::vector<int> ranks;          // of the job
    std::vector<std::string> hosts;  // by rank in the communicator
    CommUse use = CommUse::any;
    std::chrono::milliseconds deadline{};
    std::unique_ptr<Communicator> between;  // for last words
    std::function<void()> wake_watch;       // call it to have a failure handled
  };
  // The device must be current. Throws CudaError.
  explicit NcclMember(Setup setup);

  // Returns when all members have joined. `began`: start of the deadline. Call it once, while look() is being
  // called.
  void join(const LaneIds& ids, Clock::time_point began);
  // Leaves the group: in an orderly way if nothing is in progress or has failed, otherwise by abort.
  void leave() noexcept;

  // Registers an operation before its launch. Throws CommError if it is not possible.
  NcclOperationPtr begin(Doing doing, std::vector<int> needed, bool on_own_stream);
  // Enqueues its parts: by lane, a function that makes calls of NCCL and returns the last result, or none.
  // They run on the lanes' own streams (`stream` null) or on `stream`; with `after`, they wait for what is
  // enqueued there. On own streams it returns even if NCCL is still busy with earlier calls, making
  // connections; the functions, which own what they use, may then run on another thread. Throws CommError.
  using Call = std::function<ncclResult_t(ncclComm_t, cudaStream_t)>;
  using Calls = std::array<Call, 2>;
  void launch(const NcclOperationPtr& operation, Calls calls, cudaStream_t stream, cudaStream_t after);

  void wait(const NcclOperationPtr& operation);  // throws CommError
  bool done(const NcclOperationPtr& operation) noexcept;
  // `stream` waits for it. Throws CommError.
  void wait_on(const NcclOperationPtr& operation, cudaStream_t stream);
  // Its buffers may be freed: nothing writes to them after this returns.
  void abandon(const NcclOperationPtr& operation) noexcept;
  void settle();  // throws CommError

  void abort() noexcept;
  // Checks what has completed and whether the communicator has failed, and then ends it.
  void look() noexcept;
  // Has it failed, and its abort not returned at once? ncclCommAbort frees device memory, for which it waits
  // for whatever runs on the device: for kernels of this rank's other communicators, too.
  bool abort_waits() noexcept;

  bool takes_messages() const { return lanes_.size() > 1; }
  void* token() const { return token_.get(); }  // a byte for the device to write to

 private:
  // During its lifetime, the calling thread is inside a call of NCCL, which should return at once.
  class InNccl {
   public:
    explicit InNccl(NcclMember& member) : member_(member) {
      member_.in_nccl_since_ = Clock::now().time_since_epoch().count();
    }
    ~InNccl() { member_.in_nccl_since_ = 0; }
    InNccl(const InNccl&) = delete;
    InNccl& operator=(const InNccl&) = delete;

   private:
    NcclMember& member_;
  };

  // Pause between two checks of a waiting thread: short at first, because most waits are short. From time to
  // time it calls look() itself, in case the watching thread hangs.
  class Waiting {
   public:
    explicit Waiting(NcclMember& member) : member_(member) {}
    void operator()();

   private:
    NcclMember& member_;
    int turns_ = 0;
  };

  struct GivingUp {  // no progress in time: asks the others for their operations
    Clock::time_point until;
    NcclOperationPtr operation;  // null if another member gave up first, and this one is in no operation
    int asked_by = -1;
  };

  // These require calls_mutex_ and the current device, and throw NcclError, CudaError.
  void progress(NcclOperation& operation);
  void pump(Lane lane);  // makes the queued calls, as far as NCCL has finished earlier ones
  void end_launch(Lane lane);
  bool settled(Lane lane);
  // Waits until the operation is enqueued on all its lanes.
  void wait_for_launch(const NcclOperationPtr& operation, std::unique_lock<std::mutex>& calls);
  // Locks calls_mutex_, which a hanging call of NCCL may hold: throws CommError when the communicator has
  // failed.
  std::unique_lock<std::mutex> lock_calls(const char* operation);
  CudaEvent event();
  std::span<const Lane> all_lanes() const;
  std::vector<int> others() const;  // all members except oneself

  // These require state_mutex_.
  void judge(Clock::time_point now);
  void hear(int peer, const LastWords& words, Clock::time_point now);
  NcclOperationPtr overdue(Clock::time_point now) const;  // null if none is
  void give_up(Clock::time_point now, NcclOperationPtr operation, int asked_by);
  Verdict timeout_verdict() const;
  Doing doing_now() const;
  void say(LastWords::Kind kind, const Verdict& verdict) noexcept;
  void fail_locked(Verdict verdict, LastWords::Kind kind) noexcept;

  void fail(Verdict verdict, LastWords::Kind kind) noexcept;
  void rely_on(NcclOperation& operation);
  // Waits for operations in progress: returns a lock of calls_mutex_ when there are none, an empty one after
  // a failure or timeout.
  std::unique_lock<std::mutex> quiet(Clock::time_point until) noexcept;

  // Sends pending messages, and closes the connections to the others.
  void close_words() noexcept;

  void end_lanes() noexcept;
  void wait_until_ended() noexcept;
  [[noreturn]] void throw_failure(const std::string& operation);

  Setup setup_;                 // `between` has moved to words_
  std::deque<NcclLane> lanes_;  // `up` only, if there are no messages
  const PinnedBuffer token_;

  std::mutex calls_mutex_;
  std::array<std::deque<NcclOperationPtr>, 2> queues_;  // by lane; the first may be launching
  std::vector<CudaEvent> spare_events_;

  std::mutex state_mutex_;
  std::condition_variable ended_changed_;
  std::unique_ptr<LastWordsExchange> words_;  // null once this rank has left
  std::vector<NcclOperationPtr> under_way_;
  uint64_t collectives_ = 0;
  Clock::time_point last_progress_;
  std::vector<Clock::time_point> left_at_;  // by rank; max() = it has not
  std::optional<GivingUp> giving_up_;
  Verdict verdict_;  // once failed_
  Clock::time_point failed_at_;
  bool ending_ = false;  // lanes are being aborted
  int lanes_to_end_ = 0;
  std::atomic<bool> failed_{false};
  std::atomic<Clock::rep> in_nccl_since_{0};  // a thread that is inside a call of NCCL; 0 = none
};

}  // namespace sailor
