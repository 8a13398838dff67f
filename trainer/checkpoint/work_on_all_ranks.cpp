#include "trainer/checkpoint/work_on_all_ranks.h"

#include <chrono>
#include <future>
#include <stdexcept>

#include "planner/spec/error.h"
#include "trainer/checkpoint/checkpoint_directory.h"

namespace sailor {
namespace {

using Failure = Outcome::Failure;

// How often a rank that still works says so: often beside any deadline, seldom beside the work.
constexpr auto kSign = std::chrono::milliseconds(100);

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

Outcome on_all_ranks(Communicator& world, const std::function<void()>& work) {
  std::future<void> working = std::async(std::launch::async, work);
  for (bool all_done = false; !all_done;) {
    int64_t busy = working.wait_for(kSign) == std::future_status::ready ? 0 : 1;
    world.all_reduce(&busy, 1, ElementType::i64, ReduceOp::max);
    all_done = busy == 0;
  }
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
