#include "planner/search/native/group_ways.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

namespace sailor::native {
namespace {

constexpr double kMany = 1e6;  // senders: only the node's rate matters

double least_s_per_byte(const LinkCurve* link, double senders) {
  if (link == nullptr) return kNever;
  double least = kNever;
  for (double bytes = 1e2; bytes < 1e11; bytes *= 4)
    least =
        std::min(least, std::max(0.0, link->time_s(bytes, senders) - link->latency_s()) / senders / bytes);
  return least;
}

// What is known of a way before it is known what fits.
struct Measured {
  GroupWay way;
  std::vector<double> forward_s, backward_s;  // by layer
  double unit_forward_s = 0, unit_backward_s = 0;
  // Layers that fit: from the first, among the blocks, to the last.
  int head = 0, middle = 0, tail = 0;

  bool holds(int layer, int layers) const {
    if (layer == 0) return head > 0;
    return layer == layers - 1 ? tail > 0 : std::max({head - 1, middle, tail - 1}) > 0;
  }
};

class Fitting {
 public:
  Fitting(const Space& space, IterationModel& model, const GroupWays::Question& question)
      : layers_(space.layers()), space_(space), model_(model), question_(question) {}

  // Returns whether all layers fit together.
  bool fit(Measured& of) const {
    if (fits(of.way, 0, layers_)) {
      of.head = of.tail = layers_;
      of.middle = layers_ - 2;
      return true;
    }
    of.head = most(layers_ - 1, [&](int count) { return fits(of.way, 0, count); });
    of.middle = most(layers_ - 2, [&](int count) { return fits(of.way, 1, 1 + count); });
    of.tail = most(layers_ - 1, [&](int count) { return fits(of.way, layers_ - count, layers_); });
    return false;
  }

 private:
  template <typename Fits>
  static int most(int high, const Fits& fits) {
    int low = 0;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (fits(middle))
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
  bool fits(const GroupWay& way, int first, int end) const {
    StageMemoryInput stage;
    stage.kind = space_.options[static_cast<size_t>(way.option)].kind;
    stage.first_layer = first;
    stage.end_layer = end;
    stage.recompute = way.recompute;
    stage.microbatch = question_.microbatch;
    const bool sharded = question_.zero1 || space_.context.framework.zero1;
    stage.replicas = sharded ? question_.most_replicas : question_.replicas;
    stage.zero1 = question_.zero1;
    return model_.fits(stage);
  }

  const int layers_;
  const Space& space_;
  IterationModel& model_;
  const GroupWays::Question& question_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return std::max(*middle, std::numeric_limits<double>::min());
}

}  // namespace

ZoneRates::ZoneRates(const Space& space)
    : near_s(space.options.size(), kNever), far_s(near_s), card_s(near_s), usd_per_s(near_s) {
  const bool mesh = space.context.framework.sums == FrameworkStyle::Sums::mesh;
  const auto alike = [&](const SpaceOption& a, const SpaceOption& b) {
    return a.tp == b.tp && space.kinds[a.kind].gpu_type == space.kinds[b.kind].gpu_type;
  };
  const auto keep_least = [&](const SpaceOption& of, std::vector<double>& values, double value) {
    for (size_t o = 0; o < space.options.size(); ++o)
      if (alike(of, space.options[o])) values[o] = std::min(values[o], value);
  };
  for (const SpaceOption& from : space.options) {
    keep_least(from, usd_per_s, space.kinds[from.kind].usd_per_s);
    for (const SpaceOption& to : space.options) {
      if (!mesh) break;
      keep_least(from, near_s, least_s_per_byte(space.kinds.find_link(from.kind, to.kind, true), 1));
      const LinkCurve* far = space.kinds.find_link(from.kind, to.kind, false);
      keep_least(from, far_s, least_s_per_byte(far, 1));
      keep_least(from, card_s, least_s_per_byte(far, kMany));
    }
  }
  for (std::vector<double>* values : {&near_s, &far_s, &card_s})
    std::replace(values->begin(), values->end(), kNever, 0.0);
}

double GroupWay::sum_s_per_byte(int replicas) const {
  if (replicas < 2) return 0;
  // To every other one goes a part; those of a node are near, and all of them send over its cards.
  const double all = replicas;
  double least = kNever;
  for (int here = 1; here <= std::min(near_replicas, replicas); ++here)
    least = std::min(least, std::max({near_s * (here - 1) / all, far_s * (all - here) / all,
                                      card_s * here * (all - here) / all}));
  return least;
}

GroupWays::GroupWays(const Space& space, const ZoneRates& rates, const Question& question) {
  const int layers = space.layers();
  const PlanningContext& context = space.context;
  const FrameworkStyle& style = context.framework;
  const Precision precision = context.job.training.precision;
  IterationModel model(space.kinds);
  const Fitting fitting(space, model, question);

  std::map<std::string, int> numbers;
  std::vector<Measured> all;
  overhead_s = kNever;
  for (size_t p = 0; p < space.pools.size(); ++p) {
    const SpacePool& pool = space.pools[p];
    if (pool.joint || pool.options.empty()) continue;
    const auto [number, added] =
        numbers.try_emplace(space.resources.pools[p].gpu_type, static_cast<int>(supplies.size()));
    if (added) supplies.emplace_back();
    GpuSupply& supply = supplies[static_cast<size_t>(number->second)];
    supply.gpus += pool.gpus;
    supply.node_gpus = std::max(supply.node_gpus, pool.node_gpus());
    for (const int option : pool.options) {
      // Alike in all zones: the rates are those of the best.
      const bool known = std::any_of(all.begin(), all.end(), [&](const Measured& other) {
        return other.way.supply == number->second &&
               other.way.tp == space.options[static_cast<size_t>(option)].tp;
      });
      if (known || !space.has_times(option, question.microbatch)) continue;
      const KindTimes& times = space.times(option, question.microbatch);
      const SpaceOption& of = space.options[static_cast<size_t>(option)];
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        if (recompute != Recompute::none && !(question.recompute && space.can_recompute(option, recompute)))
          continue;
        Measured measured;
        measured.way.supply = number->second;
        measured.way.option = option;
        measured.way.tp = of.tp;
        measured.way.recompute = recompute;
        for (int layer = 0; layer < layers; ++layer) {
          measured.forward_s.push_back(times.forward(layer, layer + 1));
          measured.backward_s.push_back(times.backward(recompute, layer, layer + 1));
        }
        measured.unit_forward_s = median(measured.forward_s);
        measured.unit_backward_s = median(measured.backward_s);
        measured.way.unit_s = measured.unit_forward_s + measured.unit_backward_s;
        measured.way.backward_share = measured.unit_backward_s / measured.way.unit_s;
        overhead_s = std::min(overhead_s, space.kinds[of.kind].profile->overheads.iteration_overhead_s);
        // What holds everything need not recompute.
        const bool everything = fitting.fit(measured);
        if (measured.head + measured.middle + measured.tail > 0) all.push_back(std::move(measured));
        if (everything) break;
      }
    }
  }

