#include "planner/search/native/cut_layers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "planner/search/native/recompute_levels.h"

namespace sailor::native {
namespace {

constexpr int kCutBisections = 24;
constexpr double kPrecise = 1e-4;

class Cutting {
 public:
  // `choose`: whether stages compute again is for the cut to say, not for the template.
  Cutting(Scorer& scorer, const PlanTemplate& of, const TemplateClass& pipelines, bool choose)
      : scorer_(scorer),
        of_(of),
        pipelines_(pipelines),
        microbatch_(of.microbatch_of(pipelines)),
        layers_(scorer.space().layers()) {
    groups_ = static_cast<int>(of.groups(pipelines));
    microbatches_ =
        static_cast<int>((pipelines.microbatches + pipelines.pipelines - 1) / pipelines.pipelines);
    for (const TemplateStage& stage : pipelines.stages) {
      const TemplateStage* before = &stage == pipelines.stages.data() ? nullptr : &stage - 1;
      if (before && before->option == stage.option && (choose || before->recompute == stage.recompute)) {
        ways_.push_back(ways_.back());
        continue;
      }
      Ways ways;
      add_way(ways, stage.option, choose ? Recompute::none : stage.recompute.deepest());
      if (choose) add_recomputing(ways, stage.option);
      ways_.push_back(ways);
    }
    memory_end_.assign(kMostWays * pipelines.stages.size() * static_cast<size_t>(layers_), -1);
  }

  // A cut: how far each stage reaches, and in which way.
  struct Cut {
    std::vector<int> ends, ways;
  };

  // The cut in which no stage takes longer; false when stages do not reach the last layer then.
  bool reach(double most_s, Cut& cut) {
    cut.ends.clear();
    cut.ways.clear();
    int layer = 0;
    const int entries = static_cast<int>(pipelines_.stages.size());
    for (int i = 0; i + 1 < entries; ++i) {
      int furthest = layer, by = 0;
      for (int way = 0; way < ways_[static_cast<size_t>(i)].count; ++way) {
        scorer_.count(4);
        const double* times = times_of(i, way);
        const double* past = std::upper_bound(times + layer + 1, times + layers_ - (entries - 1 - i) + 1,
                                              times[layer] + most_s);
        const int in_time = static_cast<int>(past - times) - 1;
        int end = in_time;
        if (end > layer && !fits(i, way, layer, end)) end = memory_end(i, way, layer, end);
        if (end > furthest) {
          furthest = end;
          by = way;
        }
        if (end == in_time) break;  // memory is enough
      }
      if (furthest == layer) return false;
      cut.ends.push_back(layer = furthest);
      cut.ways.push_back(by);
    }
    // The last stage takes what is left; without a next one it needs less than fewer layers would with one.
    for (int way = 0; way < ways_.back().count; ++way) {
      if (stage_s(entries - 1, way, layer, layers_) > most_s || !fits(entries - 1, way, layer, layers_))
        continue;
      cut.ends.push_back(layers_);
      cut.ways.push_back(way);
      return true;
    }
    return false;
  }

  double stage_s(int entry, int way, int first, int end) const {
    const double* times = times_of(entry, way);
    return times[end] - times[first];
  }
  // The slowest way.
  double longest_s(int entry) const {
    return stage_s(entry, ways_[static_cast<size_t>(entry)].count - 1, 0, layers_);
  }
  StageRecompute recompute(int entry, int way, int first, int end) const {
    const Way& of = ways_[static_cast<size_t>(entry)].ways[static_cast<size_t>(way)];
    const int blocks = std::min(end, layers_ - 1) - std::max(first, 1);
    const int deep = of.half ? (blocks + 1) / 2 : 0;
    return deep > 0 && deep < blocks ? StageRecompute(of.deep, deep, of.level)
                                     : StageRecompute(deep > 0 ? of.deep : of.level);
  }

