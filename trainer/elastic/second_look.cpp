#include "trainer/elastic/second_look.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace sailor {
namespace {

constexpr int kNice = 10;

}  // namespace

std::optional<Replanned> SecondLook::tick(const Training& training, const Replanner& replanner) {
  if (answer_.valid()) {
    if (answer_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
    Replanned found = answer_.get();
    if (!stop_ && asked_ == training.gpus) {
      answered_ = std::move(asked_);
      found.text = "longer search";
      return found.plan ? std::optional(std::move(found)) : std::nullopt;
    }
  }
  if (!std::exchange(due_, false) || training.gpus == answered_) return std::nullopt;
  asked_ = training.gpus;
  stop_ = false;
  answer_ = std::async(std::launch::async, [this, training, replanner] {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // of this thread only
    return replanner.plan_for(training.gpus, training.plan, training.runners_up,
                              Replanner::Time{time_limit_s_, &stop_});
  });
  return std::nullopt;
}

void SecondLook::cancel() {
  if (!answer_.valid()) return;
  stop_ = true;
  due_ = true;
}

}  // namespace sailor
