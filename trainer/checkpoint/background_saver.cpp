#include "trainer/checkpoint/background_saver.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "planner/spec/error.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNice = 5;  // training goes first, but what is written must not pile up

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool has_ended(const std::future<SaveResult>& writing) {
  return writing.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

BackgroundSaver::BackgroundSaver(const JobSpec& job, const Plan& plan, std::unique_ptr<Communicator> group)
    : job_(job), plan_(plan), group_(std::move(group)) {}

BackgroundSaver::~BackgroundSaver() {
  if (writing_.valid() && !has_ended(writing_)) group_->abort();
}

void BackgroundSaver::start(const RankState& state, int64_t steps_done, const std::string& directory,
                            int keep) {
  const auto begin = Clock::now();
  wait();
  snapshot_.take(state, steps_done);
  const double stopped_s = since(begin);
  writing_ = std::async(std::launch::async, [this, directory, keep, stopped_s] {
    // Of this thread and those that it starts; refused where limits do, and then it does without.
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
    const auto copied = Clock::now();
    SaveResult result;
    result.steps_done = snapshot_.steps_done();
    result.stopped_s = stopped_s;
    try {
      result.saved = save_checkpoint(*group_, job_, plan_, snapshot_, directory, keep);
    } catch (const CommError&) {
      throw;
    } catch (const std::exception& error) {
      result.error = error.what();
    }
    result.written_s = since(copied);
    return result;
  });
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
