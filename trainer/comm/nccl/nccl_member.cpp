#include "trainer/comm/nccl/nccl_member.h"

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <utility>

namespace sailor {
namespace {

// For sums of gradients beside the backward: enough for the bandwidth of a node's network, and a small part
// of a device's 80 to 140 multiprocessors. 0 = NCCL's default. NCCL_MAX_CTAS is the user's choice.
int max_ctas_for(CommUse use) {
  constexpr int kInBackground = 16;
  return use == CommUse::background_collectives && !std::getenv("NCCL_MAX_CTAS") ? kInBackground : 0;
}

}  // namespace

void NcclMember::Waiting::operator()() {
  constexpr int kQuick = 100, kMedium = 1000, kBetweenLooks = 50;
  if (++turns_ < kQuick) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(turns_ < kMedium ? 20 : 200));
    if (turns_ % kBetweenLooks == 0) member_.look();
  }
}

NcclMember::NcclMember(Setup setup)
    : setup_(std::move(setup)),
      token_(setup_.libraries.cuda, 1),
      words_(std::make_unique<LastWordsExchange>(std::move(setup_.between))),
      left_at_(setup_.ranks.size(), Clock::time_point::max()) {
  const int max_ctas = max_ctas_for(setup_.use);
  lanes_.emplace_back(setup_.libraries, max_ctas);
  if (has_messages(setup_.use)) lanes_.emplace_back(setup_.libraries, max_ctas);
}

std::span<const NcclMember::Lane> NcclMember::all_lanes() const {
  static constexpr std::array<Lane, 2> kAll = {up, down};
  return std::span(kAll).first(lanes_.size());
}

void NcclMember::join(const LaneIds& ids, Clock::time_point began) {
  Doing doing{.operation = "create", .to_all = true};
  const NcclOperationPtr operation = begin(doing, others(), true);
  {
    const std::lock_guard state(state_mutex_);
    operation->awaited = began;
  }
  try {
    for (const Lane lane : all_lanes()) {
      bool started = false;
      {
        const InNccl calling(*this);
        started = lanes_[lane].start(ids[lane], static_cast<int>(setup_.ranks.size()), setup_.rank,
                                     setup_.device, [this] { return failed_.load(); });
      }
      if (!started) throw_failure("create");
      Waiting pause(*this);
      while (true) {
        {
          const auto calls = lock_calls("create");
          if (lanes_[lane].get() && settled(lane)) break;
        }
        pause();
      }
    }
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    fail({-1, error.what()}, LastWords::Kind::failed);
    throw_failure("create");
  }
  const std::lock_guard state(state_mutex_);
  std::erase(under_way_, operation);
}

NcclOperationPtr NcclMember::begin(Doing doing, std::vector<int> needed, bool on_own_stream) {
  const auto operation = std::make_shared<NcclOperation>();
  {
    const std::lock_guard state(state_mutex_);
    if (!failed_ && words_) {
      for (const int peer : needed) {
        const LastWords* const words = words_->from(peer);
        if (words && words->kind == LastWords::Kind::left) {
          fail_locked({peer, "is gone: it has left the communicator"}, LastWords::Kind::failed);
          break;
        }
      }
    }
    if (!failed_) {
      doing.collective = doing.to_all ? ++collectives_ : collectives_;
      operation->doing = doing;
      operation->needed = std::move(needed);
      operation->on_own_stream = on_own_stream;
      if (doing.to_all) operation->awaited = Clock::now();
      under_way_.push_back(operation);
      return operation;
    }
  }
  throw_failure(doing.operation);
}

void NcclMember::launch(const NcclOperationPtr& operation, Calls functions, cudaStream_t stream,
                        cudaStream_t after) {
  const char* const name = operation->doing.operation;
  try {
    use_device(setup_.libraries.cuda, setup_.device);
    std::unique_lock calls = lock_calls(name);
    for (const Lane lane : {up, down}) {
      if (!functions[lane]) continue;
      NcclPart& part = operation->parts[lane].emplace();
      part.stream = stream ? stream : lanes_[lane].stream().get();
      part.call = std::move(functions[lane]);
      part.end.emplace(event());
      if (after) {
        part.after.emplace(event());
        part.after->record(after);
      }
      queues_[lane].push_back(operation);
    }
    operation->launched = true;
    for (const Lane lane : all_lanes()) pump(lane);
    // What the caller enqueues next on its stream must come after it.
    if (stream) wait_for_launch(operation, calls);
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    fail({-1, error.what()}, LastWords::Kind::failed);
    throw_failure(name);
  }
}

void NcclMember::pump(Lane lane) {
  while (!queues_[lane].empty() && !failed_ && lanes_[lane].get()) {
    NcclPart& part = *queues_[lane].front()->parts[lane];
    if (part.state == NcclPart::State::launching) {
      if (!settled(lane)) return;
      end_launch(lane);
      continue;
    }
    if (part.after) {
      lanes_[lane].stream().wait_for(part.after->get());
      spare_events_.push_back(std::move(*part.after));
      part.after.reset();
    }
    part.state = NcclPart::State::launching;
    ncclResult_t result = ncclSuccess;
    {
      const InNccl calling(*this);
      result = part.call(lanes_[lane].get(), part.stream);
    }
    if (result == ncclSuccess && !failed_) end_launch(lane);
  }
}