 private:
  // A level of all blocks of a stage, or half of them at a higher one; where its times begin.
  struct Way {
    Recompute level = Recompute::none, deep = Recompute::none;
    bool half = false;
    size_t times = 0;
  };
  static constexpr size_t kMostWays = 8;
  // In which a stage may compute, the fastest first.
  struct Ways {
    int count = 0;
    std::array<Way, kMostWays> ways;
  };

  // One microbatch through layers [0, i).
  const double* times_of(int entry, int way) const {
    return times_s_.data() + ways_[static_cast<size_t>(entry)].ways[static_cast<size_t>(way)].times;
  }
  // All blocks at a level; or half of them at `deep`.
  void add_way(Ways& ways, int option, Recompute level, std::optional<Recompute> deep = {}) {
    ways.ways[static_cast<size_t>(ways.count++)] = {level, deep.value_or(level), deep.has_value(),
                                                    times_s_.size()};
    const KindTimes& times = scorer_.space().times(option, microbatch_);
    for (int layer = 0; layer <= layers_; ++layer)
      times_s_.push_back(times.forward(0, layer) + times.backward(Recompute::none, 0, layer) +
                         (times.again(level, 0, layer) + times.again(deep.value_or(level), 0, layer)) / 2);
  }
  void add_recomputing(Ways& ways, int option) {
    const Space& space = scorer_.space();
    if (!space.context.framework.recompute_parts) {
      if (space.can_recompute(option, Recompute::full)) add_way(ways, option, Recompute::full);
      return;
    }
    const std::vector<Recompute> levels = worthwhile_levels(space, option, microbatch_);
    for (size_t i = 1; i < levels.size(); ++i) {
      // The way to the first costs next to nothing.
      if (i > 1) add_way(ways, option, levels[i - 1], levels[i]);
      add_way(ways, option, levels[i]);
    }
  }

  // As far as memory reaches from a layer when it does not reach `beyond`; the layer itself when not at all.
  int memory_end(int entry, int way, int first, int beyond) {
    int& known = memory_end_[(kMostWays * static_cast<size_t>(entry) + static_cast<size_t>(way)) *
                                 static_cast<size_t>(layers_) +
                             static_cast<size_t>(first)];
    if (known >= 0) return std::min(known, beyond);
    int low = first, high = beyond - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (fits(entry, way, first, middle))
        low = middle;
      else
        high = middle - 1;
    }
    return known = low;
  }

  bool fits(int entry, int way, int first, int end) {
    if (of_.interleave > 1) return true;  // checked for the whole plan
    const TemplateStage& stage = pipelines_.stages[static_cast<size_t>(entry)];
    return scorer_.model().fits({scorer_.space().options[static_cast<size_t>(stage.option)].kind, first, end,
                                 recompute(entry, way, first, end), in_flight(entry, groups_, microbatches_),
                                 microbatch_, microbatches_ > 1, sharers(scorer_.space(), of_, stage.option),
                                 of_.zero, false, kWholeBackward, scorer_.space().most_offload(stage.option),
                                 scorer_.space().can_offload(stage.option)});
  }

