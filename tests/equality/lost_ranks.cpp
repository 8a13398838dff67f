#include "tests/equality/lost_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <set>

#include "planner/process/scratch_directory.h"
#include "tests/unit/trainer/elastic_training.h"

namespace sailor::equality {
namespace {

using Random = std::mt19937_64;

const char* to_string(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::dies_before:
      return "dies before";
    case Fault::Kind::dies_after:
      return "dies after";
    case Fault::Kind::loses_result:
      return "loses the result of";
  }
  return "?";
}

// Ways of the plan's messages: forward and backward, sums, the commit, values on their way back (ZeRO-1,
// whose sums come first), saving.
Fault draw_fault(Random& random) {
  constexpr const char* kWays[] = {"link/", "tp/", "gradients/", "gradients/", "world", "world", "saver", ""};
  Fault fault;
  fault.communicator = kWays[random() % std::size(kWays)];
  fault.kind = static_cast<Fault::Kind>(between(random, 0, 2));
  const int most = fault.communicator == "world" ? 1 : fault.communicator == "saver" ? 40 : 12;
  fault.operation = between(random, 0, most);
  return fault;
}

// Do the ranks of `alive` have the state of every layer, according to the plan? With ZeRO-1 a rank has parts
// that no other rank has.
bool full_copy_survives(const Plan& plan, const std::set<int>& alive) {
  const RankLayout layout(plan);
  if (static_cast<int>(alive.size()) == layout.size()) return true;
  if (shards_optimizer(plan.zero)) return false;
  int shards = 1;
  for (const RankSlot& slot : layout.slots()) shards = std::lcm(shards, slot.shape.tp);
  const int layers = plan.pipelines.front().stages.back().end_layer;
  for (int layer = 0; layer < layers; ++layer) {
    for (int shard = 0; shard < shards; ++shard) {
      bool held = false;
      for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
        const std::vector<PlanStage>& stages = plan.pipelines[p].stages;
        for (std::size_t s = 0; s < stages.size(); ++s) {
          if (layer >= stages[s].first_layer && layer < stages[s].end_layer)
            held = held || alive.contains(layout.base(static_cast<int>(p), static_cast<int>(s)) +
                                          shard / (shards / stages[s].shape.tp));
        }
      }
      if (!held) return false;
    }
  }
  return true;
}

// The processes of the next generation, by rank: of those that are left, and joiners if these are not enough.
std::vector<int> draw_members(Random& random, std::vector<int> alive, int ranks, int& next_process) {
  for (std::size_t i = alive.size(); i > 1; --i) std::swap(alive[i - 1], alive[random() % i]);
  if (random() % 4 == 0 && alive.size() > 1) alive.pop_back();  // its place goes to one that joins
  while (static_cast<int>(alive.size()) < ranks) alive.push_back(next_process++);
  alive.resize(static_cast<std::size_t>(ranks));
  for (std::size_t i = alive.size(); i > 1; --i) std::swap(alive[i - 1], alive[random() % i]);
  return alive;
}

// A generation whose steps are compared with the reference.
class ComparedGeneration {
 public:
  ComparedGeneration(const Case& c, const Plan& plan, const std::vector<ReferenceStep>& reference)
      : comparisons_(static_cast<std::size_t>(num_ranks(plan))) {
    generation.plan = plan;
    generation.restored = [&, this](int rank, RankTrainer& trainer) {
      auto comparison = std::make_unique<Comparison>(c, generation.plan, rank, trainer);
      comparison->set_initial_values();
      comparisons_[static_cast<std::size_t>(rank)] = std::move(comparison);
    };
    generation.after = [&, this](int rank, RankTrainer&, const StepResult& result) {
      comparisons_[static_cast<std::size_t>(rank)]->add(result,
                                                        reference[static_cast<std::size_t>(result.step)]);
    };
  }

  void add_to(Outcome& all) const {
    for (const auto& comparison : comparisons_) {
      if (comparison) all.add(comparison->outcome());
    }
  }

  ElasticTraining::Generation generation;

 private:
  std::vector<std::unique_ptr<Comparison>> comparisons_;  // by rank
};

}  // namespace

