#include "planner/search/native/seeds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "planner/search/native/compositions.h"
#include "planner/search/native/cut_layers.h"
#include "planner/search/native/usual_ways.h"

namespace sailor::native {
namespace {

constexpr int kSeedChunks[] = {1, 2, 3, 4};

}  // namespace

Seeds::Seeds(Scorer& scorer, const PlanFeatures& offered, const SeedOptions& options)
    : scorer_(scorer), space_(scorer.space()), offered_(offered), options_(options), estimates_(space_) {
  std::vector<std::pair<double, int>> speeds;
  for (size_t p = 0; p < space_.pools.size(); ++p) {
    const double speed = estimates_.speed(static_cast<int>(p));
    if (speed > 0) speeds.emplace_back(-speed, static_cast<int>(p));
    speed_.push_back(speed);
  }
  std::sort(speeds.begin(), speeds.end());
  for (const auto& [speed, pool] : speeds) by_speed_.push_back(pool);
}

// Sets of pools of one zone, and of types wherever they are; the larger a set, the later.
std::vector<Seeds::Pools> Seeds::sets() const {
  std::map<std::string, Pools> of_zone;
  std::map<std::string, int> of_type;
  for (const int pool : by_speed_) {
    const SpacePool& of = space_.pools[static_cast<size_t>(pool)];
    const StageKind& kind = space_.kinds[space_.options[static_cast<size_t>(of.options.front())].kind];
    if (!of.joint) of_zone[kind.zone].push_back(pool);
    if (of.joint || !of_type.contains(kind.gpu_type)) of_type[kind.gpu_type] = pool;
  }
  std::vector<Pools> families;
  Pools everywhere;
  for (const int pool : by_speed_)
    if (std::any_of(of_type.begin(), of_type.end(), [&](const auto& entry) { return entry.second == pool; }))
      everywhere.push_back(pool);
  families.push_back(std::move(everywhere));
  for (auto& [zone, pools] : of_zone) families.push_back(std::move(pools));
  // Types and zones in any combination.
  Pools single;
  for (const int pool : by_speed_)
    if (!space_.pools[static_cast<size_t>(pool)].joint) single.push_back(pool);
  if (families.size() > 2) families.push_back(std::move(single));
  std::set<Pools> known;
  std::vector<Pools> out;
  for (Pools& family : families) {
    if (family.size() > options_.most_pools) family.resize(options_.most_pools);
    for (unsigned mask = 1; mask < 1u << family.size(); ++mask) {
      Pools pools;
      for (size_t i = 0; i < family.size(); ++i)
        if ((mask >> i & 1u) != 0) pools.push_back(family[i]);
      if (pools.size() > 1 && known.insert(pools).second) out.push_back(std::move(pools));
    }
  }
  // Small ones first, of equals the fast ones.
  std::stable_sort(out.begin(), out.end(), [&](const Pools& a, const Pools& b) {
    return std::pair(a.size(), -speed_of(a)) < std::pair(b.size(), -speed_of(b));
  });
  return out;
}

void Seeds::keep_best(std::vector<TemplateShape>& shapes) const {
  const auto better = [](const TemplateShape& a, const TemplateShape& b) { return a.estimate < b.estimate; };
  std::stable_sort(shapes.begin(), shapes.end(), better);
  shapes.resize(std::min(shapes.size(), options_.most_shapes));
}

// In all zones of a type, but small enough for one of them: the same shape in that zone is no slower.
bool Seeds::fits_into_zone(const TemplateShape& shape) const {
  const SpaceOption& first = space_.options[static_cast<size_t>(shape.parts[0].option)];
  const SpacePool& pool = space_.pools[static_cast<size_t>(first.pool)];
  int gpus = 0;
  for (size_t i = 0; i < shape.num_parts; ++i) {
    const SpaceOption& option = space_.options[static_cast<size_t>(shape.parts[i].option)];
    if (!pool.joint || option.pool != first.pool) return false;
    gpus += shape.parts[i].groups * option.shape.gpus();
  }
  return gpus * shape.pipelines <= pool.zone_gpus;
}

void Seeds::add(TemplateShape shape, double most, std::vector<TemplateShape>& out) {
  const int64_t total = num_microbatches(space_.context.job.training.global_batch, shape.microbatch);
  scorer_.count(16);
  if (shape.groups() * shape.interleave > space_.layers() || total < shape.pipelines) return;
  if (fits_into_zone(shape)) return;
  if (!estimates_.may_fit(shape, zero_degrees(offered_).back())) {
    ++scorer_.rejected["memory"];
    return;
  }
  // Interleaved, microbatches go in rounds of as many as there are groups.
  const int64_t round = shape.interleave > 1 ? shape.groups() : 1;
  if (shape.interleave > 1 && (round < 2 || total % round != 0 || total / round < shape.pipelines)) return;
  const auto rounds = static_cast<double>((total / round + shape.pipelines - 1) / shape.pipelines * round);
  const double seconds = estimates_.iteration_s(shape, rounds, shape.pipelines);
  shape.estimate = scorer_.goal().value(seconds, seconds * estimates_.busy_per_s(shape));
  ++shapes_;
  if (shape.estimate > most) return;
  // The estimate does not depend on the order of the parts: of few parts all orders are tried, of many this
  // one and its reverse.
  const auto parts = shape.parts.begin(), end = parts + static_cast<ptrdiff_t>(shape.num_parts);
  if (shape.num_parts > options_.permuted_parts) {
    out.push_back(shape);
    std::reverse(parts, end);
    out.push_back(shape);
  } else {
    const auto before = [](const TemplateShape::Part& a, const TemplateShape::Part& b) {
      return a.option < b.option;
    };
    std::sort(parts, end, before);
    do out.push_back(shape);
    while (std::next_permutation(parts, end, before));
  }
  if (out.size() >= 2 * options_.most_shapes) keep_best(out);
}

void Seeds::add_interleaved(TemplateShape shape, double most, std::vector<TemplateShape>& out) {
  for (const int chunks : kSeedChunks) {
    if (chunks > 1 && !offered_.contains(PlanFeature::interleave)) return;
    shape.interleave = chunks;
    add(shape, most, out);
  }
}

void Seeds::list_one(int pool, int microbatch, std::vector<TemplateShape>& out) {
  if (scorer_.spent()) return;
  const SpacePool& of = space_.pools[static_cast<size_t>(pool)];
  const int64_t total = num_microbatches(space_.context.job.training.global_batch, microbatch);
  for (const int option : of.options) {
    if (!space_.has_times(option, microbatch)) continue;
    const int gpus = space_.options[static_cast<size_t>(option)].shape.gpus();
    const int room = of.room_for(gpus);
    for (const Recompute mode : uniform_recompute(offered_)) {
      if (mode != Recompute::none && !space_.can_recompute(option, mode)) continue;
      for (int stages = 1; stages <= std::min(room, space_.layers()); ++stages)
        for (const int pipelines : replica_counts(total, room / stages, of.node_gpus() / gpus)) {
          TemplateShape shape;
          shape.microbatch = microbatch;
          shape.recompute = mode;
          shape.pipelines = pipelines;
          shape.parts[0] = {option, stages};
          shape.num_parts = 1;
          add_interleaved(shape, kNever, out);
        }
    }
  }
}

// When a part of what is left of a share of the effort is spent: what is faster gets more of it.
int64_t Seeds::until(double share, double weight, double weights_left) const {
  const double left =
      share * static_cast<double>(scorer_.most_steps()) - static_cast<double>(scorer_.steps());
  return scorer_.steps() + static_cast<int64_t>(std::max(0.0, left) * weight / weights_left);
}

double Seeds::speed_of(const Pools& pools) const {
  double sum = 0;
  for (const int pool : pools) sum += speed_[static_cast<size_t>(pool)];
  return sum;
}

void Seeds::equal_pipelines() {
  const auto part = [&](double of_all) {
    return static_cast<int64_t>(of_all * static_cast<double>(scorer_.most_steps()));
  };
  std::vector<TemplateShape> shapes;
  for (const int pool : by_speed_)
    for (const int size : space_.microbatches) list_one(pool, size, shapes);
  score_best(shapes, scorer_.steps() + part(options_.one_pool));
  shapes.clear();
  for (const int pool : by_speed_) list_compositions({pool}, shapes);
  const int64_t listed = scorer_.steps() + part(options_.listing);
  for (const Pools& pools : sets()) {
    if (scorer_.steps() > listed || scorer_.spent()) break;
    list_spans(pools, shapes);
    list_compositions(pools, shapes);
  }
  score_best(shapes, scorer_.steps() + part(options_.unlike_stages));
}

std::set<int> Seeds::pools_of(const TemplateShape& shape) const {
  std::set<int> pools;
  for (size_t i = 0; i < shape.num_parts; ++i)
    pools.insert(space_.options[static_cast<size_t>(shape.parts[i].option)].pool);
  return pools;
}

void Seeds::score_best(std::vector<TemplateShape>& shapes, int64_t until) {
  if (scorer_.spent()) return;
  keep_best(shapes);
  scorer_.count(static_cast<int64_t>(shapes.size()));
  const auto kind_of = [this](const TemplateShape& shape) {
    std::vector<int> kind = {shape.microbatch, shape.interleave, static_cast<int>(shape.recompute)};
    const std::set<int> pools = pools_of(shape);
    kind.insert(kind.end(), pools.begin(), pools.end());
    if (shape.num_parts == 1) kind.push_back(-1 - shape.parts[0].option);
    return kind;
  };
  std::map<std::vector<int>, double> error;  // by kind: value by estimate, the least seen
  std::vector<char> scored(shapes.size(), 0);
  double best = kNever;
  // Where nothing fits for long, some more is spent.
  const int64_t at_most = until + options_.patience * std::max<int64_t>(0, until - scorer_.steps());
  const auto ends = [&] { return scorer_.spent() || scorer_.steps() > (best < kNever ? until : at_most); };
  const auto visit = [&](size_t i) {
    scored[i] = 1;
    const double value = score(template_of(space_, shapes[i]));
    best = std::min(best, value);
    if (!(value < kNever)) return;
    const auto [known, added] = error.try_emplace(kind_of(shapes[i]), value / shapes[i].estimate);
    if (!added) known->second = std::min(known->second, value / shapes[i].estimate);
  };
  // The best of each kind first: what the estimate thinks of kinds may be wrong.
  for (size_t i = 0; i < shapes.size() && !ends(); ++i) {
    if (shapes[i].estimate > options_.first_factor * best) break;
    if (!error.contains(kind_of(shapes[i]))) visit(i);
  }
  // Then by estimates: as they are, as the errors of their kinds suggest, and so for each set of pools.
  std::vector<double> corrected;
  for (const TemplateShape& shape : shapes) {
    const auto known = error.find(kind_of(shape));
    corrected.push_back(shape.estimate * (known == error.end() ? 1 : known->second));
  }
  struct Queue {
    const std::vector<double>* estimates = nullptr;
    double factor = 1;  // of the best value: no further
    std::vector<size_t> shapes;
    size_t next = 0;
  };
  std::vector<double> raw;
  for (const TemplateShape& shape : shapes) raw.push_back(shape.estimate);
  Queue by_estimate{&raw, options_.factor, {}, 0}, by_corrected{&corrected, options_.factor, {}, 0};
  by_estimate.shapes.resize(shapes.size());
  std::iota(by_estimate.shapes.begin(), by_estimate.shapes.end(), 0);
  by_corrected.shapes = by_estimate.shapes;
  std::stable_sort(by_corrected.shapes.begin(), by_corrected.shapes.end(),
                   [&](size_t a, size_t b) { return corrected[a] < corrected[b]; });
  std::map<std::set<int>, Queue> by_pools;
  for (const size_t i : by_corrected.shapes) {
    Queue& queue = by_pools[pools_of(shapes[i])];
    queue.estimates = &corrected;
    queue.factor = options_.first_factor;
    queue.shapes.push_back(i);
  }
  // Visits the next shape of a queue; false at its end.
  const auto advance = [&](Queue& queue) {
    while (queue.next < queue.shapes.size() && scored[queue.shapes[queue.next]] != 0) ++queue.next;
    if (queue.next == queue.shapes.size() || ends()) return false;
    const size_t i = queue.shapes[queue.next];
    if ((*queue.estimates)[i] > queue.factor * best) return false;
    visit(i);
    return true;
  };
  auto pools = by_pools.begin();
  for (bool any = true; any && !ends();) {
    any = false;
    for (size_t tries = 0; by_pools.size() > 2 && tries < by_pools.size() && !any; ++tries) {
      any = advance(pools->second);
      if (++pools == by_pools.end()) pools = by_pools.begin();
    }
    any = advance(by_estimate) || any;
    any = advance(by_corrected) || any;
  }
}

double Seeds::score(PlanTemplate of) {
  return score_usual_ways(scorer_, offered_, std::move(of), {options_.kept, false, options_.thorough});
}

void Seeds::list_spans(const Pools& pools, std::vector<TemplateShape>& out) {
  if (pools.size() > options_.spanned_pools) return;
  // TP degrees by pool, as a counter.
  std::vector<size_t> at(pools.size(), 0);
  for (const int size : space_.microbatches) {
    const int64_t total = num_microbatches(space_.context.job.training.global_batch, size);
    std::fill(at.begin(), at.end(), 0);
    while (!scorer_.spent()) {
      std::vector<int> options, room;
      bool possible = true;
      for (size_t i = 0; i < pools.size(); ++i) {
        const SpacePool& pool = space_.pools[static_cast<size_t>(pools[i])];
        const int option = pool.options[at[i]];
        possible =
            possible && space_.has_times(option, size) && (i == 0 || space_.linked(options.back(), option));
        options.push_back(option);
        const int gpus = space_.options[static_cast<size_t>(option)].shape.gpus();
        room.push_back(pool.room_for(gpus));
        possible = possible && room.back() > 0;
      }
      if (possible)
        for (const int pipelines : replica_counts(total, *std::min_element(room.begin(), room.end()), 1))
          for (const int quarters : {4, 3, 2, 1})
            for (const Recompute mode : uniform_recompute(offered_)) {
              TemplateShape shape;
              shape.microbatch = size;
              shape.recompute = mode;
              shape.pipelines = pipelines;
              shape.num_parts = pools.size();
              std::vector<int> groups;
              for (const int most : room) groups.push_back(std::max(1, most / pipelines * quarters / 4));
              // A layer each at least.
              while (std::accumulate(groups.begin(), groups.end(), 0) > space_.layers())
                --*std::max_element(groups.begin(), groups.end());
              for (size_t i = 0; i < options.size(); ++i) shape.parts[i] = {options[i], groups[i]};
              add_interleaved(shape, options_.first_factor * scorer_.best(), out);
            }
      size_t i = 0;
      while (i < pools.size() && ++at[i] == space_.pools[static_cast<size_t>(pools[i])].options.size())
        at[i++] = 0;
      if (i == pools.size()) break;
    }
  }
}

void Seeds::list_compositions(const Pools& pools, std::vector<TemplateShape>& out) {
  int most = std::numeric_limits<int>::max();
  for (const int pool : pools) most = std::min(most, space_.pools[static_cast<size_t>(pool)].gpus);
  const Zero zero = zero_degrees(offered_).back();
  for (const int size : space_.microbatches) {
    if (scorer_.spent()) return;
    const int64_t total = num_microbatches(space_.context.job.training.global_batch, size);
    for (const int pipelines : replica_counts(total, most, 1))
      for (const Recompute mode : uniform_recompute(offered_))
        for (const int chunks : kSeedChunks) {
          if (chunks > 1 && !offered_.contains(PlanFeature::interleave)) continue;
          TemplateShape of;
          of.microbatch = size;
          of.interleave = chunks;
          of.recompute = mode;
          of.pipelines = pipelines;
          scorer_.count(60);
          const double rounds = std::ceil(static_cast<double>(total) / pipelines);
          const double most_s = scorer_.most_iteration_s(options_.first_factor) / rounds / chunks;
          for (const TemplateShape& shape : compositions(estimates_, pools, of, zero, most_s, {}))
            if (is_linked(shape)) add(shape, options_.first_factor * scorer_.best(), out);
        }
  }
}

bool Seeds::is_linked(const TemplateShape& shape) const {
  for (size_t i = 0; i < shape.num_parts; ++i)
    for (size_t j = 0; j < i; ++j)
      if (!space_.linked(shape.parts[i].option, shape.parts[j].option)) return false;
  return true;
}

std::vector<TemplateShape> Seeds::shapes_for_mixing(int pool, int microbatch, double share, size_t most) {
  std::vector<TemplateShape> all;
  const SpacePool& of = space_.pools[static_cast<size_t>(pool)];
  const double total =
      share * static_cast<double>(num_microbatches(space_.context.job.training.global_batch, microbatch));
  for (const int option : of.options) {
    if (!space_.has_times(option, microbatch)) continue;
    const int room = of.room_for(space_.options[static_cast<size_t>(option)].shape.gpus());
    for (const Recompute mode : uniform_recompute(offered_)) {
      if (mode != Recompute::none && !space_.can_recompute(option, mode)) continue;
      for (int stages = 1; stages <= std::min(room, space_.layers()); ++stages) {
        scorer_.count(16);
        // Other numbers of pipelines are the climb's business.
        TemplateShape shape;
        shape.microbatch = microbatch;
        shape.recompute = mode;
        shape.pipelines = std::clamp(static_cast<int>(total), 1, room / stages);
        shape.parts[0] = {option, stages};
        shape.num_parts = 1;
        if (!estimates_.may_fit(shape, zero_degrees(offered_).back())) continue;
        shape.estimate =
            estimates_.iteration_s(shape, std::max(1.0, total / shape.pipelines), 2 * shape.pipelines);
        all.push_back(shape);
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const TemplateShape& a, const TemplateShape& b) { return a.estimate < b.estimate; });
  std::vector<TemplateShape> out;
  for (const TemplateShape& shape : all) {
    if (out.size() == most) break;
    const bool known = std::any_of(out.begin(), out.end(), [&](const TemplateShape& other) {
      return other.parts[0].option == shape.parts[0].option && other.parts[0].groups == shape.parts[0].groups;
    });
    PlanTemplate alone = template_of(space_, shape);
    ++alone.classes[0].pipelines;  // there will be others
    alone.zero = zero_degrees(offered_).back();
    if (!known && cut_layers(scorer_, alone, 0, false)) out.push_back(shape);
  }
  return out;
}

void Seeds::mix(const std::vector<TemplateShape>& shapes) {
  PlanTemplate of = template_of(space_, shapes.front());
  for (size_t i = 1; i < shapes.size(); ++i)
    of.classes.push_back(std::move(template_of(space_, shapes[i]).classes.front()));
  const int64_t each =
      num_microbatches(space_.context.job.training.global_batch, of.microbatch) / std::max(1, of.pipelines());
  if (each < 1) return;
  for (TemplateClass& pipelines : of.classes) pipelines.microbatches = each * pipelines.pipelines;
  score(std::move(of));
}

void Seeds::side_by_side() {
  if (!offered_.contains(PlanFeature::unlike_cuts) || !offered_.contains(PlanFeature::unlike_shares)) return;
  const std::vector<Pools> all = sets();
  const auto sizes = static_cast<double>(space_.microbatches.size());
  double left = 0;
  for (const Pools& pools : all) left += sizes * speed_of(pools);
  for (const Pools& pools : all)
    for (const int size : space_.microbatches) {
      if (scorer_.spent()) return;
      mix_pools(pools, size, until(options_.side_by_side, speed_of(pools), left));
      left -= speed_of(pools);
    }
}

void Seeds::mix_pools(const Pools& pools, int microbatch, int64_t until) {
  const double sum = speed_of(pools);
  std::vector<std::vector<TemplateShape>> lists;
  size_t combinations = 1;
  for (size_t i = 0; i < pools.size(); ++i) {
    lists.push_back(shapes_for_mixing(pools[i], microbatch, speed_of({pools[i]}) / sum,
                                      options_.mixed_shapes / pools.size()));
    combinations *= lists.back().size();
  }
  for (size_t n = 0; n < combinations && !scorer_.spent() && scorer_.steps() < until; ++n) {
    std::vector<TemplateShape> shapes;
    size_t rest = n;
    bool linked = true;
    for (const std::vector<TemplateShape>& list : lists) {
      shapes.push_back(list[rest % list.size()]);
      rest /= list.size();
      linked = linked && space_.linked(shapes.front().parts[0].option, shapes.back().parts[0].option);
    }
    if (linked) mix(shapes);
  }
}

}  // namespace sailor::native