  // The work of layers, and what of it a way has room for.
  std::vector<double> before(1, 0);
  for (int layer = 0; layer < layers; ++layer) {
    double least = kNever, least_s = kNever, least_usd = kNever;
    for (const Measured& of : all) {
      if (!of.holds(layer, layers)) continue;
      const double forward_s = of.forward_s[static_cast<size_t>(layer)],
                   backward_s = of.backward_s[static_cast<size_t>(layer)], layer_s = forward_s + backward_s;
      least = std::min({least, forward_s / of.unit_forward_s, backward_s / of.unit_backward_s});
      least_s = std::min(least_s, layer_s);
      least_usd = std::min(least_usd, layer_s * rates.usd_per_s[static_cast<size_t>(of.way.option)]);
    }
    before.push_back(before.back() + least);
    longest_layer_s = std::max(longest_layer_s, least_s);
    usd += least_usd;
  }
  work = before.back();
  const auto work_of = [&](int first, int end) {
    return before[static_cast<size_t>(end)] - before[static_cast<size_t>(first)];
  };
  if (!(work < kNever)) return;  // some layer fits nowhere

  // Gradients and updates by layer, and by unit of work where that is least.
  const bool sharded = question.zero1 || style.zero1;
  const double shards = sharded ? question.most_replicas : 1;
  const double phases = sharded ? 1 : 2;
  const double gathered =
      question.replicas > 1 && sharded ? style.weight_bytes(precision) / style.sync_bytes_at(precision) : 0;
  std::vector<double> least_update_s(static_cast<size_t>(layers), kNever);
  std::vector<double> layer_bytes(static_cast<size_t>(layers), kNever);  // of gradients
  for (const SpaceOption& option : space.options)
    for (int layer = 0; layer < layers; ++layer) {
      double& bytes = layer_bytes[static_cast<size_t>(layer)];
      bytes = std::min(bytes, space.kinds.parameters(option.kind, layer, layer + 1) * option.tp *
                                  style.sync_bytes_at(precision));
    }
  for (Measured& of : all) {
    const auto option = static_cast<size_t>(of.way.option);
    const SpaceOption& is = space.options[option];
    of.way.near_replicas = std::max(1, supplies[static_cast<size_t>(of.way.supply)].node_gpus / is.tp);
    of.way.near_s = rates.near_s[option] / is.tp;
    of.way.far_s = rates.far_s[option] / is.tp;
    of.way.card_s = rates.card_s[option];
    const double s_per_byte = of.way.sum_s_per_byte(question.replicas);
    const std::vector<double>& update_s = space.times(of.way.option, question.microbatch).update_s;
    of.way.update_s = of.way.sum_bytes = kNever;
    for (int layer = 0; layer < layers; ++layer) {
      const auto l = static_cast<size_t>(layer);
      const double bytes = layer_bytes[l],
                   after_s = (update_s[l + 1] - update_s[l]) / shards + gathered * bytes * s_per_byte;
      least_update_s[l] = std::min(least_update_s[l], after_s);
      if (const double units = work_of(layer, layer + 1); units > 0) {
        of.way.sum_bytes = std::min(of.way.sum_bytes, phases * bytes / units);
        of.way.update_s = std::min(of.way.update_s, after_s / units);
      }
    }
    of.way.first_sum_bytes = phases * layer_bytes[0];
    of.way.most_work = std::max({work_of(0, of.head), work_of(layers - of.tail, layers),
                                 of.middle > 0 ? work_of(1, 1 + of.middle) : 0});
    ways.push_back(of.way);
  }
  layer_update_s = *std::max_element(least_update_s.begin(), least_update_s.end());
}

}  // namespace sailor::native
