#include "planner/search/native/anneal.h"

#include <algorithm>
#include <utility>

#include "planner/search/native/climb.h"
#include "planner/search/native/cut_layers.h"

namespace sailor::native {
namespace {

constexpr Fill kFills[] = {Fill::packed, Fill::even, Fill::together};

class Annealing {
 public:
  Annealing(Scorer& scorer, const PlanFeatures& offered, std::mt19937_64& random)
      : scorer_(scorer), space_(scorer.space()), offered_(offered), random_(random) {}

  // One change, cut and shared; false when it makes no sense here.
  bool change(PlanTemplate& of, double fine_part, bool& fine) {
    const int before = of.pipelines();
    fine = part() < fine_part;
    if (!(fine ? change_details(of) : change_shape(of))) return false;
    if (fine) return true;
    of.block = of.block >= before ? of.pipelines() : std::min(of.block, of.pipelines());
    if (!has_replicas(space_, of)) of.zero = Zero::none;
    int smallest = of.microbatch;
    for (const TemplateClass& each : of.classes) smallest = std::min(smallest, of.microbatch_of(each));
    if (num_microbatches(space_.context.job.training.global_batch, smallest) < of.pipelines()) return false;
    share_equally(space_, of);
    const bool by_speed = drawn(4) == 0, choose = offers(PlanFeature::recompute) && drawn(2) == 0;
    const auto cut = [&] {
      for (size_t c = 0; c < of.classes.size(); ++c)
        if (!(by_speed ? cut_by_speed(space_, of, c) : cut_layers(scorer_, of, c, choose))) return false;
      return true;
    };
    if (cut()) return share_batch(space_, of);
    // What memory refuses may do with sharded states.
    for (const Zero zero : zero_degrees_of(space_, offered_, of)) {
      if (zero <= of.zero) continue;
      of.zero = zero;
      if (cut()) return share_batch(space_, of);
    }
    return false;
  }

  double part() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

 private:
  bool offers(PlanFeature feature) const { return offered_.contains(feature); }
  size_t drawn(size_t below) { return static_cast<size_t>(random_() % below); }
  template <typename T>
  T& pick(std::vector<T>& items) {
    return items[drawn(items.size())];
  }

  // What needs no new cut.
  bool change_details(PlanTemplate& of) {
    TemplateClass& pipelines = pick(of.classes);
    std::vector<TemplateStage>& stages = pipelines.stages;
    switch (drawn(8)) {
      case 0: {
        const std::vector<int> blocks = blocks_of(space_, of);
        of.block = blocks[drawn(blocks.size())];
        return true;
      }
      case 1:
        if (drawn(2) == 0) {
          of.fill = kFills[(static_cast<size_t>(of.fill) + 1 + drawn(2)) % std::size(kFills)];
          return true;
        }
        if (const std::span<const Zero> degrees = zero_degrees_of(space_, offered_, of); degrees.size() > 1) {
          const size_t by = degrees.size() == 2 ? 1 : 1 + drawn(degrees.size() - 1);
          of.zero = degrees[(static_cast<size_t>(of.zero) + by) % degrees.size()];
          return true;
        }
        return false;
      case 2: {
        if (!offers(PlanFeature::recompute) || scorer_.recomputes_as_needed()) return false;
        TemplateStage& stage = pick(stages);
        stage.recompute = stage.recompute == Recompute::none ? Recompute::full : Recompute::none;
        return stage.recompute == Recompute::none || space_.can_recompute(stage.option, Recompute::full);
      }
      case 3: {
        if (of.classes.size() < 2 || has_unlike_microbatches(of)) return false;
        TemplateClass& to = pick(of.classes);
        const int64_t given = drawn(2) == 0 ? pipelines.pipelines : 1;
        pipelines.microbatches -= given;
        to.microbatches += given;
        return &to != &pipelines && pipelines.microbatches >= pipelines.pipelines;
      }
      default: {  // a boundary, or several in a row
        if (stages.size() < 2 || (!offers(PlanFeature::unlike_cuts) && of.classes.size() > 1)) return false;
        const size_t first = drawn(stages.size() - 1);
        const size_t last = drawn(2) == 0 ? first : first + drawn(stages.size() - 1 - first);
        const int by = (drawn(2) == 0 ? 1 : -1) * static_cast<int>(1 + drawn(4) / 3);
        for (size_t i = first; i <= last; ++i) stages[i].end_layer += by;
        return stages[first].end_layer > (first > 0 ? stages[first - 1].end_layer : 0) &&
               stages[last].end_layer < stages[last + 1].end_layer;
      }
    }
  }

