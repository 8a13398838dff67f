#include "planner/search/native/few_gpus.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "planner/search/native/cut_layers.h"
#include "planner/search/native/usual_ways.h"

namespace sailor::native {
namespace {

// A pipeline that may be combined with different ones.
struct Lane {
  TemplateClass pipeline;
  ClassTimes times;
  std::vector<int> used;  // GPUs by pool
};

// `pipelines[i]` of lane `lanes[i]`.
struct Pair {
  double seconds = 0;  // without messages and sums
  size_t lanes[2];
  int pipelines[2];
  size_t rank = 0;  // of those with the same GPUs
};

class FewGpus {
 public:
  FewGpus(Scorer& scorer, const PlanFeatures& offered, const FewGpusOptions& options)
      : scorer_(scorer),
        space_(scorer.space()),
        offered_(offered),
        options_(options),
        lanes_(space_.microbatches.size()) {}

  void run() {
    const int64_t until = part(options_.sequences);
    std::vector<int> sequence, used(space_.pools.size(), 0);
    const auto longest = static_cast<size_t>(std::min(space_.layers(), space_.gpus()));
    for (size_t length = 1; length <= longest; ++length) extend(sequence, used, length, until);
    if (!offered_.contains(PlanFeature::unlike_cuts) || !offered_.contains(PlanFeature::unlike_shares))
      return;
    for (size_t i = 0; i < lanes_.size(); ++i)
      score_pairs(fastest(lanes_[i]), space_.microbatches[i],
                  part(options_.pairs / static_cast<double>(lanes_.size())));
  }

 private:
  // The steps at which this much more of the effort is spent.
  int64_t part(double of_all) const {
    return scorer_.steps() + static_cast<int64_t>(of_all * static_cast<double>(scorer_.most_steps()));
  }

  // Scores the sequences of options of that length that begin with `sequence`. `used`: GPUs by pool.
  void extend(std::vector<int>& sequence, std::vector<int>& used, size_t length, int64_t until) {
    if (scorer_.steps() > until || scorer_.spent()) return;
    if (sequence.size() == length) return score_sequence(sequence, used);
    for (size_t o = 0; o < space_.options.size(); ++o) {
      const SpaceOption& option = space_.options[o];
      const auto pool = static_cast<size_t>(option.pool);
      if (used[pool] + option.shape.gpus() > space_.pools[pool].gpus) continue;
      if (!sequence.empty() && !space_.linked(sequence.back(), static_cast<int>(o))) continue;
      used[pool] += option.shape.gpus();
      sequence.push_back(static_cast<int>(o));
      extend(sequence, used, length, until);
      sequence.pop_back();
      used[pool] -= option.shape.gpus();
    }
  }

  // Number of pipelines that fit in addition to `taken`.
  int room_for(const std::vector<int>& used, const std::vector<int>& taken) const {
    int most = space_.gpus();
    for (size_t p = 0; p < used.size(); ++p)
      if (used[p] > 0) most = std::min(most, (space_.pools[p].gpus - taken[p]) / used[p]);
    return most;
  }

  void score_sequence(const std::vector<int>& sequence, const std::vector<int>& used) {
    for (size_t i = 0; i < space_.microbatches.size(); ++i)
      for (const Recompute mode : uniform_recompute(offered_)) {
        const bool possible = std::all_of(sequence.begin(), sequence.end(), [&](int option) {
          return space_.has_times(option, space_.microbatches[i]) &&
                 (mode == Recompute::none || space_.can_recompute(option, mode));
        });
        if (!possible) continue;
        if (mode == Recompute::none) add_lane(sequence, i, used);
        for (const int chunks : {1, 2}) {
          if (chunks > 1 && (!offered_.contains(PlanFeature::interleave) || sequence.size() < 2)) continue;
          if (chunks * sequence.size() > static_cast<size_t>(space_.layers())) continue;
          // Where memory asks for it instead of everywhere. Of several chunks it is not known where.
          const bool choose = mode != Recompute::none && chunks == 1;
          PlanTemplate of = template_of(sequence, i, choose ? Recompute::none : mode, chunks);
          for (int pipelines = room_for(used, std::vector<int>(used.size(), 0)); pipelines > 0; --pipelines) {
            of.classes[0].pipelines = pipelines;
            score_usual_ways(scorer_, offered_, of, {options_.kept, choose, true});
          }
        }
      }
  }

  PlanTemplate template_of(const std::vector<int>& sequence, size_t size, Recompute mode, int chunks) const {
    PlanTemplate of;
    of.microbatch = space_.microbatches[size];
    of.interleave = chunks;
    of.classes.emplace_back();
    of.classes[0].microbatches = num_microbatches(space_.context.job.training.global_batch, of.microbatch);
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (const int option : sequence) of.classes[0].stages.push_back({option, 0, mode});
    return of;
  }

