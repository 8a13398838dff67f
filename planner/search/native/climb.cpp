#include "planner/search/native/climb.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "planner/search/native/cut_layers.h"

namespace sailor::native {
namespace {

constexpr double kPays = 1 - 1e-7;

std::vector<TemplateStage> with_stage_before(const std::vector<TemplateStage>& stages, size_t place,
                                             const TemplateStage& added) {
  const auto here = stages.begin() + static_cast<ptrdiff_t>(place);
  std::vector<TemplateStage> more(stages.begin(), here);
  more.push_back(added);
  more.insert(more.end(), here, stages.end());
  return more;
}

class Climb {
 public:
  Climb(Scorer& scorer, const PlanFeatures& offered, PlanTemplate& at, double value)
      : scorer_(scorer), space_(scorer.space()), offered_(offered), at_(at), value_(value) {}

  double run() {
    // Cheap changes to the end before larger ones. From where another climb was, it would go where that went.
    while (!scorer_.spent() && scorer_.passes(at_)) {
      if (blocks() || flags() || shifts() || shares() || orders()) continue;
      if (counts() || degrees() || stages() || sizes() || unlike_sizes() || chunks() || recomputation() ||
          classes())
        continue;
      break;
    }
    return value_;
  }

 private:
  bool offers(PlanFeature feature) const { return offered_.contains(feature); }

  bool take(const PlanTemplate& next) {
    const double value = scorer_.score(next, value_ * kPays);
    if (!(value < value_ * kPays)) return false;
    value_ = value;
    at_ = next;
    return true;
  }

  // After a change of stages or numbers: cut, share and score. Keeps what is better.
  bool take_again(PlanTemplate next, bool cut = true) {
    next.block = std::max(1, next.block);
    if (!has_replicas(space_, next)) next.zero = Zero::none;
    if (cut) {
      share_equally(space_, next);
      for (size_t c = 0; c < next.classes.size(); ++c)
        if (!cut_layers(scorer_, next, c, offers(PlanFeature::recompute))) return with_sharding(next);
    }
    if (!share_batch(space_, next)) return false;
    if (take(next)) return true;
    if (next.block == 1 || next.block >= next.pipelines()) return false;
    next.block = next.pipelines();
    return take(next);
  }
  // What memory refuses may do with sharded states.
  bool with_sharding(PlanTemplate& next) {
    for (const Zero zero : zero_degrees_of(space_, offered_, next)) {
      if (zero <= next.zero) continue;
      next.zero = zero;
      bool cut = true;
      for (size_t c = 0; c < next.classes.size() && cut; ++c)
        cut = cut_layers(scorer_, next, c, offers(PlanFeature::recompute));
      if (cut) return share_batch(space_, next) && take(next);
    }
    return false;
  }

  bool blocks() {
    for (const int block : blocks_of(space_, at_)) {
      if (block == at_.block) continue;
      PlanTemplate next = at_;
      next.block = block;
      if (take(next)) return true;
    }
    for (const Fill fill : {Fill::packed, Fill::even, Fill::together}) {
      if (fill == at_.fill) continue;
      PlanTemplate next = at_;
      next.fill = fill;
      if (take(next)) return true;
    }
    return false;
  }

  bool flags() {
    for (const Zero zero : zero_degrees_of(space_, offered_, at_)) {
      if (zero == at_.zero) continue;
      PlanTemplate next = at_;
      next.zero = zero;
      if (take(next)) return true;
    }
    return false;
  }

