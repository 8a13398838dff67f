// How a member of an NCCL communicator fails and ends: the other half of nccl_member.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "trainer/comm/nccl/call_with_limit.h"
#include "trainer/comm/nccl/nccl_member.h"

namespace sailor {
namespace {

using Clock = NcclMember::Clock;
using std::chrono::milliseconds;

// How long a member that has stopped waiting listens to what the others are in. They answer from their
// watching threads, at once.
constexpr auto kAskingTime = milliseconds(500);
// What a rank that has left took part in may complete this much later.
constexpr auto kAfterLeaving = milliseconds(1000);
// For ncclCommAbort, for the orderly end, and for what is under way before it.
constexpr auto kEndingTime = milliseconds(5000);
// For last words to leave this process.
constexpr auto kSayingTime = milliseconds(1000);
// A thread that is inside NCCL for longer than this hangs; after a failure it needs the abort to come out.
constexpr auto kStuckTime = milliseconds(200);

constexpr auto kNever = Clock::time_point::max();

}  // namespace

void NcclMember::look() noexcept {
  {
    // First, so that what had completed when others failed counts as complete.
    const std::lock_guard state(state_mutex_);
    if (words_ && !failed_) words_->listen();
  }
  try {
    use_device(setup_.libraries.cuda, setup_.device);
    const std::unique_lock calls(calls_mutex_, std::try_to_lock);
    if (calls && !failed_) {
      std::vector<NcclOperationPtr> under_way;
      {
        const std::lock_guard state(state_mutex_);
        under_way = under_way_;
      }
      for (const NcclOperationPtr& operation : under_way) progress(*operation);
      for (const Lane lane : all_lanes()) {
        if (lanes_[lane].get() && queues_[lane].empty()) static_cast<void>(settled(lane));
      }
    }
  } catch (const std::exception& error) {
    fail({-1, error.what()}, LastWords::Kind::failed);
  }
  {
    const std::lock_guard state(state_mutex_);
    if (words_ && !failed_) judge(Clock::now());
  }
  if (failed_) end_lanes();
}

void NcclMember::judge(Clock::time_point now) {
  if (!giving_up_ && words_->lost()) {
    const auto& lost = *words_->lost();
    return fail_locked({lost.rank, lost.rank < 0 ? lost.reason : "is gone: its connection broke"},
                       LastWords::Kind::failed);
  }
  for (const int peer : others()) {
    if (const LastWords* const words = words_->from(peer)) hear(peer, *words, now);
    if (failed_) return;
  }
  if (!giving_up_) {
    if (NcclOperationPtr operation = overdue(now)) give_up(now, std::move(operation), -1);
  }
  if (!giving_up_) return;
  const std::vector<int> asked = giving_up_->operation ? giving_up_->operation->needed : std::vector<int>{};
  if (now >= giving_up_->until ||
      std::all_of(asked.begin(), asked.end(), [&](int peer) { return words_->from(peer) != nullptr; }))
    fail_locked(timeout_verdict(), LastWords::Kind::timed_out);
}

void NcclMember::hear(int peer, const LastWords& words, Clock::time_point now) {
  switch (words.kind) {
    case LastWords::Kind::left: {
      Clock::time_point& left = left_at_[static_cast<std::size_t>(peer)];
      if (left == kNever) left = now;
      if (now < left + kAfterLeaving) return;
      for (const NcclOperationPtr& operation : under_way_) {
        const std::vector<int>& needed = operation->needed;
        // On another stream it may be behind a long computation.
        if (operation->on_own_stream && operation->awaited &&
            std::find(needed.begin(), needed.end(), peer) != needed.end())
          return fail_locked({peer, "is gone: it has left the communicator"}, LastWords::Kind::failed);
      }
      return;
    }
    case LastWords::Kind::timed_out:
      if (!giving_up_) {
        const auto mine = std::find_if(under_way_.begin(), under_way_.end(),
                                       [](const auto& operation) { return operation->awaited.has_value(); });
        give_up(now, mine == under_way_.end() ? nullptr : *mine, peer);
      }
      return;
    case LastWords::Kind::aborted:
      return fail_locked({peer, fmt::format("is gone: {}", words.reason)}, LastWords::Kind::failed);
    case LastWords::Kind::failed:
      if (words.blamed >= 0 && words.blamed != setup_.rank)
        return fail_locked({words.blamed, words.reason}, LastWords::Kind::failed);
      return fail_locked({peer, fmt::format("has failed: {}", words.reason)}, LastWords::Kind::failed);
  }
}

NcclOperationPtr NcclMember::overdue(Clock::time_point now) const {
  for (const NcclOperationPtr& operation : under_way_) {
    if (operation->awaited && now - std::max(*operation->awaited, last_progress_) > setup_.deadline)
      return operation;
  }
  return nullptr;
}

void NcclMember::give_up(Clock::time_point now, NcclOperationPtr operation, int asked_by) {
  giving_up_ = {now + kAskingTime, std::move(operation), asked_by};
  say(LastWords::Kind::timed_out, {});
}

Verdict NcclMember::timeout_verdict() const {
  if (!giving_up_->operation) {
    const int peer = giving_up_->asked_by;
    return {peer, fmt::format("gave up waiting: it was {}, and this rank is {}",
                              to_string(words_->from(peer)->doing), to_string(doing_now()))};
  }
  Answers answers;
  for (std::size_t peer = 0; peer < setup_.ranks.size(); ++peer) {
    const LastWords* const words = words_->from(static_cast<int>(peer));
    answers.push_back(words ? std::optional(words->doing) : std::nullopt);
  }
  const std::string waited = fmt::format("{:.1f} s", std::chrono::duration<double>(setup_.deadline).count());
  return judge_timeout(doing_now(), giving_up_->operation->needed, answers, waited);
}

Doing NcclMember::doing_now() const {
  const Clock::rep since = in_nccl_since_;
  const bool stuck = since != 0 && Clock::now().time_since_epoch() - Clock::duration(since) > kStuckTime;
  Doing doing{.collective = collectives_};
  if (giving_up_ && giving_up_->operation) {
    doing = giving_up_->operation->doing;
  } else {
    for (const NcclOperationPtr& operation : under_way_) {
      if (!operation->awaited && !stuck) continue;
      doing = operation->doing;
      break;
    }
  }
  doing.stuck = stuck;
  return doing;
}

void NcclMember::say(LastWords::Kind kind, const Verdict& verdict) noexcept {
  if (!words_) return;
  LastWords words{.kind = kind, .blamed = verdict.rank, .doing = doing_now()};
  const std::size_t length = std::min(verdict.reason.size(), sizeof words.reason - 1);
  std::memcpy(words.reason, verdict.reason.data(), length);
  words_->say(words);
}

void NcclMember::fail_locked(Verdict verdict, LastWords::Kind kind) noexcept {
  if (failed_) return;
  say(kind, verdict);
  verdict_ = std::move(verdict);
  failed_at_ = Clock::now();
  failed_ = true;
  setup_.wake_watch();
}

void NcclMember::fail(Verdict verdict, LastWords::Kind kind) noexcept {
  const std::lock_guard state(state_mutex_);
  fail_locked(std::move(verdict), kind);
}

void NcclMember::abort() noexcept {
  fail({-1, "aborted"}, LastWords::Kind::aborted);
  end_lanes();
}

bool NcclMember::abort_waits() noexcept {
  if (!failed_) return false;
  const std::lock_guard state(state_mutex_);
  return (!ending_ || lanes_to_end_ > 0) && Clock::now() - failed_at_ > kStuckTime;
}

void NcclMember::end_lanes() noexcept {
  std::vector<ncclComm_t> ending;
  {
    const std::unique_lock calls(calls_mutex_, std::try_to_lock);
    const std::lock_guard state(state_mutex_);
    if (ending_ || (!calls && Clock::now() - failed_at_ < kStuckTime)) return;
    ending_ = true;
    for (NcclLane& lane : lanes_) {
      if (const ncclComm_t communicator = lane.take()) ending.push_back(communicator);
    }
    lanes_to_end_ = static_cast<int>(ending.size());
    ended_changed_.notify_all();
  }
  for (const ncclComm_t communicator : ending) {
    const auto end = [self = shared_from_this(), communicator] {
      abort_communicator(self->setup_.libraries, self->setup_.device, communicator);
      const std::lock_guard state(self->state_mutex_);
      --self->lanes_to_end_;
      self->ended_changed_.notify_all();
    };
    try {
      std::thread(end).detach();
    } catch (const std::system_error&) {  // no more threads: it ends, or this thread hangs
      end();
    }
  }
}

void NcclMember::wait_until_ended() noexcept {
  const auto ended = [this] { return ending_ && lanes_to_end_ == 0; };
  std::unique_lock state(state_mutex_);
  while (Clock::now() < failed_at_ + kStuckTime + kEndingTime) {
    state.unlock();
    end_lanes();  // the watching thread may be the one that hangs
    state.lock();
    if (ended_changed_.wait_for(state, milliseconds(10), ended)) return;
  }
  const char* const hint = "; ncclCommAbort does not return: start this process again";
  if (verdict_.reason.find(hint) == std::string::npos) verdict_.reason += hint;
}

void NcclMember::throw_failure(const std::string& operation) {
  wait_until_ended();
  const std::lock_guard state(state_mutex_);
  const auto peer = static_cast<std::size_t>(verdict_.rank);
  if (verdict_.rank < 0) throw CommError(operation, setup_.name, -1, "", verdict_.reason);
  throw CommError(operation, setup_.name, setup_.ranks[peer], setup_.hosts[peer], verdict_.reason);
}

std::unique_lock<std::mutex> NcclMember::quiet(Clock::time_point until) noexcept {
  while (!failed_ && Clock::now() < until) {
    {
      std::unique_lock calls(calls_mutex_, std::try_to_lock);
      const std::lock_guard state(state_mutex_);
      if (calls && under_way_.empty() && !failed_) return calls;
    }
    std::this_thread::sleep_for(milliseconds(1));  // the watching thread sees what completes
  }
  return {};
}

void NcclMember::leave() noexcept try {
  const std::unique_lock calls =
      quiet(Clock::now() + std::min<Clock::duration>(kEndingTime, setup_.deadline));
  if (calls) {
    std::vector<std::jthread> finishing;  // joined when the lock below is released
    const std::lock_guard state(state_mutex_);
    say(LastWords::Kind::left, {});
    for (NcclLane& lane : lanes_) {
      const ncclComm_t communicator = lane.take();
      if (!communicator) continue;
      finishing.emplace_back([this, communicator] {
        finish_communicator(setup_.libraries, setup_.device, communicator, kEndingTime);
      });
    }
  } else {
    fail({-1, "it left while operations were under way"}, LastWords::Kind::aborted);
    wait_until_ended();
    for (NcclLane& lane : lanes_) {  // of a creation that was given up just before it returned
      const ncclComm_t communicator = lane.take();
      if (!communicator) continue;
      call_with_limit([libraries = setup_.libraries, device = setup_.device,
                       communicator] { abort_communicator(libraries, device, communicator); },
                      Clock::now() + kEndingTime);
    }
  }
  close_words();
} catch (const std::system_error&) {  // no more threads: NCCL keeps what it has
  close_words();
}

void NcclMember::close_words() noexcept {
  const auto until = Clock::now() + kSayingTime;
  while (Clock::now() < until) {
    {
      const std::lock_guard state(state_mutex_);
      if (words_->said()) break;
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  std::unique_ptr<LastWordsExchange> gone;  // its connections close without the lock
  const std::lock_guard state(state_mutex_);
  gone = std::move(words_);
}

}  // namespace sailor