  // An option for a stage near `beside`: every other time of a pool that is in use.
  int option_for(PlanTemplate& of, int beside) {
    int option = static_cast<int>(drawn(space_.options.size()));
    if (drawn(2) == 0) {
      const int used = pick(pick(of.classes).stages).option;
      const std::vector<int>& options =
          space_.pools[static_cast<size_t>(space_.options[static_cast<size_t>(used)].pool)].options;
      option = options[drawn(options.size())];
    }
    const bool known = std::ranges::all_of(of.classes, [&](const TemplateClass& each) {
      return space_.has_times(option, of.microbatch_of(each));
    });
    return known && space_.linked(option, beside) ? option : -1;
  }

  // So many stages in the proportions that there are.
  static std::vector<TemplateStage> resized(const std::vector<TemplateStage>& chunk, size_t to) {
    std::vector<TemplateStage> out;
    for (size_t g = 0; g < to; ++g) out.push_back(chunk[g * chunk.size() / to]);
    return out;
  }

  // The stages of a class's pipelines, each chunk of the model once.
  static std::vector<TemplateStage> chunk_of(const PlanTemplate& of, const TemplateClass& pipelines) {
    return {pipelines.stages.begin(),
            pipelines.stages.begin() + static_cast<ptrdiff_t>(of.groups(pipelines))};
  }
  bool set_chunk(const PlanTemplate& of, TemplateClass& pipelines, const std::vector<TemplateStage>& chunk) {
    pipelines.stages.clear();
    for (int i = 0; i < of.interleave; ++i)
      pipelines.stages.insert(pipelines.stages.end(), chunk.begin(), chunk.end());
    return !chunk.empty() && pipelines.stages.size() <= static_cast<size_t>(space_.layers());
  }
  static void set_pipelines(TemplateClass& pipelines, int count) {
    pipelines.pipelines = std::max(1, count);
    pipelines.microbatches = 0;
  }
  bool may_add_classes(const PlanTemplate& of) const {
    return offers(PlanFeature::unlike_cuts) && offers(PlanFeature::unlike_shares) && of.interleave == 1;
  }

  // A step that changes which GPUs a plan uses, or what its pipelines have in common. False when it leads
  // nowhere.
  bool change_shape(PlanTemplate& of) {
    TemplateClass& pipelines = pick(of.classes);
    const size_t at = drawn(of.groups(pipelines));
    const size_t kind = drawn(13);
    switch (kind) {
      case 0:
        return trade_pipelines_for_stages(of, pipelines);
      case 1:
        set_pipelines(pipelines, drawn(2) == 0 ? pipelines.pipelines + 1 : pipelines.pipelines - 1);
        return true;
      case 2:
      case 3:
      case 4:
      case 5:
        return change_stages(of, pipelines, at, kind - 2);
      case 6:
        return exchange_option(of, pipelines, at);
      case 7:
        return add_class(of, pipelines, at);
      case 8:  // a class less
        if (of.classes.size() < 2) return false;
        of.classes.erase(of.classes.begin() + (&pipelines - of.classes.data()));
        return true;
      case 9:
        return change_interleave(of, pipelines);
      case 10:
        return change_recomputation(of, pipelines);
      case 11:
        return change_microbatch(of);
      default:
        return divide_class(of, pipelines, at);
    }
  }