  // Boundaries `first` to `last` of a class.
  bool shift(size_t c, size_t first, size_t last, int layers) {
    if (!offers(PlanFeature::unlike_cuts) && at_.classes.size() > 1) return false;
    PlanTemplate next = at_;
    std::vector<TemplateStage>& stages = next.classes[c].stages;
    for (size_t i = first; i <= last; ++i) stages[i].end_layer += layers;
    const int before = first > 0 ? stages[first - 1].end_layer : 0;
    if (stages[first].end_layer <= before || stages[last].end_layer >= stages[last + 1].end_layer)
      return false;
    return take(next);
  }
  bool shifts() {
    bool any = false;
    for (size_t c = 0; c < at_.classes.size(); ++c)
      for (size_t i = 0; i + 1 < at_.classes[c].stages.size(); ++i)
        for (const int layers : {-1, 1})
          while (!scorer_.spent() && shift(c, i, i, layers)) any = true;
    // From the first stages on, or up to the last ones, all together.
    for (size_t c = 0; c < at_.classes.size(); ++c) {
      const size_t boundaries = at_.classes[c].stages.size() - 1;
      for (size_t i = 0; i < boundaries; ++i)
        for (const int layers : {-1, 1}) {
          while (i > 0 && !scorer_.spent() && shift(c, 0, i, layers)) any = true;
          while (i > 0 && !scorer_.spent() && shift(c, i, boundaries - 1, layers)) any = true;
        }
    }
    return any;
  }

  bool shares() {
    if (!offers(PlanFeature::unlike_shares) || at_.classes.size() < 2) return false;
    for (size_t from = 0; from < at_.classes.size(); ++from)
      for (size_t to = 0; to < at_.classes.size(); ++to) {
        if (from == to) continue;
        for (const int64_t given :
             {int64_t{at_.classes[from].pipelines}, int64_t{at_.classes[to].pipelines}, int64_t{1}}) {
          PlanTemplate next = at_;
          const int64_t of_from = at_.microbatch_of(at_.classes[from]),
                        of_to = at_.microbatch_of(at_.classes[to]);
          const int64_t alike = std::lcm(of_from, of_to);  // sequences
          next.classes[from].microbatches -= given * (alike / of_from);
          next.classes[to].microbatches += given * (alike / of_to);
          if (next.classes[from].microbatches >= next.classes[from].pipelines && take(next)) return true;
        }
      }
    return false;
  }

  // Rings of gradient sums follow the order of pipelines.
  bool orders() {
    for (size_t c = 0; c + 1 < at_.classes.size(); ++c) {
      PlanTemplate next = at_;
      std::swap(next.classes[c], next.classes[c + 1]);
      if (take(next)) return true;
    }
    return false;
  }

  // More or fewer pipelines.
  bool counts() {
    for (size_t c = 0; c < at_.classes.size(); ++c) {
      const int now = at_.classes[c].pipelines;
      std::set<int> to = {now - 1, now + 1, now / 2, 2 * now, now * 3 / 4, now * 5 / 4};
      for (const int count : to) {
        if (count < 1 || count == now) continue;
        PlanTemplate next = at_;
        next.classes[c].pipelines = count;
        if (next.block == at_.pipelines()) next.block = next.pipelines();
        if (take_again(next)) return true;
        // As many GPUs in longer or shorter pipelines.
        if (resize(next, c, static_cast<int>(at_.groups(at_.classes[c])) * now / count) && take_again(next))
          return true;
      }
    }
    return false;
  }

  // So many groups of GPUs in the pipelines of a class, in the proportions that there are.
  bool resize(PlanTemplate& next, size_t c, int groups) const {
    if (groups < 1) return false;
    const std::vector<TemplateStage> old = next.classes[c].stages;
    const size_t before = next.groups(next.classes[c]);
    std::vector<TemplateStage> stages;
    for (int chunk = 0; chunk < next.interleave; ++chunk)
      for (int g = 0; g < groups; ++g)
        stages.push_back(old[static_cast<size_t>(g) * before / static_cast<size_t>(groups)]);
    if (stages.size() > static_cast<size_t>(space_.layers())) return false;
    next.classes[c].stages = std::move(stages);
    return true;
  }

