#include "planner/search/native/uniform_plans.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "planner/search/native/cut_layers.h"
#include "planner/search/native/recompute_levels.h"
#include "planner/search/native/shapes.h"
#include "planner/search/native/usual_ways.h"

namespace sailor::native {
namespace {

constexpr size_t kMostPools = 3;         // that one plan uses
constexpr size_t kMostShapes = 20'000;   // of the best estimates
constexpr int kChunks[] = {1, 2, 3, 4};  // interleaved

struct UniformShape {
  PlanTemplate plan;  // not cut yet; the class with the slowest GPUs first
  double estimate = 0;
};

class UniformPlans {
 public:
  UniformPlans(Scorer& scorer, const PlanFeatures& offered, bool groups)
      : scorer_(scorer),
        space_(scorer.space()),
        offered_(offered),
        groups_(groups),
        estimates_(space_),
        batch_(space_.context.job.training.global_batch) {
    const int limit = space_.context.framework.max_stages;
    most_stages_ = limit > 0 ? std::min(limit, space_.layers()) : space_.layers();
  }

  int64_t run() {
    for (size_t size = 1; size <= kMostPools; ++size) {
      std::vector<int> pools;
      list_sets(0, size, pools);
    }
    keep_best();
    for (const UniformShape& shape : shapes_) {
      if (scorer_.spent()) break;
      score(shape.plan);
    }
    return listed_;
  }

 private:
  struct Choice {                    // of all shapes of a set of pools
    std::vector<int> options, room;  // by pool: its replicas, and how many of them there is room for
    int microbatch = 1;
    Recompute recompute = Recompute::none;
    int pipelines = 1;
    int64_t microbatches = 1;  // of each pipeline
  };

  const std::string& type_of(int pool) const {
    const SpaceOption& option =
        space_.options[static_cast<size_t>(space_.pools[static_cast<size_t>(pool)].options.front())];
    return space_.kinds[option.kind].gpu_type;
  }
  // All zones of a type together stand for each of them.
  bool overlap(int a, int b) const {
    return (space_.pools[static_cast<size_t>(a)].joint || space_.pools[static_cast<size_t>(b)].joint) &&
           type_of(a) == type_of(b);
  }

  void list_sets(size_t from, size_t size, std::vector<int>& pools) {
    if (pools.size() == size) return list(pools);
    for (size_t p = from; p < space_.pools.size(); ++p) {
      const int pool = static_cast<int>(p);
      if (space_.pools[p].options.empty()) continue;
      if (std::any_of(pools.begin(), pools.end(), [&](int other) { return overlap(pool, other); })) continue;
      pools.push_back(pool);
      list_sets(p + 1, size, pools);
      pools.pop_back();
    }
  }

  // Replicas of one TP degree in all pools; nothing if a pool has none, or a link is unknown.
  bool fill_in(const std::vector<int>& pools, const ReplicaShape& replica, Choice& choice) const {
    choice.options.clear();
    choice.room.clear();
    for (const int pool : pools) {
      const SpacePool& of = space_.pools[static_cast<size_t>(pool)];
      const int option = space_.option_of(pool, replica);
      if (option < 0 || !space_.has_times(option, choice.microbatch)) return false;
      if (choice.recompute != Recompute::none && !space_.can_recompute(option, choice.recompute))
        return false;
      for (const int other : choice.options)
        if (!space_.linked(other, option)) return false;
      choice.options.push_back(option);
      choice.room.push_back(of.room_for(replica.gpus()));
      if (choice.room.back() == 0) return false;
    }
    return true;
  }

  void list(const std::vector<int>& pools) {
    std::set<ReplicaShape> replicas;
    for (const int option : space_.pools[static_cast<size_t>(pools.front())].options)
      replicas.insert(space_.options[static_cast<size_t>(option)].shape);
    for (const ReplicaShape& replica : replicas)
      for (const int size : space_.microbatches) {
        if (scorer_.spent() || batch_ % size != 0) continue;
        for (const Recompute mode : uniform_recompute(offered_)) {
          Choice choice;
          choice.microbatch = size;
          choice.recompute = mode;
          if (fill_in(pools, replica, choice)) list_pipelines(choice);
        }
      }
  }

  // Every pipeline takes as many microbatches as any other.
  void list_pipelines(Choice& choice) {
    const int64_t total = batch_ / choice.microbatch;
    int64_t room = 0;
    for (const int groups : choice.room) room += groups;
    for (int64_t pipelines = std::min(total, room); pipelines > 0; --pipelines) {
      scorer_.count(1);
      if (total % pipelines != 0) continue;
      choice.pipelines = static_cast<int>(pipelines);
      choice.microbatches = total / pipelines;
      if (choice.options.size() == 1)
        for (int stages = 1; stages <= std::min(most_stages_, choice.room[0] / choice.pipelines); ++stages)
          add_spanning(choice, {stages});
      else
        list_several(choice);
    }
  }

  void list_several(const Choice& choice) {
    std::set<std::vector<int>> known;
    for (const int quarters : {4, 3, 2, 1}) {
      std::vector<int> groups;
      for (const int room : choice.room)
        groups.push_back(std::max(1, room / choice.pipelines * quarters / 4));
      if (known.insert(groups).second) add_spanning(choice, groups);
    }
    for (int stages = 1; stages <= most_stages_; ++stages)
      if (!add_beside(choice, stages)) break;
  }