LossesOutcome train_with_losses(const CaseOptions& options, const Case& c, const std::string& plane,
                                const std::vector<ReferenceStep>& reference) {
  constexpr int kSaveEvery = 5;
  Random random(options.seed * 49979687 + static_cast<uint64_t>(options.index));
  const ScratchDirectory directory;
  // Of one run: so a rank takes the lock of one that left with it.
  setenv("SAILOR_RUN_DIRECTORY", directory.path().c_str(), 1);
  const TokenData data = c.data();
  JobSpec job = c.job;
  job.checkpoint.memory_copies = static_cast<MemoryCopies>(between(random, 0, 2));
  ElasticTraining training(job, data, plane, directory.path());
  LossesOutcome result;
  std::vector<int> members = all_ranks(num_ranks(c.plan));
  int next_process = static_cast<int>(members.size());

  const auto run = [&](ComparedGeneration& compared) {
    ElasticTraining::Generation& generation = compared.generation;
    generation.members = members;
    generation.notice = std::chrono::microseconds(between(random, 0, 2000));
    const ElasticTraining::Outcome outcome = training.run(generation);
    compared.add_to(result.outcome);
    for (const auto& [rank, fault] : generation.faults)
      result.story += fmt::format("rank {} of {} {} {}#{}; ", rank, members.size(), to_string(fault.kind),
                                  fault.communicator, fault.operation);
    return outcome;
  };
  const auto any_rank = [&] { return between(random, 0, static_cast<int>(members.size()) - 1); };

  ComparedGeneration first(c, c.plan, reference);
  first.generation.until = c.steps;
  first.generation.fails_at = between(random, 0, c.steps - 6);
  first.generation.save_every = kSaveEvery;
  for (int lost = random() % 4 == 0 ? 2 : 1; lost > 0; --lost)
    first.generation.faults[any_rank()] = draw_fault(random);
  const int64_t all_had_done = run(first).all_have_done;

  // Which ranks of the first plan are among the next generation's processes with the state they then had.
  const std::vector<int> of_first = members;
  const auto full_copy_is_left = [&] {
    std::set<int> ranks;
    for (std::size_t rank = 0; rank < of_first.size(); ++rank) {
      const auto& process = training.process(of_first[rank]);
      if (process.alive && process.generation == 0 &&
          std::find(members.begin(), members.end(), of_first[rank]) != members.end())
        ranks.insert(static_cast<int>(rank));
    }
    return full_copy_survives(c.plan, ranks);
  };

  // Sometimes another one is lost while the state is on its way.
  const Plan* last_plan = &*c.second_plan;
  if (random() % 3 == 0) {
    members = draw_members(random, training.survivors(), num_ranks(*c.second_plan), next_process);
    ComparedGeneration second(c, *c.second_plan, reference);
    second.generation.fails_in_restore = true;
    second.generation.faults[any_rank()] = {static_cast<Fault::Kind>(between(random, 0, 2)), "world",
                                            between(random, 0, 7)};
    run(second);
    last_plan = &*c.third_plan;
  }
  members = draw_members(random, training.survivors(), num_ranks(*last_plan), next_process);
  const bool full_copy = full_copy_is_left();
  ComparedGeneration last(c, *last_plan, reference);
  last.generation.more = c.steps;
  const ElasticTraining::Outcome outcome = run(last);
  if (outcome.interrupted || outcome.restored.size() != members.size())
    throw std::runtime_error("the last generation did not come to its end");

  const Restored& restored = outcome.restored.front();
  result.story += fmt::format("all had done {} steps, {} is left; on after {} from {}", all_had_done,
                              full_copy ? "a full copy" : "no full copy", restored.steps_done,
                              sailor::to_string(restored.from));
  for (const Restored& other : outcome.restored) {
    if (other.steps_done != restored.steps_done || other.from != restored.from)
      result.problem = "ranks disagree about where they go on from";
  }
  if (full_copy && (restored.from != Restored::From::peers || restored.steps_done < all_had_done))
    result.problem = "a full copy survived, and a step was lost";
  if (restored.steps_done + 2 * kSaveEvery < all_had_done)
    result.problem = "more was lost than since the last checkpoint";
  return result;
}

}  // namespace sailor::equality