  // Twice or half the TP degree in a pool, with as many GPUs.
  bool degrees() {
    for (size_t c = 0; c < at_.classes.size(); ++c) {
      std::set<int> used;
      for (const TemplateStage& stage : at_.classes[c].stages) used.insert(stage.option);
      for (const int option : used)
        for (const int other : space_.pools[static_cast<size_t>(pool_of(option))].options) {
          if (other == option || !space_.has_times(other, at_.microbatch_of(at_.classes[c]))) continue;
          PlanTemplate next = at_;
          std::vector<TemplateStage> stages;
          const int from = gpus_of(option), to = gpus_of(other);
          int owed = 0;
          for (size_t g = 0; g < at_.groups(at_.classes[c]); ++g) {
            TemplateStage stage = at_.classes[c].stages[g];
            if (stage.option != option) {
              stages.push_back(stage);
              continue;
            }
            stage.option = other;
            for (owed += from; owed >= to; owed -= to) stages.push_back(stage);
          }
          if (stages.empty()) continue;
          if (with_stages(next, c, stages) && take_again(next)) return true;
          // As many stages, and pipelines for the same GPUs.
          next = at_;
          for (TemplateStage& stage : next.classes[c].stages)
            if (stage.option == option) stage.option = other;
          next.classes[c].pipelines = std::max(1, at_.classes[c].pipelines * from / to);
          if (next.block == at_.pipelines()) next.block = next.pipelines();
          if (take_again(next)) return true;
        }
    }
    return false;
  }
  int pool_of(int option) const { return space_.options[static_cast<size_t>(option)].pool; }
  int gpus_of(int option) const { return space_.options[static_cast<size_t>(option)].shape.gpus(); }

  // Sets the stages of one chunk for all chunks.
  bool with_stages(PlanTemplate& next, size_t c, const std::vector<TemplateStage>& of_chunk) const {
    std::vector<TemplateStage>& stages = next.classes[c].stages;
    stages.clear();
    for (int chunk = 0; chunk < next.interleave; ++chunk)
      stages.insert(stages.end(), of_chunk.begin(), of_chunk.end());
    return stages.size() <= static_cast<size_t>(space_.layers());
  }

  // Options of a stage next to (or instead of) one with `option`: any TP degree of pools in use; of other
  // pools the same degree, or the next smaller.
  std::vector<int> candidates(const TemplateClass& pipelines, int option) const {
    std::set<int> used;
    for (const TemplateStage& stage : pipelines.stages) used.insert(pool_of(stage.option));
    std::vector<int> out;
    for (size_t pool = 0; pool < space_.pools.size(); ++pool) {
      const bool in_use = used.contains(static_cast<int>(pool));
      int alike = -1;
      for (const int other : space_.pools[pool].options) {
        if (!space_.has_times(other, at_.microbatch_of(pipelines)) || !space_.linked(other, option)) continue;
        if (in_use)
          out.push_back(other);
        else if (gpus_of(other) <= gpus_of(option))
          alike = other;
      }
      if (alike >= 0) out.push_back(alike);
    }
    return out;
  }

  // One stage more, less, or of another option.
  bool stages() {
    for (size_t c = 0; c < at_.classes.size(); ++c) {
      const size_t groups = at_.groups(at_.classes[c]);
      const std::vector<TemplateStage> now(at_.classes[c].stages.begin(),
                                           at_.classes[c].stages.begin() + static_cast<ptrdiff_t>(groups));
      for (size_t g = 0; g < groups; ++g) {
        // Within a run of equal stages one is enough.
        if (g > 0 && now[g].option == now[g - 1].option) continue;
        if (scorer_.spent()) return false;
        std::vector<TemplateStage> less = now;
        less.erase(less.begin() + static_cast<ptrdiff_t>(g));
        PlanTemplate next = at_;
        if (!less.empty() && with_stages(next, c, less) && take_again(next)) return true;
        for (const int option : candidates(at_.classes[c], now[g].option)) {
          TemplateStage added = now[g];
          added.option = option;
          std::vector<TemplateStage> more = with_stage_before(now, g, added);
          next = at_;
          if (with_stages(next, c, more) && take_again(next)) return true;
          if (g + 1 == groups || now[g + 1].option != now[g].option) {
            more = with_stage_before(now, g + 1, added);
            next = at_;
            if (with_stages(next, c, more) && take_again(next)) return true;
          }
          if (added.option == now[g].option) continue;
          std::vector<TemplateStage> other = now;
          other[g] = added;
          next = at_;
          if (with_stages(next, c, other) && take_again(next)) return true;
        }
      }
    }
    return false;
  }