  Scorer& scorer_;
  const PlanTemplate& of_;
  const TemplateClass& pipelines_;
  const int microbatch_, layers_;
  int groups_ = 1, microbatches_ = 1;
  std::vector<double> times_s_;  // [ways of different stages][layer]
  std::vector<Ways> ways_;       // by stage
  std::vector<int> memory_end_;  // [stage][way][first layer]; -1 = not known
};

// Fills the pipelines of every class up to a time that is not quite enough for the global batch; what is left
// goes where a further microbatch ends first. The very last one may be smaller: the largest come last.
bool share_unlike_microbatches(const Space& space, PlanTemplate& of) {
  if (of.interleave > 1) return false;
  std::stable_sort(of.classes.begin(), of.classes.end(), [&](const TemplateClass& a, const TemplateClass& b) {
    return of.microbatch_of(a) < of.microbatch_of(b);
  });
  const int64_t batch = space.context.job.training.global_batch;
  std::vector<ClassTimes> times;
  double low_s = 0, high_s = 0;
  for (const TemplateClass& pipelines : of.classes) {
    times.push_back(times_of(space, of, pipelines));
    high_s = std::max(high_s, times.back().pipeline_s(static_cast<double>(batch), 1));
  }
  const auto left_after = [&](double end_s) {
    int64_t left = batch;
    for (size_t c = 0; c < of.classes.size(); ++c) {
      TemplateClass& pipelines = of.classes[c];
      const double each = (end_s - times[c].others_s) / std::max(times[c].slowest_s, 1e-12);
      pipelines.microbatches =
          std::clamp<int64_t>(static_cast<int64_t>(each), 1, batch) * pipelines.pipelines;
      left -= pipelines.microbatches * of.microbatch_of(pipelines);
    }
    return left;
  };
  for (int i = 0; i < 2 * kCutBisections; ++i) {
    const double middle_s = (low_s + high_s) / 2;
    (left_after(middle_s) > 0 ? low_s : high_s) = middle_s;
  }
  int64_t left = left_after(low_s);
  while (left > 0) {
    TemplateClass* first = nullptr;
    double first_s = kNever;
    for (size_t c = 0; c < of.classes.size(); ++c) {
      TemplateClass& pipelines = of.classes[c];
      if (of.microbatch_of(pipelines) > left && c + 1 < of.classes.size()) continue;
      const auto each = static_cast<double>(pipelines.microbatches / pipelines.pipelines + 1);
      if (const double end_s = times[c].pipeline_s(each, 1); end_s < first_s) {
        first = &pipelines;
        first_s = end_s;
      }
    }
    ++first->microbatches;
    left -= of.microbatch_of(*first);
  }
  return -left < of.microbatch_of(of.classes.back());
}

}  // namespace

bool cut_layers(Scorer& scorer, PlanTemplate& of, size_t pipeline_class, bool choose_recompute) {
  TemplateClass& pipelines = of.classes[pipeline_class];
  const int layers = scorer.space().layers(), entries = static_cast<int>(pipelines.stages.size());
  if (entries > layers) return false;
  // Memory of several chunks together is not known here.
  Cutting cutting(scorer, of, pipelines, choose_recompute && of.interleave == 1);
  double longest_s = 0, rate = 0;
  for (int i = 0; i < entries; ++i) {
    longest_s = std::max(longest_s, cutting.longest_s(i));
    const double whole_s = cutting.stage_s(i, 0, 0, layers);
    rate += whole_s > 0 ? 1 / whole_s : 0;
  }
  Cutting::Cut cut, best;
  if (!cutting.reach(longest_s, best)) return false;
  double low_s = rate > 0 ? 1 / rate * (1 - kPrecise) : 0, high_s = longest_s;
  for (int i = 0; i < kCutBisections && high_s > low_s * (1 + kPrecise); ++i) {
    // The answer is mostly near the low end.
    const double middle_s = i < 3 ? low_s + (high_s - low_s) / 8 : (low_s + high_s) / 2;
    if (cutting.reach(middle_s, cut)) {
      high_s = middle_s;
      std::swap(best, cut);
    } else {
      low_s = middle_s;
    }
  }
  for (int i = 0; i < entries; ++i) {
    TemplateStage& stage = pipelines.stages[static_cast<size_t>(i)];
    const int first = i > 0 ? best.ends[static_cast<size_t>(i) - 1] : 0;
    stage.end_layer = best.ends[static_cast<size_t>(i)];
    stage.recompute = cutting.recompute(i, best.ways[static_cast<size_t>(i)], first, stage.end_layer);
  }
  if (scorer.recomputes_as_needed()) recompute_least(scorer.space(), scorer.model(), of, pipeline_class);
  return true;
}

