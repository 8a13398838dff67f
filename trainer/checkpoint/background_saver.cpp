#include "trainer/checkpoint/background_saver.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "planner/process/seconds_since.h"
#include "planner/spec/error.h"
#include "trainer/checkpoint/memory_copies.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNice = 5;  // training goes first, but what is written must not pile up

bool has_ended(const std::future<SaveResult>& writing) {
  return writing.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

BackgroundSaver::BackgroundSaver(const JobSpec& job, const Plan& plan, std::unique_ptr<Communicator> group)
    : job_(job), plan_(plan), layout_(plan), group_(std::move(group)) {}

BackgroundSaver::~BackgroundSaver() {
  give_up();
}

void BackgroundSaver::give_up() {
  if (!writing_.valid()) return;
  if (!has_ended(writing_)) group_->abort();
  wait();
}

void BackgroundSaver::start(const RankState& state, const StateVersion& version, const std::string& directory,
                            int keep) {
  const auto begin = Clock::now();
  wait();
  own_->take(state, version);
  const double stopped_s = seconds_since(begin);
  writing_ = std::async(std::launch::async, [this, directory, keep, stopped_s] {
    // Of this thread and those that it starts; refused where limits do, and then it does without.
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
    const auto copied = Clock::now();
    SaveResult result;
    result.steps_done = own_->version().steps_done;
    result.stopped_s = stopped_s;
    try {
      own_->wait();
      if (job_.checkpoint.memory_copies == MemoryCopies::neighbour)
        result.not_copied = exchange_copies(*group_, layout_, *own_, *neighbours_);
      result.saved = save_checkpoint(*group_, job_, plan_, own_, directory, keep);
    } catch (const CommError&) {
      throw;
    } catch (const std::exception& error) {
      result.error = error.what();
    }
    result.written_s = seconds_since(copied);
    return result;
  });
}

std::vector<std::shared_ptr<const StateSnapshot>> BackgroundSaver::copies() const {
  std::vector<std::shared_ptr<const StateSnapshot>> copies;
  if (job_.checkpoint.memory_copies == MemoryCopies::none) return copies;
  for (const auto& copy : {own_, neighbours_}) {
    if (copy->whole()) copies.push_back(copy);
  }
  return copies;
}

void BackgroundSaver::wait() {
  if (!writing_.valid()) return;
  writing_.wait();
  ended_.push_back(std::move(writing_));
}

std::vector<SaveResult> BackgroundSaver::results() {
  if (writing_.valid() && has_ended(writing_)) wait();
  std::vector<SaveResult> results;
  for (std::future<SaveResult>& ended : std::exchange(ended_, {})) results.push_back(ended.get());
  return results;
}

}  // namespace sailor