  // More or fewer pipelines, of as many GPUs.
  bool trade_pipelines_for_stages(PlanTemplate& of, TemplateClass& pipelines) {
    const std::vector<TemplateStage> chunk = chunk_of(of, pipelines);
    const int now = pipelines.pipelines;
    set_pipelines(pipelines, now * static_cast<int>(1 + drawn(8)) / 4);
    return set_chunk(of, pipelines,
                     resized(chunk, std::max<size_t>(1, chunk.size() * static_cast<size_t>(now) /
                                                            static_cast<size_t>(pipelines.pipelines))));
  }

  // One stage: another option, one more, one less; or their order.
  bool change_stages(PlanTemplate& of, TemplateClass& pipelines, size_t at, size_t kind) {
    std::vector<TemplateStage> chunk = chunk_of(of, pipelines);
    const auto here = chunk.begin() + static_cast<ptrdiff_t>(at);
    switch (kind) {
      case 0:
        here->option = option_for(of, here->option);
        return here->option >= 0 && set_chunk(of, pipelines, chunk);
      case 1: {
        TemplateStage added = *here;
        if (drawn(2) == 0) added.option = option_for(of, here->option);
        chunk.insert(here + static_cast<ptrdiff_t>(drawn(2)), added);
        return added.option >= 0 && set_chunk(of, pipelines, chunk);
      }
      case 2:
        chunk.erase(here);
        return set_chunk(of, pipelines, chunk);
      default:
        if (drawn(2) == 0)
          std::reverse(chunk.begin(), chunk.end());
        else
          std::swap(*here, pick(chunk));
        return set_chunk(of, pipelines, chunk);
    }
  }

  // All stages of one option to another, with as many GPUs in stages or in pipelines.
  bool exchange_option(PlanTemplate& of, TemplateClass& pipelines, size_t at) {
    std::vector<TemplateStage> chunk = chunk_of(of, pipelines);
    const int from = chunk[at].option, to = option_for(of, from);
    if (to < 0) return false;
    for (TemplateStage& stage : chunk)
      if (stage.option == from) stage.option = to;
    const int from_gpus = space_.options[static_cast<size_t>(from)].shape.gpus(),
              to_gpus = space_.options[static_cast<size_t>(to)].shape.gpus();
    const size_t way = drawn(3);
    if (way == 0) set_pipelines(pipelines, pipelines.pipelines * from_gpus / to_gpus);
    if (way == 1)
      chunk = resized(chunk, std::max<size_t>(1, chunk.size() * static_cast<size_t>(from_gpus) /
                                                     static_cast<size_t>(to_gpus)));
    return set_chunk(of, pipelines, chunk);
  }

  // Adds a class of pipelines of another pool.
  bool add_class(PlanTemplate& of, const TemplateClass& pipelines, size_t at) {
    if (!may_add_classes(of)) return false;
    const int option = option_for(of, pipelines.stages[at].option);
    if (option < 0) return false;
    TemplateClass added;
    const size_t count = 1 + drawn(2 * of.groups(pipelines));
    const SpaceOption& used = space_.options[static_cast<size_t>(option)];
    const int room = space_.pools[static_cast<size_t>(used.pool)].gpus / used.shape.gpus();
    added.stages.assign(count, {option, 0, Recompute::none});
    added.pipelines = std::max(1, room / static_cast<int>(count * (1 + drawn(4))));
    if (added.stages.size() > static_cast<size_t>(space_.layers())) return false;
    of.classes.push_back(std::move(added));
    return true;
  }

  // Some pipelines of a class go their own way: with a stage more, less, or of another option.
  bool divide_class(PlanTemplate& of, TemplateClass& pipelines, size_t at) {
    if (!may_add_classes(of) || pipelines.pipelines < 2) return false;
    std::vector<TemplateStage> chunk = chunk_of(of, pipelines);
    TemplateClass apart;
    apart.pipelines = drawn(2) == 0 ? 1 : pipelines.pipelines / 2;
    const size_t way = drawn(3);
    const int option = way == 0 ? 0 : option_for(of, chunk[at].option);
    if (option < 0) return false;
    if (way == 0) chunk.erase(chunk.begin() + static_cast<ptrdiff_t>(at));
    if (way == 1) chunk[at].option = option;
    if (way == 2) chunk.insert(chunk.begin() + static_cast<ptrdiff_t>(at), {option, 0, chunk[at].recompute});
    if (chunk.empty() || chunk.size() > static_cast<size_t>(space_.layers())) return false;
    apart.stages = std::move(chunk);
    set_pipelines(pipelines, pipelines.pipelines - apart.pipelines);
    of.classes.push_back(std::move(apart));
    return true;
  }