bool cut_by_speed(const Space& space, PlanTemplate& of, size_t pipeline_class) {
  std::vector<TemplateStage>& stages = of.classes[pipeline_class].stages;
  const int layers = space.layers(), entries = static_cast<int>(stages.size());
  if (entries > layers) return false;
  const auto time_s = [&](int entry, int first, int end) {
    const TemplateStage& stage = stages[static_cast<size_t>(entry)];
    const KindTimes& times = space.times(stage.option, of.microbatch_of(of.classes[pipeline_class]));
    return times.forward(first, end) + times.backward(stage.recompute, first, end);
  };
  double rate = 0;
  for (int i = 0; i < entries; ++i) rate += 1 / std::max(time_s(i, 0, layers), 1e-300);
  int layer = 0;
  double share = 0;  // of the model, up to and with the stage
  for (int i = 0; i < entries; ++i) {
    share += 1 / std::max(time_s(i, 0, layers), 1e-300) / rate;
    const int most = layers - (entries - 1 - i);
    const double wanted_s = share * time_s(i, 0, layers);
    int end = layer + 1;
    // To the nearest boundary.
    while (end < most && time_s(i, 0, end) + time_s(i, end, end + 1) / 2 < wanted_s) ++end;
    layer = i + 1 == entries ? layers : end;
    stages[static_cast<size_t>(i)].end_layer = layer;
  }
  return true;
}

bool shorten(Scorer& scorer, PlanTemplate& of, size_t pipeline_class) {
  TemplateClass& pipelines = of.classes[pipeline_class];
  std::vector<TemplateStage>& stages = pipelines.stages;
  const auto each =
      static_cast<double>((pipelines.microbatches + pipelines.pipelines - 1) / pipelines.pipelines);
  const auto seconds = [&] {
    scorer.count(static_cast<int64_t>(stages.size()));
    return times_of(scorer.space(), of, pipelines).pipeline_s(each, of.interleave);
  };
  double best_s = seconds();
  bool any = false;
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i + 1 < stages.size(); ++i)
      for (const int by : {-1, 1}) {
        const int end = stages[i].end_layer + by;
        if (end <= (i > 0 ? stages[i - 1].end_layer : 0) || end >= stages[i + 1].end_layer) continue;
        stages[i].end_layer = end;
        if (const double now_s = seconds(); now_s < best_s * (1 - kPrecise)) {
          best_s = now_s;
          again = any = true;
        } else {
          stages[i].end_layer = end - by;
        }
      }
  }
  return any;
}

ClassTimes times_of(const Space& space, const PlanTemplate& of, const TemplateClass& pipelines) {
  const size_t groups = of.groups(pipelines);
  const int microbatch = of.microbatch_of(pipelines);
  std::vector<double> by_group(groups, 0);
  int layer = 0;
  for (size_t i = 0; i < pipelines.stages.size(); ++i) {
    const TemplateStage& stage = pipelines.stages[i];
    const KindTimes& times = space.times(stage.option, microbatch);
    by_group[i % groups] +=
        times.forward(layer, stage.end_layer) + times.backward(stage.recompute, layer, stage.end_layer);
    layer = stage.end_layer;
  }
  ClassTimes out;
  const size_t slowest = static_cast<size_t>(std::ranges::max_element(by_group) - by_group.begin());
  out.slowest_s = by_group[slowest];
  for (size_t g = 0; g < groups; ++g)
    if (g != slowest)
      out.others_s +=
          by_group[g] * (of.interleave > 1 ? 1 : space.ramp_part(pipelines.stages[g].option, microbatch));
  return out;
}

void share_equally(const Space& space, PlanTemplate& of) {
  for (TemplateClass& pipelines : of.classes) {
    const int64_t total =
        num_microbatches(space.context.job.training.global_batch, of.microbatch_of(pipelines));
    const int64_t each = std::max<int64_t>(1, total / std::max(1, of.pipelines()));
    if (pipelines.microbatches < pipelines.pipelines) pipelines.microbatches = each * pipelines.pipelines;
  }
}

