// A training whose processes are threads of the test: they live through several generations of plans, some
// are lost at chosen points, and the others continue with RankTrainer::restore(). The test plays the
// controller.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "tests/unit/trainer/comm/faulty_factory.h"
#include "tests/unit/trainer/comm/ranks.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {

class ElasticTraining {
 public:
  struct Process {
    std::unique_ptr<CommFactory> factory;  // of `trainer`, which it must outlive
    std::unique_ptr<RankTrainer> trainer;  // of the last generation whose restore() succeeded here
    bool alive = true;
    int generation = -1;     // of `trainer`
    int64_t steps_done = 0;  // by its trainer, alive or lost
  };

  struct Generation {
    Plan plan;
    std::vector<int> members{};     // processes by rank of the plan; new numbers join
    int64_t until = -1;             // steps done; or
    int64_t more = 0;               // this many further steps
    std::map<int, Fault> faults{};  // by rank
    std::set<int> dead_with{};      // ranks on the same node as a fault's
    int64_t fails_at = 0;           // operations count from the step with this index on
    std::set<int> dropping{};       // ranks without memory for two states
    bool fails_in_restore = false;  // they count from the begin of restore() on
    int64_t save_every = 0;
    bool wait_for_saves = false;             // until each one is written
    std::chrono::microseconds notice{0};     // from the first failure until the survivors are interrupted
    std::map<int, int64_t> noticed_after{};  // and not before these ranks have done these steps, or failed
    std::function<void(int rank, RankTrainer&)> restored{};                  // on each rank, at once
    std::function<void(int rank, RankTrainer&, const StepResult&)> after{};  // each step
  };

  struct Outcome {
    std::vector<Restored> restored{};  // by rank; of those whose restore() returned
    bool interrupted = false;          // a rank failed
    int64_t all_have_done = 0;         // steps that every rank, lost ones included, has done
  };

  ElasticTraining(JobSpec job, const TokenData& data, std::string plane, std::string directory = "")
      : job_(std::move(job)), data_(data), plane_(std::move(plane)), directory_(std::move(directory)) {}
  ~ElasticTraining() {
    // The ranks of a generation leave together.
    for (auto& [id, process] : processes_) {
      if (process.factory) process.factory->abort();
    }
  }

  Process& process(int id) { return processes_[id]; }
  std::vector<int> survivors() const {
    std::vector<int> ids;
    for (const auto& [id, process] : processes_) {
      if (process.alive) ids.push_back(id);
    }
    return ids;
  }

  // All members build their trainers, take over the previous state, and train. Returns when all have reached
  // `until`, or were interrupted because a rank failed.
  Outcome run(const Generation& generation) {
    const int size = num_ranks(generation.plan);
    for (auto& [id, process] : processes_) {
      if (process.factory) process.factory->abort();
    }
    TestJob& comm = jobs_.emplace_back(plane_, size);
    const int number = static_cast<int>(jobs_.size()) - 1;
    std::vector<std::unique_ptr<FaultyFactory>> factories;
    done_ = std::vector<std::atomic<int64_t>>(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      const auto fault = generation.faults.find(rank);
      factories.push_back(std::make_unique<FaultyFactory>(
          comm.factory(rank), fault == generation.faults.end() ? Fault{} : fault->second));
      processes_[generation.members.at(static_cast<std::size_t>(rank))];
    }
    Outcome outcome;
    std::mutex mutex;
    std::exception_ptr unexpected;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        Process& process = processes_.at(generation.members[static_cast<std::size_t>(rank)]);
        FaultyFactory& factory = *factories[static_cast<std::size_t>(rank)];
        std::unique_ptr<RankTrainer> trainer;
        try {
          RankTrainer::make_room(process.trainer.get(), factory,
                                 {.drop_state = generation.dropping.contains(rank)});
          trainer = std::make_unique<RankTrainer>(job_, generation.plan, rank, factory, data_);
          live(generation, rank, factory, process, *trainer, mutex, outcome);
        } catch (...) {
          const bool lost = is_loss(std::current_exception());
          std::this_thread::sleep_for(generation.notice);
          done_[static_cast<std::size_t>(rank)] = kNeverWaitedFor;
          wait_for_the_others(generation.noticed_after);
          const std::lock_guard lock(mutex);
          if (!lost && !unexpected) unexpected = std::current_exception();
          outcome.interrupted = true;
          for (const auto& other : factories) other->abort();
        }
        if (process.generation == number) {
          process.steps_done = trainer->next_step();
          process.trainer = std::move(trainer);  // destroys the previous one
        }
        process.alive = !factory.dead();
        if (!process.alive) process.trainer.reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
    outcome.all_have_done = std::numeric_limits<int64_t>::max();
    for (int rank = 0; rank < size; ++rank) {
      Process& process = processes_.at(generation.members[static_cast<std::size_t>(rank)]);
      if (process.generation == number)
        process.factory = std::move(factories[static_cast<std::size_t>(rank)]);
      outcome.all_have_done = std::min(outcome.all_have_done, process.steps_done);
    }
    for (const int rank : generation.dead_with) {
      Process& process = processes_.at(generation.members[static_cast<std::size_t>(rank)]);
      process.alive = !outcome.interrupted;
      if (outcome.interrupted) process.trainer.reset();
    }
    if (unexpected) std::rethrow_exception(unexpected);
    return outcome;
  }

 private:
  // One process in one generation.
  void live(const Generation& generation, int rank, FaultyFactory& factory, Process& process,
            RankTrainer& trainer, std::mutex& mutex, Outcome& outcome) {
    const bool fails = generation.faults.contains(rank);
    if (fails && generation.fails_in_restore) factory.arm();
    const Restored restored = trainer.restore(process.trainer.get(), directory_);
    process.generation = static_cast<int>(jobs_.size()) - 1;
    {
      const std::lock_guard lock(mutex);
      outcome.restored.push_back(restored);
    }
    if (generation.restored) generation.restored(rank, trainer);
    const int64_t until = generation.until < 0 ? trainer.next_step() + generation.more : generation.until;
    while (trainer.next_step() < until) {
      if (fails && trainer.next_step() >= generation.fails_at) factory.arm();
      const StepResult result = trainer.step();
      done_[static_cast<std::size_t>(rank)] = trainer.next_step();
      if (generation.after) generation.after(rank, trainer, result);
      if (generation.save_every > 0 && trainer.next_step() % generation.save_every == 0)
        trainer.save(directory_, 2);
      require_no_error(trainer.saves(generation.wait_for_saves));
    }
    require_no_error(trainer.saves(/*wait=*/true));
  }

  void wait_for_the_others(const std::map<int, int64_t>& steps) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    for (const auto& [rank, least] : steps)
      while (done_[static_cast<std::size_t>(rank)] < least && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  static void require_no_error(const std::vector<SaveResult>& saves) {
    for (const SaveResult& save : saves) {
      if (!save.error.empty()) throw std::runtime_error(save.error);
    }
  }

  static bool is_loss(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const CommError&) {
      return true;
    } catch (const Killed&) {
      return true;
    } catch (...) {
      return false;
    }
  }

  static constexpr int64_t kNeverWaitedFor = std::numeric_limits<int64_t>::max();

  const JobSpec job_;
  const TokenData& data_;
  const std::string plane_, directory_;
  std::vector<std::atomic<int64_t>> done_;  // steps of this generation, by rank
  std::list<TestJob> jobs_;                 // before its users
  std::map<int, Process> processes_;
};

}  // namespace sailor