  bool change_interleave(PlanTemplate& of, const TemplateClass& pipelines) {
    if (!offers(PlanFeature::interleave) || of.groups(pipelines) < 2) return false;
    const int chunks = kInterleavings[drawn(std::size(kInterleavings))];
    if (chunks == of.interleave) return false;
    for (TemplateClass& each : of.classes) {
      const std::vector<TemplateStage> one = chunk_of(of, each);
      each.stages.clear();
      for (int i = 0; i < chunks; ++i) each.stages.insert(each.stages.end(), one.begin(), one.end());
      if (one.size() < 2 || each.stages.size() > static_cast<size_t>(space_.layers())) return false;
    }
    of.interleave = chunks;
    return true;
  }

  bool change_recomputation(const PlanTemplate& of, TemplateClass& pipelines) {
    if (!offers(PlanFeature::recompute) || scorer_.recomputes_as_needed()) return false;
    const Recompute mode = drawn(2) == 0 ? Recompute::none : Recompute::full;
    std::vector<TemplateStage> chunk = chunk_of(of, pipelines);
    for (TemplateStage& stage : chunk) {
      if (mode != Recompute::none && !space_.can_recompute(stage.option, mode)) return false;
      stage.recompute = mode;
    }
    return set_chunk(of, pipelines, chunk);
  }

  bool change_microbatch(PlanTemplate& of) {
    const int size = space_.microbatches[drawn(space_.microbatches.size())];
    if (size == of.microbatch) return false;
    for (TemplateClass& each : of.classes) {
      each.microbatches = each.microbatch = 0;
      for (const TemplateStage& stage : each.stages)
        if (!space_.has_times(stage.option, size)) return false;
    }
    of.microbatch = size;
    return true;
  }

  Scorer& scorer_;
  const Space& space_;
  const PlanFeatures& offered_;
  std::mt19937_64& random_;
};

}  // namespace

std::pair<double, PlanTemplate> anneal(Scorer& scorer, const PlanFeatures& offered, PlanTemplate from,
                                       double value, int64_t until, std::mt19937_64& random,
                                       const AnnealOptions& options) {
  Annealing annealing(scorer, offered, random);
  std::pair<double, PlanTemplate> best(value, from);
  const auto begin = static_cast<double>(scorer.steps()),
             length = std::max(1.0, static_cast<double>(until) - begin);
  PlanTemplate next, other;  // here, for their memory
  while (!scorer.spent() && scorer.steps() < until) {
    scorer.count(options.attempt_steps);
    next = from;
    const double done = (static_cast<double>(scorer.steps()) - begin) / length;
    bool fine = false;
    if (!annealing.change(next, options.fine_first + (options.fine_last - options.fine_first) * done, fine))
      continue;
    const double threshold = options.cold + (options.warm - options.cold) * (1 - done) * (1 - done);
    const double most = value * (1 + threshold * annealing.part());
    double next_value = scorer.score(next, most);
    if (!fine) {
      // Another shape may be better placed, or sharded, in another way.
      other = next;
      for (const int block : {next.pipelines(), 1})
        for (const Zero zero : zero_degrees_of(scorer.space(), offered, next)) {
          other.block = block;
          other.zero = zero;
          if (const double other_value = scorer.score(other, std::min(most, next_value));
              other_value < std::min(most, next_value)) {
            next_value = other_value;
            next = other;
          }
        }
    }
    if (!(next_value < most)) continue;
    value = next_value;
    std::swap(from, next);
    if (value < best.first) best = {value, from};
  }
  return best;
}

}  // namespace sailor::native