  // Pipelines of that many stages in each of the pools, one pool after the other, in both directions.
  void add_spanning(const Choice& choice, const std::vector<int>& groups) {
    int stages = 0;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (choice.pipelines * groups[i] > choice.room[i]) return;
      stages += groups[i];
    }
    if (stages > most_stages_) return;
    TemplateShape shape = shape_of(choice);
    shape.pipelines = choice.pipelines;
    shape.num_parts = groups.size();
    for (size_t i = 0; i < groups.size(); ++i) shape.parts[i] = {choice.options[i], groups[i]};
    for (int direction = 0; direction < (groups.size() > 1 ? 2 : 1); ++direction) {
      for (const int chunks : kChunks) {
        if (chunks > 1 && (!offered_.contains(PlanFeature::interleave) || stages < 2 ||
                           choice.microbatches % stages != 0 || chunks * stages > space_.layers()))
          break;
        shape.interleave = chunks;
        add({template_of(space_, shape), estimate(shape, choice)});
      }
      std::reverse(shape.parts.begin(), shape.parts.begin() + static_cast<std::ptrdiff_t>(groups.size()));
    }
  }

  // Pipelines of that many stages side by side, of the fastest GPUs as many as possible. False if there is no
  // room for them.
  bool add_beside(const Choice& choice, int stages) {
    std::vector<size_t> order(choice.options.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto model_s = [&](size_t i) {
      return estimates_.model_s(choice.options[i], choice.microbatch, choice.recompute);
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return model_s(a) < model_s(b); });
    int left = choice.pipelines;
    UniformShape out;
    for (size_t n = 0; n < order.size(); ++n) {
      const size_t i = order[n];
      // One at least in each pool: fewer pools are another set.
      const int others = static_cast<int>(order.size() - n) - 1;
      TemplateShape shape = shape_of(choice);
      shape.pipelines = std::min(choice.room[i] / stages, left - others);
      if (shape.pipelines < 1) return false;
      left -= shape.pipelines;
      shape.parts[0] = {choice.options[i], stages};
      shape.num_parts = 1;
      out.estimate = std::max(out.estimate, estimate(shape, choice));
      PlanTemplate one = template_of(space_, shape);
      one.classes[0].microbatches = choice.microbatches * shape.pipelines;
      if (n == 0)
        out.plan = std::move(one);
      else  // the slowest first
        out.plan.classes.insert(out.plan.classes.begin(), std::move(one.classes[0]));
    }
    if (left > 0) return false;
    add(std::move(out));
    return true;
  }

  static TemplateShape shape_of(const Choice& choice) {
    TemplateShape shape;
    shape.microbatch = choice.microbatch;
    shape.recompute = choice.recompute;
    return shape;
  }

  double estimate(const TemplateShape& shape, const Choice& choice) {
    scorer_.count(16);
    const double seconds =
        estimates_.iteration_s(shape, static_cast<double>(choice.microbatches), choice.pipelines);
    return scorer_.goal().value(seconds, seconds * estimates_.busy_per_s(shape));
  }

  void add(UniformShape shape) {
    ++listed_;
    shapes_.push_back(std::move(shape));
    if (shapes_.size() >= 2 * kMostShapes) keep_best();
  }

  void keep_best() {
    std::stable_sort(shapes_.begin(), shapes_.end(),
                     [](const UniformShape& a, const UniformShape& b) { return a.estimate < b.estimate; });
    shapes_.resize(std::min(shapes_.size(), kMostShapes));
  }

  // Cuts the first class, and all others as that one.
  bool cut(PlanTemplate& of, bool by_speed) {
    if (!(by_speed ? cut_by_speed(space_, of, 0) : cut_layers(scorer_, of, 0, false))) return false;
    for (size_t c = 1; c < of.classes.size(); ++c)
      for (size_t i = 0; i < of.classes[c].stages.size(); ++i)
        of.classes[c].stages[i].end_layer = of.classes[0].stages[i].end_layer;
    return true;
  }

  void score(PlanTemplate of) {
    for (const Zero zero : zero_degrees_of(space_, offered_, of)) {
      of.zero = zero;
      score_cuts(of);
      PlanTemplate grouped = of;
      grouped.zero = std::max(zero, space_.context.framework.zero);
      if (!groups_ || grouped.zero == Zero::none) continue;
      for (const int group : zero_groups_to_try(space_, grouped)) {
        grouped.zero_group = group;
        score_cuts(grouped);
      }
    }
  }

  void score_cuts(PlanTemplate of) {
    bool any = false;
    for (const bool by_speed : {false, true}) {
      if (!cut(of, by_speed)) continue;
      any = true;
      PlanTemplate settled = of;
      recompute_some(space_, scorer_.model(), settled);
      score_placed(scorer_, settled, {.thorough = true});
      if (of.classes[0].stages.size() == 1) break;
    }
    if (!any) ++scorer_.rejected["memory"];
  }

  Scorer& scorer_;
  const Space& space_;
  const PlanFeatures& offered_;
  const bool groups_;
  Estimates estimates_;
  const int64_t batch_;
  int most_stages_ = 1;
  std::vector<UniformShape> shapes_;
  int64_t listed_ = 0;
};

}  // namespace

int64_t score_uniform_plans(Scorer& scorer, const PlanFeatures& offered, bool groups) {
  return UniformPlans(scorer, offered, groups).run();
}

}  // namespace sailor::native
