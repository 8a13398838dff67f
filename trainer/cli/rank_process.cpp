#include "trainer/cli/rank_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "trainer/launch/agent.h"
#include "trainer/process/process_identity.h"

namespace sailor {
namespace {

constexpr auto kTellFailure = std::chrono::seconds(2);  // for a message to reach the controller

}  // namespace

RankProcess::RankProcess(RankResources& resources, GenerationInbox& inbox, std::string node)
    : resources_(resources), inbox_(inbox), node_(std::move(node)) {}

int RankProcess::rank_in(const Generation& generation) const {
  for (size_t rank = 0; rank < generation.ranks.size(); ++rank) {
    if (generation.ranks[rank].node == node_ && generation.ranks[rank].pid == getpid())
      return static_cast<int>(rank);
  }
  return -1;
}

void RankProcess::run(std::optional<Generation> first) {
  Generation generation = first ? std::move(*first) : inbox_.wait_for_newer_than(0);
  while (true) {
    // What was state of the job when an older generation ran is out of date.
    if (previous_ && previous_->number() < generation.base) previous_.reset();
    const int rank = rank_in(generation);
    if (rank >= num_ranks(generation.plan)) {
      give(generation, rank);
    } else if (rank >= 0) {
      live_through(generation, rank);
    }
    generation = inbox_.wait_for_newer_than(generation.number);
    if (previous_) previous_->abort();
  }
}

void RankProcess::live_through(const Generation& generation, int rank) {
  std::cerr << fmt::format("generation {}: rank {} of {}\n", generation.number, rank,
                           generation.ranks.size());
  resources_.rank = rank;
  std::unique_ptr<RankGeneration> now;
  try {
    now = std::make_unique<RankGeneration>(resources_, generation, rank);
  } catch (const DeviceFailure& failure) {
    end_without_device(generation, rank, failure);
  }
  RankGeneration& present = *now;
  inbox_.enter(generation.number, [&present] { present.abort(); });
  try {
    const Started started = present.start(previous_.get());
    previous_ = std::move(now);
    resources_.control.send(started);
    present.train(inbox_);
    // All steps are done, or it was time to stop; peers may still need this rank's connections.
    inbox_.wait_until_interrupted();
    inbox_.leave();
  } catch (const CommError& error) {
    inbox_.leave();
    present.abort();
    // The device's own failure looks like one of a communication.
    if (const auto text = resources_.gpu ? resources_.gpu->device().failure() : std::nullopt)
      end_without_device(generation, rank, DeviceFailure(*text, /*out_of_memory=*/false));
    leave(generation, rank, error);
  } catch (const std::exception& error) {
    inbox_.leave();
    if (const auto failure = device_failure(error)) {
      present.abort();
      if (!failure->out_of_memory() || present.has_stepped()) end_without_device(generation, rank, *failure);
      // The next attempt would fail in the same way.
      if (!inbox_.interrupted()) throw std::runtime_error(present.memory_error(failure->what()));
    }
    // What fails because the generation was over anyway says nothing.
    if (!inbox_.interrupted()) throw;
    present.abort();
    leave(generation, rank,
          CommError("generation", fmt::format("{}", generation.number), -1, "", error.what()));
  }
  resources_.control.send(Idle{
      .generation = generation.number, .rank = rank, .steps_done = previous_ ? previous_->steps_done() : 0});
}

// Not in the plan any more: hands over what those need that are.
void RankProcess::give(const Generation& generation, int rank) {
  std::cerr << fmt::format("generation {}: gives its state\n", generation.number);
  resources_.rank = rank;
  SocketFactory factory(rank, endpoints_of(generation), resources_.secret, resources_.listener,
                        {.encrypt = resources_.encrypts_data}, generation.scope);
  inbox_.enter(generation.number, [&factory] { factory.abort(); });
  try {
    RankTrainer::make_room(previous_ ? previous_->trainer() : nullptr, factory, {.needed_bytes = 0});
    RankTrainer::give(previous_ ? previous_->trainer() : nullptr, resources_.job, factory);
    inbox_.leave();
    resources_.control.send(Started{.generation = generation.number,
                                    .rank = rank,
                                    .pid = getpid(),
                                    .start_ticks = process_start_ticks(),
                                    .device_contexts = Device::opened()});
    // What it has is of use until the others train.
    if (inbox_.wait_until_running(generation.number)) previous_.reset();
  } catch (const CommError& error) {
    inbox_.leave();
    factory.abort();
    leave(generation, rank, error);
  }
  resources_.control.send(Idle{.generation = generation.number, .rank = rank, .steps_done = 0});
}

void RankProcess::end_without_device(const Generation& generation, int rank, const DeviceFailure& failure) {
  std::cerr << "sailor-rank: " << failure.what() << std::endl;
  resources_.control.send(Failure{.generation = generation.number,
                                  .rank = rank,
                                  .node = node_,
                                  .pid = getpid(),
                                  .text = failure.what(),
                                  .device_failed = true,
                                  .gpu_usable = failure.out_of_memory()});
  std::this_thread::sleep_for(kTellFailure);  // or until the controller's stop ends this process
  _exit(kFailed);                             // nothing that waits for the device is destroyed
}

void RankProcess::leave(const Generation& generation, int rank, const CommError& error) {
  std::cerr << "sailor-rank: " << error.what() << std::endl;
  if (inbox_.interrupted()) return;  // it was told to
  resources_.control.send(Failure{.generation = generation.number,
                                  .rank = rank,
                                  .node = node_,
                                  .pid = getpid(),
                                  .text = error.what(),
                                  .peer_lost = true,
                                  .lost_peer = error.peer()});
}

}  // namespace sailor