bool NcclMember::settled(Lane lane) {
  const InNccl calling(*this);
  return lanes_[lane].settled();
}

void NcclMember::end_launch(Lane lane) {
  NcclPart& part = *queues_[lane].front()->parts[lane];
  part.end->record(part.stream);
  part.state = NcclPart::State::enqueued;
  queues_[lane].pop_front();
}

void NcclMember::wait_for_launch(const NcclOperationPtr& operation, std::unique_lock<std::mutex>& calls) {
  Waiting pause(*this);
  for (const Lane lane : {up, down}) {
    const std::optional<NcclPart>& part = operation->parts[lane];
    while (part && (part->state == NcclPart::State::queued || part->state == NcclPart::State::launching)) {
      calls.unlock();
      pause();
      calls = lock_calls(operation->doing.operation);
      pump(lane);
    }
  }
}

std::unique_lock<std::mutex> NcclMember::lock_calls(const char* operation) {
  Waiting pause(*this);
  while (true) {
    if (failed_) throw_failure(operation);
    std::unique_lock calls(calls_mutex_, std::try_to_lock);
    // A failure that comes later takes the communicators under this mutex: they stay until it is released.
    if (calls && !failed_) return calls;
    if (calls) calls.unlock();
    pause();
  }
}

std::vector<int> NcclMember::others() const {
  std::vector<int> others;
  for (int peer = 0; peer < static_cast<int>(setup_.ranks.size()); ++peer) {
    if (peer != setup_.rank) others.push_back(peer);
  }
  return others;
}

CudaEvent NcclMember::event() {
  if (spare_events_.empty()) return CudaEvent(setup_.libraries.cuda);
  CudaEvent event = std::move(spare_events_.back());
  spare_events_.pop_back();
  return event;
}

void NcclMember::progress(NcclOperation& operation) {
  if (!operation.launched) return;
  for (const Lane lane : {up, down}) {
    std::optional<NcclPart>& part = operation.parts[lane];
    if (!part || part->state == NcclPart::State::done) continue;
    pump(lane);
    if (part->state != NcclPart::State::enqueued) return;
    // The order matters: what an abort ended must not pass for complete.
    if (!part->end->reached() || failed_) return;
    part->state = NcclPart::State::done;
    spare_events_.push_back(std::move(*part->end));
    part->end.reset();
  }
  const std::lock_guard state(state_mutex_);
  if (failed_) return;
  operation.done = true;
  last_progress_ = Clock::now();
  std::erase_if(under_way_, [&](const NcclOperationPtr& other) { return other.get() == &operation; });
}

void NcclMember::wait(const NcclOperationPtr& operation) {
  rely_on(*operation);
  Waiting pause(*this);
  while (!done(operation)) {
    if (failed_) throw_failure(operation->doing.operation);
    pause();
  }
}

bool NcclMember::done(const NcclOperationPtr& operation) noexcept {
  if (operation->done) return true;
  try {
    use_device(setup_.libraries.cuda, setup_.device);
    const std::unique_lock calls(calls_mutex_, std::try_to_lock);
    if (calls && !failed_) progress(*operation);
  } catch (const std::exception& error) {
    fail({-1, error.what()}, LastWords::Kind::failed);
  }
  return operation->done;
}

void NcclMember::wait_on(const NcclOperationPtr& operation, cudaStream_t stream) {
  rely_on(*operation);
  const char* const name = operation->doing.operation;
  try {
    use_device(setup_.libraries.cuda, setup_.device);
    std::unique_lock calls = lock_calls(name);
    wait_for_launch(operation, calls);
    for (const Lane lane : {up, down}) {
      const std::optional<NcclPart>& part = operation->parts[lane];
      if (part && part->state == NcclPart::State::enqueued)
        CudaStream::wait_for(setup_.libraries.cuda, stream, part->end->get());
    }
    if (!failed_) return;
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    fail({-1, error.what()}, LastWords::Kind::failed);
  }
  throw_failure(name);
}

void NcclMember::abandon(const NcclOperationPtr& operation) noexcept {
  if (done(operation)) return;
  fail({-1, "abandoned"}, LastWords::Kind::aborted);
  wait_until_ended();
}

void NcclMember::settle() {
  std::vector<NcclOperationPtr> waited_for;
  {
    const std::lock_guard state(state_mutex_);
    waited_for = under_way_;
  }
  for (const NcclOperationPtr& operation : waited_for) wait(operation);
  if (failed_) throw_failure("settle");
}

void NcclMember::rely_on(NcclOperation& operation) {
  const std::lock_guard state(state_mutex_);
  if (!operation.awaited) operation.awaited = Clock::now();
}

}  // namespace sailor