  // Layers are split as with the maximum number of replicas. GPUs of any zone represent those of one zone.
  void add_lane(const std::vector<int>& sequence, size_t size, const std::vector<int>& used) {
    for (const int option : sequence)
      if (space_.pools[static_cast<size_t>(space_.options[static_cast<size_t>(option)].pool)].joint) return;
    PlanTemplate of = template_of(sequence, size, Recompute::none, 1);
    TemplateClass& pipeline = of.classes[0];
    pipeline.pipelines = space_.gpus();
    of.zero = zero_degrees(offered_).back();
    if (!cut_layers(scorer_, of, 0, offered_.contains(PlanFeature::recompute))) return;
    pipeline.pipelines = 1;
    lanes_[size].push_back({pipeline, times_of(space_, of, pipeline), used});
  }

  // Of pipelines with the same GPUs.
  std::vector<Lane> fastest(std::vector<Lane>& lanes) const {
    std::stable_sort(lanes.begin(), lanes.end(), [](const Lane& a, const Lane& b) {
      return std::tie(a.used, a.times.slowest_s, a.times.others_s) <
             std::tie(b.used, b.times.slowest_s, b.times.others_s);
    });
    std::vector<Lane> out;
    for (Lane& lane : lanes) {
      const size_t n = out.size(), most = options_.alike;
      if (n < most || out[n - most].used != lane.used) out.push_back(std::move(lane));
    }
    return out;
  }

  std::vector<Pair> pairs_of(const std::vector<Lane>& lanes, double microbatches) const {
    std::vector<Pair> out;
    std::vector<int> taken(space_.pools.size(), 0);
    for (size_t a = 0; a < lanes.size(); ++a) {
      const int most = room_for(lanes[a].used, std::vector<int>(taken.size(), 0));
      for (int count = 1; count <= most; ++count) {
        for (size_t p = 0; p < taken.size(); ++p) taken[p] = count * lanes[a].used[p];
        for (size_t b = a + 1; b < lanes.size(); ++b) {
          scorer_.count(4);
          const ClassTimes &x = lanes[a].times, &y = lanes[b].times;
          for (int others = room_for(lanes[b].used, taken); others > 0; --others) {
            // By t a pipeline has done (t - fill) / slowest stage microbatches.
            const double rate = count / x.slowest_s + others / y.slowest_s;
            const double fill = count * x.others_s / x.slowest_s + others * y.others_s / y.slowest_s;
            out.push_back({(microbatches + fill) / rate, {a, b}, {count, others}});
          }
        }
      }
    }
    return out;
  }

  // The fastest by that estimate first. It does not know of messages and sums, which depend on the GPUs:
  // every choice of them has its turn.
  void score_pairs(const std::vector<Lane>& lanes, int microbatch, int64_t until) {
    const int64_t total = num_microbatches(space_.context.job.training.global_batch, microbatch);
    std::vector<Pair> pairs = pairs_of(lanes, static_cast<double>(total));
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const Pair& a, const Pair& b) { return a.seconds < b.seconds; });
    std::map<std::vector<int>, size_t> known;
    for (Pair& pair : pairs) {
      std::vector<int> gpus = {pair.pipelines[0], pair.pipelines[1]};
      for (const size_t lane : pair.lanes)
        gpus.insert(gpus.end(), lanes[lane].used.begin(), lanes[lane].used.end());
      pair.rank = known[std::move(gpus)]++;
    }
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const Pair& a, const Pair& b) { return a.rank < b.rank; });
    pairs.resize(std::min(pairs.size(), options_.most_pairs));
    for (const Pair& pair : pairs) {
      if (scorer_.steps() > until || scorer_.spent()) break;
      if (pair.seconds > scorer_.most_iteration_s(options_.factor)) continue;
      PlanTemplate of;
      of.microbatch = microbatch;
      for (const size_t side : {0, 1}) {
        of.classes.push_back(lanes[pair.lanes[side]].pipeline);
        of.classes.back().pipelines = pair.pipelines[side];
      }
      share_equally(space_, of);
      const bool choose = offered_.contains(PlanFeature::recompute);
      score_usual_ways(scorer_, offered_, of, {options_.kept, choose, true});
      if (can_interleave(of)) {
        for (TemplateClass& pipelines : of.classes) {
          const std::vector<TemplateStage> chunk = pipelines.stages;
          pipelines.stages.insert(pipelines.stages.end(), chunk.begin(), chunk.end());
        }
        of.interleave = 2;
        score_usual_ways(scorer_, offered_, std::move(of), {options_.kept, false, true});
      }
    }
  }

  // Two chunks on every group, of pipelines with as many groups.
  bool can_interleave(const PlanTemplate& of) const {
    const size_t groups = of.classes[0].stages.size();
    return offered_.contains(PlanFeature::interleave) && groups > 1 &&
           groups == of.classes[1].stages.size() && 2 * groups <= static_cast<size_t>(space_.layers());
  }

  Scorer& scorer_;
  const Space& space_;
  const PlanFeatures& offered_;
  const FewGpusOptions options_;
  std::vector<std::vector<Lane>> lanes_;  // by size of microbatches
};

}  // namespace

void score_few_gpus(Scorer& scorer, const PlanFeatures& offered, const FewGpusOptions& options) {
  FewGpus(scorer, offered, options).run();
}

}  // namespace sailor::native
