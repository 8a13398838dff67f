#include "planner/search/improvement/zone_filling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>

#include "planner/search/improvement/random_numbers.h"

namespace sailor {
namespace {

constexpr double kFirstTemperature = 6e-3, kLastTemperature = 1e-4;  // relative to the energy

class ZoneFill {
 public:
  ZoneFill(const AssignmentProblem& problem, const Layout& layout, BlockCosts& costs,
           const BlockEnergy& energy)
      : p_(problem), resources_(problem.costs.resources()), costs_(costs), energy_(energy) {
    for (const Layout::Stage& stage : layout.stages) {
      // Replicas by kind, in the order in which they come.
      std::vector<std::pair<int, int>> shares;
      for (const Layout::Run& run : stage.runs) {
        const int kind = costs.alike(costs.index_of(run.option)).front();
        const auto known = std::find_if(shares.begin(), shares.end(),
                                        [&](const auto& share) { return share.first == kind; });
        if (known == shares.end())
          shares.emplace_back(kind, run.replicas);
        else
          known->second += run.replicas;
      }
      shares_.push_back(std::move(shares));
    }
    std::set<std::string> names;
    for (const Option& option : resources_.options) names.insert(option.zone);
    for (const Option& option : resources_.options)
      zone_of_.push_back(static_cast<int>(std::distance(names.begin(), names.find(option.zone))));
    zones_.resize(names.size());
    std::iota(zones_.begin(), zones_.end(), 0);
    stages_.resize(shares_.size());
    std::iota(stages_.begin(), stages_.end(), 0);
    backwards_.assign(shares_.size(), false);
  }

  PipelineBlocks run(int steps, const std::function<bool()>& expired) {
    PipelineBlocks best;
    double best_energy = std::numeric_limits<double>::infinity(), energy = best_energy;
    for (int step = 0; step < steps; ++step) {
      if (step % 256 == 0 && expired()) break;
      const auto stages = stages_;
      const auto zones = zones_;
      const auto backwards = backwards_;
      if (step > 0) move();
      const PipelineBlocks blocks = filled();
      double e = std::numeric_limits<double>::infinity();
      if (!blocks.empty()) e = energy_(costs_.score(blocks), costs_.excess(blocks));
      const auto temperature = [&] {
        return best_energy * kFirstTemperature *
               std::pow(kLastTemperature / kFirstTemperature, step / double(steps));
      };
      if (e <= energy || (std::isfinite(e) && random_.fraction() < std::exp((energy - e) / temperature()))) {
        energy = e;
      } else {
        stages_ = stages;
        zones_ = zones;
        backwards_ = backwards;
      }
      if (e < best_energy) {
        best_energy = e;
        best = blocks;
      }
    }
    return best;
  }

 private:
  void move() {
    const size_t n = stages_.size();
    switch (random_.below(4)) {
      case 0:
        std::swap(stages_[random_.below(n)], stages_[random_.below(n)]);
        break;
      case 1: {
        const int from = random_.below(n), to = random_.below(n);
        const size_t stage = stages_[from];
        stages_.erase(stages_.begin() + from);
        stages_.insert(stages_.begin() + to, stage);
        break;
      }
      case 2:
        std::swap(zones_[random_.below(zones_.size())], zones_[random_.below(zones_.size())]);
        break;
      default: {
        const int i = random_.below(n);
        backwards_[i] = !backwards_[i];
      }
    }
  }

  PipelineBlocks filled() {
    left_.assign(resources_.capacity.begin(), resources_.capacity.end());
    runs_.assign(shares_.size(), {});
    for (size_t i : stages_) {
      for (const auto& [kind, replicas] : shares_[i]) {
        int open = replicas;
        for (const int zone : zones_)
          for (int o : costs_.alike(kind)) {
            const int option = costs_.option(o);
            if (zone_of_[option] != zone) continue;
            int64_t n = open;
            for (size_t c = 0; c < left_.size(); ++c)
              if (resources_.use[option][c] > 0) n = std::min(n, left_[c] / resources_.use[option][c]);
            if (n <= 0) continue;
            for (size_t c = 0; c < left_.size(); ++c) left_[c] -= n * resources_.use[option][c];
            runs_[i].emplace_back(o, static_cast<int>(n));
            open -= static_cast<int>(n);
          }
        if (open > 0) return {};
      }
      if (backwards_[i]) std::reverse(runs_[i].begin(), runs_[i].end());
    }
    // A new block wherever a run ends.
    PipelineBlocks blocks;
    std::vector<size_t> at(runs_.size(), 0);
    for (int done = 0; done < p_.replicas;) {
      PipelineBlock block;
      block.columns.emplace_back();
      block.times = p_.replicas;
      for (size_t i = 0; i < runs_.size(); ++i) {
        block.columns[0].push_back(runs_[i][at[i]].first);
        block.times = std::min(block.times, runs_[i][at[i]].second);
      }
      for (size_t i = 0; i < runs_.size(); ++i)
        if ((runs_[i][at[i]].second -= block.times) == 0) ++at[i];
      done += block.times;
      blocks.push_back(std::move(block));
    }
    return blocks;
  }

  const AssignmentProblem& p_;
  const Resources& resources_;
  BlockCosts& costs_;
  const BlockEnergy& energy_;
  std::vector<std::vector<std::pair<int, int>>> shares_;  // by stage: one option of a kind, replicas
  std::vector<int> zone_of_;                              // by option of the resources
  std::vector<int> zones_;                                // in the order in which they are filled
  std::vector<size_t> stages_;
  std::vector<bool> backwards_;
  std::vector<int64_t> left_;
  std::vector<std::vector<std::pair<int, int>>> runs_;
  RandomNumbers random_;
};

}  // namespace

PipelineBlocks fill_zones(const AssignmentProblem& problem, const Layout& layout, BlockCosts& costs,
                          const BlockEnergy& energy, int steps, const std::function<bool()>& expired) {
  return ZoneFill(problem, layout, costs, energy).run(steps, expired);
}

}  // namespace sailor
