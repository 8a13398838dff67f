#include "tests/oracle/enumerate.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "tests/oracle/score.h"
#include "tests/oracle/tables.h"

namespace sailor::oracle {
namespace {

constexpr int kMostShards = 4;  // the published formula's

// One (microbatch, cut, D): all grids and all their orders.
class GridSearch {
 public:
  GridSearch(const Problem& problem, Pools& pools, const Ways& ways, int microbatch, std::vector<int> cuts,
             int replicas, Enumeration& out)
      : problem_(problem),
        pools_(pools),
        ways_(ways),
        microbatch_(microbatch),
        cuts_(std::move(cuts)),
        P_(static_cast<int>(cuts_.size()) - 1),
        D_(replicas),
        out_(out) {
    const int64_t each = static_cast<int64_t>(microbatch) * replicas;
    rounds_ = static_cast<double>((problem.global_batch + each - 1) / each);
  }

  void run() {
    if (!prepare()) return;
    set_cell(0, 0, false);
  }

 private:
  struct Stage {
    std::vector<int> usable;        // ways that hold the layers
    std::vector<double> compute_s;  // by way
    double least_s = kNever, least_usd_per_s = kNever, least_sync_s = 0;
    // The least that a replica's gradient sync with any neighbour takes, by [shard][pool].
    std::vector<std::vector<double>> nearest_s;
    // Of the replicas that stand.
    double compute = 0, activation = 0, gradient = 0, sync = 0;
    int region = -1, shard = kMostShards;
    std::vector<int> pools;
  };

  bool prepare() {
    stages_.resize(P_);
    for (int i = 0; i < P_; ++i) {
      Stage& stage = stages_[i];
      for (int way = 0; way < ways_.size(); ++way) {
        stage.compute_s.push_back(ways_.compute_s(way, cuts_[i], cuts_[i + 1], P_ - i));
        if (stage.compute_s.back() == kNever) continue;
        stage.usable.push_back(way);
        stage.least_s = std::min(stage.least_s, stage.compute_s.back());
        stage.least_usd_per_s = std::min(stage.least_usd_per_s, ways_.at(way).usd_per_s);
      }
      if (stage.usable.empty()) return false;
      if (D_ > 1) find_nearest(i);
    }
    least_rest_.assign(static_cast<size_t>(P_ * D_ + 1), 0);
    for (int cell = P_ * D_ - 1; cell >= 0; --cell)
      least_rest_[cell] = least_rest_[cell + 1] + stages_[cell % P_].least_usd_per_s;
    grid_.assign(D_, std::vector<int>(P_));
    groups_.assign(pools_.list().size(), std::vector<int>(pools_.degrees().size(), 0));
    of_type_.assign(problem_.types.size(), 0);
    return true;
  }

  void find_nearest(int i) {
    Stage& stage = stages_[i];
    std::set<int> pools;
    for (int way : stage.usable) pools.insert(ways_.at(way).pool);
    stage.nearest_s.assign(kMostShards + 1, std::vector<double>(pools_.list().size(), kNever));
    for (int shard = 1; shard <= kMostShards; ++shard)
      for (int from : pools)
        for (int to : pools) {
          if (pools_.list()[from].region != pools_.list()[to].region) continue;
          const double s = pools_.sync_s(cuts_[i], cuts_[i + 1], D_, shard, from, to);
          for (int end : {from, to}) stage.nearest_s[shard][end] = std::min(stage.nearest_s[shard][end], s);
        }
    stage.least_sync_s = kNever;
    for (int pool : pools)
      stage.least_sync_s = std::min(stage.least_sync_s, stage.nearest_s[kMostShards][pool]);
  }

  // What the sync of a stage takes at least: every replica has a neighbour, and more replicas can only mean
  // fewer shards.
  double least_sync_s(const Stage& stage) const {
    double s = stage.least_sync_s;
    if (D_ > 1)
      for (int pool : stage.pools) s = std::max(s, stage.nearest_s[stage.shard][pool]);
    return s;
  }

  double sync_bound_s() const {
    double s = 0;
    for (const Stage& stage : stages_) s = std::max(s, least_sync_s(stage));
    return s;
  }

  // Time without gradient sync, of the known parts and the minimum of the others.
  double pipeline_s(bool first_pipeline, int set_stages) const {
    double bottleneck = 0, sum = 0;
    for (int i = 0; i < P_; ++i) {
      const Stage& stage = stages_[i];
      const double compute = first_pipeline && i >= set_stages ? stage.least_s : stage.compute;
      const double s = compute + stage_comm_s(i, P_, stage.activation, stage.gradient);
      bottleneck = std::max(bottleneck, s);
      sum += s;
    }
    return (rounds_ - 1) * bottleneck + sum + update_;
  }

