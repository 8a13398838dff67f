#include "planner/search/native/recompute_levels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace sailor::native {
namespace {

// One block of an option, for all: the one in the middle.
struct TypicalBlock {
  const KindTimes& times;
  const int block;
  const LayerSizes& sizes;

  TypicalBlock(const Space& space, int option, int microbatch)
      : times(space.times(option, microbatch)),
        block(space.layers() / 2),
        sizes((*space.kinds[space.options[static_cast<size_t>(option)].kind]
                    .sizes)[static_cast<size_t>(block)]) {}
  double again_s(Recompute level) const { return times.again(level, block, block + 1); }
};

int blocks_in(const CompactStage& stage, int layers) {
  return std::max(0, std::min(stage.end_layer, layers - 1) - std::max(stage.first_layer, 1));
}

// Levels of an option, each of which keeps less than the one before.
struct Levels {
  struct Level {
    Recompute level = Recompute::none;
    double again_s = 0;  // of a block
  };
  std::array<Level, std::size(kTrainedLevels)> all;
  size_t count = 0;

  Levels(const Space& space, int option, int microbatch) {
    const TypicalBlock block(space, option, microbatch);
    int64_t kept_bytes = std::numeric_limits<int64_t>::max();
    for (const Recompute level : space.levels(option)) {
      if (block.sizes.kept_bytes(level) >= kept_bytes) continue;
      kept_bytes = block.sizes.kept_bytes(level);
      all[count++] = {level, block.again_s(level)};
    }
  }
  const Level& operator[](size_t i) const { return all[i]; }
};

// The first `deep_blocks` blocks of a group, from its first chunk on, at `deep`, the others at `level`.
struct Mix {
  size_t level = 0, deep = 0;  // of Levels
  int deep_blocks = 0;
};

// The stages of one group of GPUs of a pipeline.
class GpuGroup {
 public:
  // Keeps references. `stages` are those of the pipeline, which it may change.
  GpuGroup(IterationModel& model, const PlanTemplate& of, int microbatch, int microbatches,
           std::vector<CompactStage>& stages, size_t group, const Levels& levels, int layers)
      : model_(model),
        of_(of),
        microbatch_(microbatch),
        microbatches_(microbatches),
        stages_(stages),
        group_(group),
        groups_(stages.size() / static_cast<size_t>(of.interleave)),
        levels_(levels),
        layers_(layers) {
    for (size_t i = group_; i < stages_.size(); i += groups_) all_blocks_ += blocks_of(stages_[i]);
  }

  // The fastest of all mixtures of two levels, or nothing. Where the memory of nodes is not enough for it,
  // nothing of it is there.
  std::optional<Mix> least(Offload offload) {
    offload_ = offload;
    std::optional<Mix> best = least_of(levels_.count);
    if (best && levels_[best->deep].level == Recompute::offload) {
      const std::optional<Mix> here = least_of(levels_.count - 1);
      if ((here && again_s(*here) <= again_s(*best)) || missing_bytes(*best, false) > 0) best = here;
    }
    if (best && offload != Offload::none && missing_bytes(*best, false) > 0) return std::nullopt;
    return best;
  }

  // What a microbatch takes longer.
  double again_s(const Mix& mix) const {
    return (all_blocks_ - mix.deep_blocks) * levels_[mix.level].again_s +
           mix.deep_blocks * levels_[mix.deep].again_s;
  }

  StageRecompute at(const Mix& mix, size_t stage) const {
    int before = 0;
    for (size_t i = group_; i < stage; i += groups_) before += blocks_of(stages_[i]);
    const int blocks = blocks_of(stages_[stage]), deep = std::clamp(mix.deep_blocks - before, 0, blocks);
    const Recompute of_deep = levels_[mix.deep].level;
    if (deep == blocks && deep > 0) return of_deep;
    return {of_deep, deep, levels_[mix.level].level};
  }

 private:
  int blocks_of(const CompactStage& stage) const { return blocks_in(stage, layers_); }

  // Of the first `count` levels, in the memory of GPUs.
  std::optional<Mix> least_of(size_t count) {
    if (missing_bytes({}) <= 0) return Mix{};
    Mix best{count - 1, count - 1, 0};
    if (missing_bytes(best) > 0) return std::nullopt;
    // Neighbours first, as the others gain at most what is left over by whole blocks.
    for (size_t apart = 1; apart < count; ++apart)
      for (size_t level = 0; level + apart < count; ++level) improve({level, level + apart, 0}, best);
    return best;
  }