bool share_batch(const Space& space, PlanTemplate& of) {
  if (has_unlike_microbatches(of)) return share_unlike_microbatches(space, of);
  const int64_t microbatches =
      num_microbatches(space.context.job.training.global_batch, of.microbatch_of(of.classes.front()));
  if (microbatches < of.pipelines()) return false;
  if (of.classes.size() == 1) {
    of.classes[0].microbatches = microbatches;
    return true;
  }
  // Interleaved, they go in rounds of as many as there are groups of GPUs.
  int64_t round = 1;
  if (of.interleave > 1) {
    round = static_cast<int64_t>(of.groups(of.classes[0]));
    for (const TemplateClass& pipelines : of.classes)
      if (static_cast<int64_t>(of.groups(pipelines)) != round) return false;
  }
  const int64_t total = microbatches / round;
  if (microbatches % round != 0 || total < of.pipelines()) return false;
  std::vector<ClassTimes> times;
  double low_s = 0, high_s = 0;
  for (const TemplateClass& pipelines : of.classes) {
    times.push_back(times_of(space, of, pipelines));
    times.back().slowest_s *= static_cast<double>(round);
    times.back().others_s *= static_cast<double>(round);
    high_s = std::max(high_s, times.back().pipeline_s(static_cast<double>(total), 1));
  }
  const auto rounds_of = [&](size_t c, double most_s) {
    const ClassTimes& t = times[c];
    const double rounds = (most_s - t.others_s / of.interleave) / std::max(t.slowest_s, 1e-12);
    return std::clamp<int64_t>(static_cast<int64_t>(rounds * (1 + 1e-12)), 1, total);
  };
  const auto taken = [&](double most_s) {
    int64_t sum = 0;
    for (size_t c = 0; c < of.classes.size(); ++c) sum += rounds_of(c, most_s) * of.classes[c].pipelines;
    return sum;
  };
  // Do only equal classes differ between both ends, by one round? Then nothing changes in between.
  const auto is_exact = [&] {
    const ClassTimes* changed = nullptr;
    for (size_t c = 0; c < of.classes.size(); ++c) {
      const int64_t more = rounds_of(c, high_s) - rounds_of(c, low_s);
      if (more == 0) continue;
      if (more > 1 || (changed != nullptr && !(*changed == times[c]))) return false;
      changed = &times[c];
    }
    return changed != nullptr && taken(low_s) < total;
  };
  for (int i = 0; i < 2 * kCutBisections; ++i) {
    if (i >= 8 && i % 4 == 0 && is_exact()) break;
    const double middle_s = (low_s + high_s) / 2;
    (taken(middle_s) >= total ? high_s : low_s) = middle_s;
  }
  for (size_t c = 0; c < of.classes.size(); ++c)
    of.classes[c].microbatches = rounds_of(c, high_s) * of.classes[c].pipelines;
  int64_t excess = taken(high_s) - total;
  if (excess < 0) return false;
  // What is too much goes back where a round ends latest.
  while (excess > 0) {
    size_t last = of.classes.size();
    double last_s = -1;
    for (size_t c = 0; c < of.classes.size(); ++c) {
      const TemplateClass& pipelines = of.classes[c];
      const auto rounds =
          static_cast<double>((pipelines.microbatches + pipelines.pipelines - 1) / pipelines.pipelines);
      const double end_s = times[c].pipeline_s(rounds, of.interleave);
      if (pipelines.microbatches > pipelines.pipelines && end_s > last_s) {
        last_s = end_s;
        last = c;
      }
    }
    if (last == of.classes.size()) return false;
    TemplateClass& pipelines = of.classes[last];
    const int64_t above = (pipelines.microbatches - 1) % pipelines.pipelines + 1;
    const int64_t given = std::min({excess, above, pipelines.microbatches - pipelines.pipelines});
    pipelines.microbatches -= given;
    excess -= given;
  }
  for (TemplateClass& pipelines : of.classes) pipelines.microbatches *= round;
  return true;
}

}  // namespace sailor::native
