#include "planner/search/replica_mix.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace sailor {
namespace {

using Run = ReplicaMix::Run;

bool affordable(const ReplicaMix& mix, const Resources& resources) {
  for (size_t c = 0; c < resources.capacity.size(); ++c)
    if (mix.use[c] > resources.capacity[c]) return false;
  return true;
}

// C(options + replicas - 1, replicas), saturating at `limit` + 1.
int count_multisets(int options, int replicas, int limit) {
  double count = 1;
  for (int i = 1; i <= replicas; ++i) {
    count = count * (options - 1 + i) / i;
    if (count > limit) return limit + 1;
  }
  return static_cast<int>(count + 0.5);
}

class MixBuilder {
 public:
  MixBuilder(const StageCosts& costs, const Resources& resources, int replicas)
      : costs_(costs), resources_(resources), replicas_(replicas) {}

  void add(std::vector<Run> runs) {
    std::erase_if(runs, [](const Run& run) { return run.replicas == 0; });
    // Data parallelism stays inside a region.
    for (const Run& run : runs)
      if (resources_.options[run.option].region != resources_.options[runs.front().option].region) return;
    ReplicaMix mix = make_mix(resources_, std::move(runs));
    if (!affordable(mix, resources_)) return;
    std::vector<std::pair<int, int>> key;
    for (const Run& run : mix.runs) key.emplace_back(run.option, run.replicas);
    if (seen_.insert(key).second) mixes_.push_back(std::move(mix));
  }

  void pure() {
    for (int option : costs_.options()) add({{option, replicas_}});
  }

  void all_multisets(size_t next = 0, int left = -1, std::vector<Run> runs = {}) {
    if (left < 0) left = replicas_;
    if (left == 0) return add(runs);
    if (next == costs_.options().size()) return;
    for (int n = left; n >= 0; --n) {
      std::vector<Run> with = runs;
      if (n > 0) with.push_back({costs_.options()[next], n});
      all_multisets(next + 1, left - n, std::move(with));
    }
  }

  // One type and TP degree over the zones of a region. A pipeline may take `gpus` GPUs of each zone's pool in
  // all its stages; each zone then serves pool / gpus pipelines. The order of zones is the one whose slowest
  // seam sums gradients fastest.
  void zone_spreads() {
    std::map<std::tuple<std::string, std::string, int>, std::vector<int>> alike;
    for (int o : costs_.options()) {
      const Option& option = resources_.options[o];
      alike[{option.region, option.gpu_type, option.tp}].push_back(o);
    }
    for (const auto& [key, options] : alike) {
      if (options.size() < 2 || options.size() > 8) continue;
      const int tp = std::get<2>(key);
      for (unsigned subset = 1; subset < (1u << options.size()); ++subset) {
        std::vector<int> zones;
        for (size_t i = 0; i < options.size(); ++i)
          if (subset >> i & 1u) zones.push_back(options[i]);
        if (zones.size() < 2) continue;
        const std::vector<int> order = best_order(zones, tp);
        for (int gpus = tp; gpus <= 16 * tp; ++gpus) spread(order, gpus);
      }
    }
  }

  // Two options of one zone and unlike types: as many of the first as its pool gives to pipelines that take
  // `units` stages of it.
  void pairs() {
    for (int a : costs_.options())
      for (int b : costs_.options()) {
        const Option &first = resources_.options[a], &second = resources_.options[b];
        if (first.region != second.region || (first.pool == second.pool)) continue;
        for (int units = 1; units <= 2; ++units) {
          const int n = resources_.most_replicas(a) / units;
          if (n <= 0 || n >= replicas_) continue;
          add({{a, n}, {b, replicas_ - n}});
        }
      }
  }

  std::vector<ReplicaMix> take() { return std::move(mixes_); }