  // Takes the mixture of two levels that has enough memory, if it is faster.
  void improve(Mix mix, Mix& best) {
    const double left_s = again_s(best) - again_s(mix);
    if (left_s <= 0) return;
    const double each_s = levels_[mix.deep].again_s - levels_[mix.level].again_s;
    int low = -1, high = all_blocks_;
    if (each_s * all_blocks_ >= left_s) high = static_cast<int>(std::ceil(left_s / each_s)) - 1;
    const auto missing = [&](int blocks) {
      mix.deep_blocks = blocks;
      return missing_bytes(mix);
    };
    int64_t spare = -missing(high), lacks = 0;
    if (spare < 0) return;
    // The line between two of them points near the first with enough.
    for (bool by_line = false; high - low > 1; by_line = !by_line) {
      const double part = static_cast<double>(lacks) / static_cast<double>(lacks + spare);
      const int next = low < 0   ? 0
                       : by_line ? low + static_cast<int>(std::ceil(part * (high - low)))
                                 : (low + high) / 2;
      const int at = std::clamp(next, low + 1, high - 1);
      const int64_t missing_at = missing(at);
      if (missing_at <= 0) {
        high = at;
        spare = -missing_at;
      } else {
        low = at;
        lacks = missing_at;
      }
    }
    best = {mix.level, mix.deep, high};
  }

  int64_t missing_bytes(const Mix& mix, bool ignores_host = true) {
    const int replicas = of_.pipelines() * model_.kinds().shape(stages_[group_].kind).copies();
    if (of_.interleave == 1) {
      const CompactStage& stage = stages_[group_];
      return model_.missing_bytes(
          {stage.kind, stage.first_layer, stage.end_layer, at(mix, group_),
           in_flight(static_cast<int>(group_), static_cast<int>(groups_), microbatches_), microbatch_,
           microbatches_ > 1, replicas, of_.zero, false, std::min(stage.weight_delay, microbatches_ - 1),
           offload_, ignores_host});
    }
    for (size_t i = group_; i < stages_.size(); i += groups_) {
      stages_[i].recompute = at(mix, i);
      stages_[i].offload = offload_;
    }
    return model_.missing_bytes(
        stages_, static_cast<int>(group_),
        {microbatch_, of_.interleave, microbatches_, replicas, of_.zero, ignores_host});
  }

  IterationModel& model_;
  const PlanTemplate& of_;
  const int microbatch_, microbatches_;
  std::vector<CompactStage>& stages_;
  const size_t group_, groups_;
  const Levels& levels_;
  const int layers_;
  int all_blocks_ = 0;
  Offload offload_ = Offload::none;
};

// What an optimizer step of a group takes longer with offloaded states.
double offload_s(const Space& space, const PlanTemplate& of, const TemplateClass& pipelines, size_t group) {
  double more_s = 0;
  for (size_t i = group; i < pipelines.stages.size(); i += of.groups(pipelines)) {
    const TemplateStage& stage = pipelines.stages[i];
    const int kind = space.options[static_cast<size_t>(stage.option)].kind;
    const KindTimes& times = space.times(stage.option, of.microbatch_of(pipelines));
    const int first = i > 0 ? pipelines.stages[i - 1].end_layer : 0;
    more_s += space.kinds.update_s(kind, times, first, stage.end_layer, Offload::optimizer) -
              space.kinds.update_s(kind, times, first, stage.end_layer, Offload::none);
  }
  const bool sharded = shards_optimizer(std::max(of.zero, space.context.framework.zero));
  return more_s / (sharded ? sharers(space, of, pipelines.stages[group].option) : 1);
}

// Empty if it is no plan.
std::vector<CompactStage> stages_of(const Space& space, const TemplateClass& pipelines) {
  std::vector<CompactStage> stages;
  stages.reserve(pipelines.stages.size());
  for (const TemplateStage& stage : pipelines.stages) {
    const int layer = stages.empty() ? 0 : stages.back().end_layer;
    if (stage.end_layer <= layer) return {};
    const int kind = space.options[static_cast<size_t>(stage.option)].kind;
    stages.push_back({kind, layer, stage.end_layer, stage.recompute, -1, stage.weight_delay});
  }
  return stages;
}

// Of each pipeline.
int most_microbatches(const TemplateClass& pipelines) {
  return static_cast<int>((pipelines.microbatches + pipelines.pipelines - 1) / pipelines.pipelines);
}

// For the stages of a GPU group, in order, with this many blocks each: how many each recomputes if that is
// the first `number` of every stage, or every `number`-th of all.
std::vector<int> some_blocks(FrameworkStyle::SomeBlocks which, int number, const std::vector<int>& blocks) {
  std::vector<int> out;
  int before = 0;
  for (const int all : blocks) {
    out.push_back(which == FrameworkStyle::SomeBlocks::first ? std::min(number, all)
                                                             : (before + all) / number - before / number);
    before += all;
  }
  return out;
}

}  // namespace

std::vector<Recompute> lower_hull(std::span<const Recompute> levels, const OfLevel& again_s,
                                  const OfLevel& kept) {
  std::vector<Recompute> hull;
  // Is the second above the line between its neighbours?
  const auto above = [&](Recompute a, Recompute b, Recompute c) {
    return (kept(b) - kept(a)) * (again_s(c) - again_s(a)) >= (kept(c) - kept(a)) * (again_s(b) - again_s(a));
  };
  for (const Recompute level : levels) {
    if (!hull.empty() && kept(level) >= kept(hull.back())) continue;
    while (hull.size() > 1 && above(hull[hull.size() - 2], hull.back(), level)) hull.pop_back();
    hull.push_back(level);
  }
  return hull;
}

