#include "trainer/checkpoint/work_on_all_ranks.h"

#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include "planner/spec/error.h"
#include "trainer/checkpoint/checkpoint_directory.h"

namespace sailor {
namespace {

using Failure = Outcome::Failure;

// Interval of signs of life of a working rank: short compared with any deadline, long compared with its cost.
constexpr auto kSign = std::chrono::milliseconds(100);
constexpr auto kPatience = std::chrono::milliseconds(500);

Outcome outcome_of(std::future<void>& work) {
  try {
    work.get();
    return {};
  } catch (const CheckpointDamaged& error) {
    return {Failure::damaged, error.what()};
  } catch (const InputError& error) {
    return {Failure::input, error.what()};
  } catch (const std::exception& error) {
    return {Failure::other, error.what()};
  }
}

}  // namespace

std::string broadcast_text(Communicator& world, std::string text, int root) {
  auto bytes = static_cast<int64_t>(text.size());
  world.broadcast(&bytes, 1, ElementType::i64, root);
  text.resize(static_cast<std::size_t>(bytes));
  if (bytes > 0) world.broadcast(text.data(), text.size(), ElementType::u8, root);
  return text;
}

Outcome on_all_ranks(Communicator& world, const std::function<void()>& work, const StopFlag& stop,
                     const WorkProgress* progress) {
  std::packaged_task<void()> task(work);
  std::future<void> working = task.get_future();
  std::thread thread(std::move(task));
  try {
    for (bool all_done = false; !all_done;) {
      int64_t sums[] = {working.wait_for(kSign) == std::future_status::ready ? 0 : 1, 0, 0};  // busy ranks
      if (progress != nullptr) std::tie(sums[1], sums[2]) = progress->own();
      world.all_reduce(sums, progress != nullptr ? 3 : 1, ElementType::i64, ReduceOp::sum);
      all_done = sums[0] == 0;
      if (progress != nullptr) progress->tell(sums[1], sums[2]);
    }
  } catch (...) {
    if (stop) *stop = true;
    if (!stop || working.wait_for(kPatience) == std::future_status::ready) {
      thread.join();
    } else {
      thread.detach();
    }
    throw;
  }
  thread.join();
  Outcome own = outcome_of(working);
  const int64_t size = world.size();
  int64_t worst = static_cast<int64_t>(own.failure) * size + (size - 1 - world.rank());
  world.all_reduce(&worst, 1, ElementType::i64, ReduceOp::max);
  const auto failure = static_cast<Failure>(worst / size);
  if (failure == Failure::none) return {};
  const auto rank = static_cast<int>(size - 1 - worst % size);
  return {failure, broadcast_text(world, own.text, rank)};
}

void require(const Outcome& outcome) {
  if (outcome.failure == Failure::input) throw InputError(outcome.text);
  if (outcome.failure != Failure::none) throw std::runtime_error("checkpoint: " + outcome.text);
}

}  // namespace sailor