 private:
  // Every zone of the spread must be needed, otherwise a smaller one does the same with fewer seams.
  void spread(const std::vector<int>& order, int gpus) {
    std::vector<Run> runs;
    int left = replicas_, sum = 0, smallest = replicas_;
    for (int option : order) {
      const int room =
          resources_.pools[resources_.options[option].pool].gpus_in_groups_of(resources_.options[option].tp) /
          gpus;
      sum += room;
      smallest = std::min(smallest, room);
      runs.push_back({option, std::min(left, room)});
      left -= runs.back().replicas;
    }
    if (left == 0 && smallest > 0 && sum - smallest < replicas_) add(runs);
  }

  std::vector<int> best_order(const std::vector<int>& zones, int tp) const {
    std::vector<int> order = zones, best = zones;
    if (zones.size() > 6) return best;
    double best_s = std::numeric_limits<double>::infinity();
    do {
      double slowest = 0;
      for (size_t i = 0; i + 1 < order.size(); ++i)
        slowest = std::max(slowest, costs_.sync_s(order[i], order[i + 1], tp, 0, costs_.layers(), replicas_));
      if (slowest < best_s) {
        best_s = slowest;
        best = order;
      }
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
  }

  const StageCosts& costs_;
  const Resources& resources_;
  int replicas_;
  std::set<std::vector<std::pair<int, int>>> seen_;
  std::vector<ReplicaMix> mixes_;
};

}  // namespace

int ReplicaMix::option_of(int replica) const {
  for (const Run& run : runs) {
    if (replica < run.replicas) return run.option;
    replica -= run.replicas;
  }
  return runs.back().option;
}

ReplicaMix make_mix(const Resources& resources, std::vector<ReplicaMix::Run> runs) {
  ReplicaMix mix;
  mix.runs = std::move(runs);
  mix.use.assign(resources.capacity.size(), 0);
  mix.smallest_tp = resources.options[mix.runs.front().option].tp;
  std::set<std::pair<int, int>> neighbours;
  for (size_t r = 0; r < mix.runs.size(); ++r) {
    const auto& [option, replicas] = mix.runs[r];
    for (size_t c = 0; c < mix.use.size(); ++c) mix.use[c] += replicas * resources.use[option][c];
    mix.usd_per_s += replicas * resources.options[option].usd_per_s;
    mix.smallest_tp = std::min(mix.smallest_tp, resources.options[option].tp);
    if (replicas > 1) neighbours.insert({option, option});
    if (r + 1 < mix.runs.size()) neighbours.insert({option, mix.runs[r + 1].option});
    const int next = mix.runs[(r + 1) % mix.runs.size()].option;
    if (next != option) mix.ring.emplace_back(option, next);
  }
  mix.neighbours.assign(neighbours.begin(), neighbours.end());
  return mix;
}

std::vector<ReplicaMix> replica_mixes(const StageCosts& costs, const Resources& resources, int replicas,
                                      int exhaustive_limit, bool* exhaustive) {
  MixBuilder builder(costs, resources, replicas);
  builder.pure();
  const int options = static_cast<int>(costs.options().size());
  *exhaustive = count_multisets(options, replicas, exhaustive_limit) <= exhaustive_limit;
  if (*exhaustive) {
    builder.all_multisets();
  } else {
    builder.zone_spreads();
    builder.pairs();
  }
  return builder.take();
}

std::vector<std::pair<int, int>> facing_pairs(const ReplicaMix& upstream, const ReplicaMix& downstream) {
  std::set<std::pair<int, int>> pairs;
  size_t a = 0, b = 0;
  int left_a = upstream.runs[0].replicas, left_b = downstream.runs[0].replicas;
  while (true) {
    pairs.insert({upstream.runs[a].option, downstream.runs[b].option});
    const int step = std::min(left_a, left_b);
    left_a -= step;
    left_b -= step;
    if (left_a == 0 && ++a < upstream.runs.size()) left_a = upstream.runs[a].replicas;
    if (left_b == 0 && ++b < downstream.runs.size()) left_b = downstream.runs[b].replicas;
    if (a == upstream.runs.size() || b == downstream.runs.size()) break;
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace sailor