  bool sizes() {
    for (const int size : space_.microbatches) {
      if (size == at_.microbatch) continue;
      PlanTemplate next = at_;
      next.microbatch = size;
      bool possible = true;
      for (TemplateClass& of : next.classes) {
        for (const TemplateStage& stage : of.stages)
          possible = possible && space_.has_times(stage.option, size);
        of.microbatches = of.microbatch = 0;
      }
      if (possible && take_again(next)) return true;
    }
    return false;
  }

  // Of one class only.
  bool unlike_sizes() {
    if (!offers(PlanFeature::unlike_microbatches) || at_.classes.size() < 2 || at_.interleave > 1)
      return false;
    for (size_t c = 0; c < at_.classes.size(); ++c)
      for (const int size : space_.microbatches) {
        if (size == at_.microbatch_of(at_.classes[c])) continue;
        PlanTemplate next = at_;
        TemplateClass& of = next.classes[c];
        of.microbatches = 0;
        of.microbatch = size;
        const bool possible = std::ranges::all_of(
            of.stages, [&](const TemplateStage& stage) { return space_.has_times(stage.option, size); });
        if (possible && take_again(next)) return true;
      }
    return false;
  }

  bool chunks() {
    if (!offers(PlanFeature::interleave)) return false;
    for (const int count : kInterleavings) {
      if (count == at_.interleave) continue;
      PlanTemplate next = at_;
      next.interleave = count;
      bool possible = true;
      for (size_t c = 0; c < at_.classes.size(); ++c) {
        const size_t groups = at_.groups(at_.classes[c]);
        const std::vector<TemplateStage> of_chunk(
            at_.classes[c].stages.begin(), at_.classes[c].stages.begin() + static_cast<ptrdiff_t>(groups));
        possible = possible && groups > 1 && with_stages(next, c, of_chunk);
      }
      if (possible && take_again(next)) return true;
    }
    return false;
  }

  bool recomputation() {
    if (!offers(PlanFeature::recompute) || scorer_.recomputes_as_needed()) return false;
    for (size_t c = 0; c < at_.classes.size(); ++c) {
      // All stages of a class, then one.
      for (const Recompute mode : {Recompute::none, Recompute::full}) {
        PlanTemplate next = at_;
        for (TemplateStage& stage : next.classes[c].stages) stage.recompute = mode;
        if (next != at_ && take_again(next)) return true;
      }
      for (size_t i = 0; i < at_.classes[c].stages.size() && !scorer_.spent(); ++i) {
        PlanTemplate next = at_;
        StageRecompute& recompute = next.classes[c].stages[i].recompute;
        recompute = recompute == Recompute::none ? Recompute::full : Recompute::none;
        if (take(next)) return true;
      }
    }
    return false;
  }

  // A class less; the others take its share.
  bool classes() {
    for (size_t c = 0; at_.classes.size() > 1 && c < at_.classes.size(); ++c) {
      PlanTemplate next = at_;
      next.classes.erase(next.classes.begin() + static_cast<ptrdiff_t>(c));
      if (take_again(next)) return true;
    }
    return false;
  }

  Scorer& scorer_;
  const Space& space_;
  const PlanFeatures& offered_;
  PlanTemplate& at_;
  double value_;
};

}  // namespace

std::vector<int> blocks_of(const Space& space, const PlanTemplate& of) {
  std::set<int> blocks = {1, of.pipelines()};
  for (int block = 2; block < of.pipelines(); block *= 2) blocks.insert(block);
  for (const TemplateClass& pipelines : of.classes) {
    const SpaceOption& option = space.options[static_cast<size_t>(pipelines.stages.front().option)];
    const int here = space.pools[static_cast<size_t>(option.pool)].node_gpus() / option.shape.gpus();
    if (here > 1 && here < of.pipelines()) blocks.insert(here);
    if (pipelines.pipelines > 1) blocks.insert(pipelines.pipelines);
  }
  return {blocks.begin(), blocks.end()};
}

double climb(Scorer& scorer, const PlanFeatures& offered, PlanTemplate& from, double value) {
  return Climb(scorer, offered, from, value).run();
}

}  // namespace sailor::native
