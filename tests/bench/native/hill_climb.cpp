#include "tests/bench/native/hill_climb.h"

#include <fmt/format.h>

#include "tests/bench/native/plan_moves.h"
#include "tests/bench/native/random_plan.h"

namespace sailor::bench {
namespace {

using oracle::Random;

struct Climber {
  Judge& judge;
  Random& random;
  Plan plan;
  Verdict verdict;

  void climb(int64_t simulations) {
    // Most draws make a move; where next to none does, the plan stays.
    constexpr int kDraws = 20;
    const int64_t last = judge.simulations() + simulations;
    for (int64_t draw = 0; draw < kDraws * simulations && judge.simulations() < last; ++draw) {
      std::optional<Plan> moved = random_move(judge.context(), judge.allowed(), plan, random);
      if (!moved) continue;
      const std::optional<Verdict> of_moved = judge.verdict(*moved);
      if (!of_moved || verdict.better_than(*of_moved)) continue;
      plan = std::move(*moved);
      verdict = *of_moved;
    }
  }
  std::optional<Rival> rival(std::string name) {
    if (!verdict.fits()) return std::nullopt;
    return Rival{std::move(name), std::move(plan), verdict.iteration_s};
  }
};

}  // namespace

std::optional<Rival> hill_climb(Judge& judge, const ClimbOptions& options) {
  std::optional<Rival> best;
  for (int start = 0; start < options.starts; ++start) {
    Random random(options.seed * 1000 + static_cast<uint64_t>(start));
    constexpr int kDraws = 50;
    for (int draw = 0; draw < kDraws; ++draw) {
      std::optional<Plan> plan = random_plan(judge.context(), judge.allowed(), random);
      const std::optional<Verdict> verdict = plan ? judge.verdict(*plan) : std::nullopt;
      if (!verdict) continue;
      Climber climber{judge, random, std::move(*plan), *verdict};
      climber.climb(options.simulations / options.starts);
      keep_faster(best, climber.rival(fmt::format("hill climb {}", start)));
      break;
    }
  }
  return best;
}

std::optional<Rival> climb_from(Judge& judge, const Rival& start, uint64_t seed, int64_t simulations) {
  Random random(seed);
  Climber climber{judge, random, start.plan, {start.iteration_s, 0}};
  climber.climb(simulations);
  if (climber.verdict.iteration_s >= start.iteration_s) return std::nullopt;
  return climber.rival("hill climb from " + start.name);
}

}  // namespace sailor::bench