std::vector<Recompute> worthwhile_levels(const Space& space, int option, int microbatch) {
  const TypicalBlock block(space, option, microbatch);
  return lower_hull(
      space.levels(option), [&](Recompute level) { return block.again_s(level); },
      [&](Recompute level) { return static_cast<double>(block.sizes.kept_bytes(level)); });
}

void recompute_least(const Space& space, IterationModel& model, PlanTemplate& of, size_t pipeline_class,
                     Offloading offloading) {
  TemplateClass& pipelines = of.classes[pipeline_class];
  std::vector<CompactStage> stages = stages_of(space, pipelines);
  if (stages.empty()) return;
  const int microbatches = most_microbatches(pipelines);
  const int microbatch = of.microbatch_of(pipelines);
  const size_t groups = of.groups(pipelines);
  std::optional<Levels> levels;
  for (size_t g = 0, option_of_levels = 0; g < groups; ++g) {
    const auto option = static_cast<size_t>(pipelines.stages[g].option);
    if (!levels || option != option_of_levels) levels.emplace(space, static_cast<int>(option), microbatch);
    option_of_levels = option;
    GpuGroup group(model, of, microbatch, microbatches, stages, g, *levels, space.layers());
    std::optional<Mix> least = group.least(Offload::none);
    Offload offload = Offload::none;
    const double again_s = least ? microbatches * group.again_s(*least) : kNever;
    if (again_s > 0 && space.most_offload(static_cast<int>(option)) != Offload::none) {
      const std::optional<Mix> with = group.least(Offload::optimizer);
      const double added_s = offloading == Offloading::cheaper ? offload_s(space, of, pipelines, g) : 0;
      if (!least || (with && microbatches * group.again_s(*with) + added_s < again_s)) {
        least = with;
        offload = Offload::optimizer;
      }
    }
    for (size_t i = g; i < stages.size(); i += groups) {
      pipelines.stages[i].offload = offload;
      if (least) pipelines.stages[i].recompute = group.at(*least, i);
    }
  }
}

void recompute_some(const Space& space, IterationModel& model, PlanTemplate& of) {
  using SomeBlocks = FrameworkStyle::SomeBlocks;
  const SomeBlocks which = space.context.framework.recompute_some;
  if (which == SomeBlocks::none || of.classes.front().stages.front().recompute != Recompute::full) return;
  const size_t groups = of.groups(of.classes.front());
  std::vector<std::vector<CompactStage>> classes;
  for (const TemplateClass& pipelines : of.classes) {
    classes.push_back(stages_of(space, pipelines));
    if (classes.back().empty()) return;
  }
  const auto recompute = [&](int number) {
    for (std::vector<CompactStage>& stages : classes)
      for (size_t g = 0; g < groups; ++g) {
        std::vector<int> blocks;
        for (size_t i = g; i < stages.size(); i += groups)
          blocks.push_back(blocks_in(stages[i], space.layers()));
        const std::vector<int> some = some_blocks(which, number, blocks);
        for (size_t n = 0; n < blocks.size(); ++n)
          stages[g + n * groups].recompute =
              some[n] == blocks[n] ? StageRecompute(blocks[n] > 0 ? Recompute::full : Recompute::none)
                                   : StageRecompute(Recompute::full, some[n], Recompute::none);
      }
  };
  const auto fits = [&](int number) {
    recompute(number);
    for (size_t c = 0; c < classes.size(); ++c)
      for (size_t g = 0; g < groups; ++g) {
        const TemplateClass& pipelines = of.classes[c];
        const PipelineMemoryInput memory{of.microbatch_of(pipelines), of.interleave,
                                         most_microbatches(pipelines),
                                         sharers(space, of, pipelines.stages[g].option), of.zero};
        if (model.missing_bytes(classes[c], static_cast<int>(g), memory) > 0) return false;
      }
    return true;
  };
  // From few blocks to many.
  int most = 0;
  for (const CompactStage& stage : classes.front()) most = std::max(most, blocks_in(stage, space.layers()));
  const auto number = [&](int i) { return which == SomeBlocks::first ? i : space.layers() - i; };
  int low = 0, high = which == SomeBlocks::first ? most : space.layers() - 1;
  if (!fits(number(high))) return;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (fits(number(middle)) ? high : low) = middle;
  }
  recompute(number(high));
  for (size_t c = 0; c < classes.size(); ++c)
    for (size_t i = 0; i < classes[c].size(); ++i)
      of.classes[c].stages[i].recompute = classes[c][i].recompute;
}

}  // namespace sailor::native