  bool take(int way, int sign) {
    const Way& w = ways_.at(way);
    const int type = pools_.list()[w.pool].type, limit = problem_.types[type].max_gpus;
    groups_[w.pool][w.degree] += sign;
    of_type_[type] += sign * w.tp;
    return (limit < 0 || of_type_[type] <= limit) && pools_.fits(w.pool, groups_[w.pool]);
  }

  // `above`: this pipeline is already greater than the one before, in the order of ways.
  void set_cell(int j, int i, bool above) {
    if (j == D_) {
      ++out_.grids;
      order_pipelines();
      return;
    }
    if (i == P_) {
      set_cell(j + 1, 0, false);
      return;
    }
    Stage& stage = stages_[i];
    const int cell = j * P_ + i;
    for (int way : stage.usable) {
      if (j > 0 && !above && way < grid_[j - 1][i]) continue;
      const PoolOfGpus& pool = pools_.list()[ways_.at(way).pool];
      if (j > 0 && pool.region != stage.region) continue;
      if (take(way, 1)) {
        ++out_.partial_grids;
        const double compute = stage.compute, activation = stage.activation, gradient = stage.gradient;
        const int region = stage.region, shard = stage.shard;
        const double activation_before = i > 0 ? stages_[i - 1].activation : 0, update = update_,
                     rate = usd_per_s_, messages = messages_usd_;
        stage.region = pool.region;
        stage.shard = std::min(shard, ways_.at(way).tp);
        stage.pools.push_back(ways_.at(way).pool);
        stage.compute = std::max(stage.compute, stage.compute_s[way]);
        update_ = std::max(update_, ways_.update_s(way, cuts_[i]));
        usd_per_s_ += ways_.at(way).usd_per_s;
        if (i > 0) connect(grid_[j][i - 1], way, i);
        grid_[j][i] = way;
        const double s = pipeline_s(j == 0, i + 1) + sync_bound_s();
        if (!out_.front.covers(s, s * (usd_per_s_ + least_rest_[cell + 1]) + messages_usd_))
          set_cell(j, i + 1, above || j == 0 || way > grid_[j - 1][i]);
        stage.compute = compute;
        stage.activation = activation;
        stage.gradient = gradient;
        stage.region = region;
        stage.shard = shard;
        stage.pools.pop_back();
        if (i > 0) stages_[i - 1].activation = activation_before;
        update_ = update;
        usd_per_s_ = rate;
        messages_usd_ = messages;
      }
      take(way, -1);
    }
  }

  // Messages between stage i - 1 and stage i of one pipeline.
  void connect(int upstream, int way, int i) {
    Stage &from = stages_[i - 1], &to = stages_[i];
    from.activation = std::max(from.activation, ways_.message_s(cuts_[i] - 1, upstream, way));
    to.gradient = std::max(to.gradient, ways_.message_s(cuts_[i], way, upstream));
    const double price = problem_.egress_usd_per_gb[zone_of(upstream)][zone_of(way)];
    messages_usd_ += 1e-9 * rounds_ * 2 * price * ways_.message_bytes(cuts_[i] - 1, upstream);
  }

  int zone_of(int way) const { return pools_.list()[ways_.at(way).pool].zone; }

  // Pipelines that are alike to their neighbours.
  struct Alike {
    std::vector<int> pools;    // by stage
    std::vector<int> members;  // pipelines of the grid
    size_t used = 0;
  };

  void order_pipelines() {
    alike_.clear();
    std::map<std::vector<int>, size_t> index;

    for (int j = 0; j < D_; ++j) {
      std::vector<int> pools;
      for (int i = 0; i < P_; ++i) {
        pools.push_back(ways_.at(grid_[j][i]).pool);
      }
      const auto [entry, is_new] = index.emplace(pools, alike_.size());
      if (is_new) alike_.push_back({pools, {}, 0});
      alike_[entry->second].members.push_back(j);
    }
    order_.clear();
    next_pipeline(pipeline_s(false, P_), 0, 0);
  }

  double ring_usd(const Alike& from, const Alike& to) const {
    double usd = 0;
    for (int i = 0; i < P_; ++i)
      usd += problem_.egress_usd_per_gb[pools_.list()[from.pools[i]].zone][pools_.list()[to.pools[i]].zone] *
             pools_.stage_bytes(cuts_[i], cuts_[i + 1]) / D_ * 2 * (D_ - 1);
    return 1e-9 * usd;
  }

  void next_pipeline(double without_sync_s, double sync_s, double ring) {
    if (static_cast<int>(order_.size()) == D_) {
      ++out_.orders;
      if (D_ > 1) ring += ring_usd(alike_[order_.back()], alike_[order_.front()]);
      const double s = without_sync_s + sync_s, usd = s * usd_per_s_ + messages_usd_ + ring;
      if (!out_.front.covers(s, usd)) out_.front.add({s, usd, plan()});
      return;
    }
    for (size_t next = 0; next < alike_.size(); ++next) {
      Alike& pipeline = alike_[next];
      if (pipeline.used == pipeline.members.size()) continue;
      double sync = sync_s, usd = ring;
      if (!order_.empty()) {
        const Alike& last = alike_[order_.back()];
        for (int i = 0; i < P_; ++i)
          sync = std::max(sync, pools_.sync_s(cuts_[i], cuts_[i + 1], D_, stages_[i].shard, last.pools[i],
                                              pipeline.pools[i]));
        usd += ring_usd(last, pipeline);
      }
      const double s = without_sync_s + sync;
      if (out_.front.covers(s, s * usd_per_s_ + messages_usd_ + usd)) continue;
      ++pipeline.used;
      order_.push_back(next);
      next_pipeline(without_sync_s, sync, usd);
      order_.pop_back();
      --pipeline.used;
    }
  }

  GridPlan plan() const {
    GridPlan plan;
    plan.microbatch = microbatch_;
    plan.cuts = cuts_;
    std::vector<size_t> used(alike_.size(), 0);
    for (size_t which : order_) {
      std::vector<Cell> pipeline;
      for (int way : grid_[alike_[which].members[used[which]++]]) {
        const PoolOfGpus& pool = pools_.list()[ways_.at(way).pool];
        pipeline.push_back({pool.type, pool.zone, ways_.at(way).tp});
      }
      plan.pipelines.push_back(std::move(pipeline));
    }
    return plan;
  }

  const Problem& problem_;
  Pools& pools_;
  const Ways& ways_;
  const int microbatch_;
  const std::vector<int> cuts_;
  const int P_, D_;
  double rounds_ = 0;  // microbatches of the busiest pipeline
  Enumeration& out_;

  std::vector<Stage> stages_;
  std::vector<double> least_rest_;  // USD/s of the cells from one on
  std::vector<std::vector<int>> grid_;
  std::vector<std::vector<int>> groups_;  // [pool][degree]
  std::vector<int> of_type_;
  double update_ = 0, usd_per_s_ = 0, messages_usd_ = 0;
  std::vector<Alike> alike_;
  std::vector<size_t> order_;
};

// The sums were taken in another order than the judge of single plans takes them.
void check(const Problem& problem, const FrontPoint& point) {
  const std::string why = violation(problem, point.plan);
  if (!why.empty()) throw std::logic_error("the enumeration made a plan that does not count: " + why);
  const Score s = score(problem, point.plan);
  const auto differ = [](double a, double b) { return !(std::abs(a - b) <= 1e-11 * std::abs(b)); };
  if (differ(point.iteration_s, s.iteration_s) || differ(point.usd, s.usd))
    throw std::logic_error("the enumeration scores a plan unlike the judge: " +
                           to_string(problem, point.plan));
}

}  // namespace

Enumeration enumerate(const Problem& problem) {
  Enumeration out;
  Pools pools(problem);
  std::set<int> microbatches;
  for (const TypeOfGpu& type : problem.types)
    for (const auto& [cell, times] : type.times) microbatches.insert(cell.first);
  int gpus = 0;
  for (const PoolOfGpus& pool : pools.list())
    for (int free : pool.free_by_node) gpus += free;
  for (int microbatch : microbatches) {
    const Ways ways(problem, pools, microbatch);
    const auto most_replicas =
        static_cast<int>(std::min<int64_t>(gpus, (problem.global_batch + microbatch - 1) / microbatch));
    for (int stages = 1; stages <= std::min(problem.layers, gpus); ++stages)
      for (unsigned mask = 0; mask < (1u << (problem.layers - 1)); ++mask) {
        if (__builtin_popcount(mask) != stages - 1) continue;
        std::vector<int> cuts(1, 0);
        for (int layer = 1; layer < problem.layers; ++layer)
          if ((mask >> (layer - 1) & 1u) != 0) cuts.push_back(layer);
        cuts.push_back(problem.layers);
        for (int replicas = std::min(most_replicas, gpus / stages); replicas >= 1; --replicas)
          GridSearch(problem, pools, ways, microbatch, cuts, replicas, out).run();
      }
  }
  for (const FrontPoint& point : out.front.points()) check(problem, point);
  return out;
}

}  // namespace sailor::oracle
