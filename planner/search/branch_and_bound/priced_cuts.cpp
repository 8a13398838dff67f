#include "planner/search/branch_and_bound/priced_cuts.h"

#include <algorithm>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {
constexpr double kPriceSlack = 1 + 1e-9;
// Memory beyond that many stages behind counts as with that number: still a bound, and prices hardly differ.
constexpr int kMostBehind = 5;
}  // namespace

PricedCuts::PricedCuts(ClassCosts& costs, const StageSync& sync, int replicas)
    : costs_(costs),
      resources_(costs.resources()),
      sync_(sync),
      replicas_(replicas),
      layers_(costs.stage().layers()),
      most_behind_(std::min(kMostBehind, layers_)),
      lowest_(2 * static_cast<size_t>(costs.size()) * (layers_ + 1)) {
  // Supplies are by region.
  for (size_t s = 0; s < supplies().size(); ++s) {
    if (s == 0 || supplies()[s].region != supplies()[s - 1].region)
      regions_ = std::min(regions_ + 1, kMostRegions);
    region_of_supply_.push_back(regions_ - 1);
  }
  for (int placement = 0; placement < costs.size(); ++placement) {
    const PlacementClass& of = costs.classes()[placement];
    region_of_class_.push_back(region_of_supply_[resources_.options[of.slowest()].supply]);
    if (!of.refines) coarse_.push_back(placement);
  }
  tabulate_messages();
  segment_price_.resize(static_cast<size_t>(costs.size()) * (layers_ + 1));
  const size_t states = static_cast<size_t>(most_behind_ + 1) * (layers_ + 1);
  rest_.resize(states);
  step_.resize(states);
  known_.resize(states);
}

void PricedCuts::tabulate_messages() {
  activation_s_.assign(static_cast<size_t>(costs_.size()) * layers_, kNever);
  gradient_s_ = activation_s_;
  crossing_s_.assign(static_cast<size_t>(regions_) * regions_, kNever);
  crossing_stage_s_ = crossing_s_;
  for (int up : coarse_)
    for (int down : coarse_)
      for (int layer = 1; layer < layers_; ++layer) {
        const size_t at = static_cast<size_t>(up) * layers_ + layer;
        activation_s_[at] = std::min(activation_s_[at], costs_.activation_s(up, down, layer));
        gradient_s_[at] = std::min(gradient_s_[at], costs_.gradient_s(up, down, layer));
      }
  for (int up : coarse_)
    for (int down : coarse_) {
      if (region_of_class_[up] == region_of_class_[down]) continue;
      const size_t pair = static_cast<size_t>(region_of_class_[up]) * regions_ + region_of_class_[down];
      for (int layer = 1; layer < layers_; ++layer) {
        const size_t at = static_cast<size_t>(up) * layers_ + layer;
        const double activation = costs_.activation_s(up, down, layer);
        const double gradient = costs_.gradient_s(up, down, layer);
        crossing_s_[pair] =
            std::min(crossing_s_[pair], activation - activation_s_[at] + gradient - gradient_s_[at]);
        crossing_stage_s_[pair] =
            std::min(crossing_stage_s_[pair], std::max(activation + costs_.compute_s(up, layer - 1, layer),
                                                       gradient + costs_.compute_s(down, layer, layer + 1)));
      }
    }
}

double PricedCuts::least_of_pairs(const std::vector<double>& of_pair, uint64_t regions) const {
  double least = kNever;
  for (int a = 0; a < regions_; ++a)
    for (int b = 0; b < regions_; ++b)
      if (a != b && (regions >> a & 1u) && (regions >> b & 1u))
        least = std::min(least, of_pair[static_cast<size_t>(a) * regions_ + b]);
  return least;
}

void PricedCuts::set_caps(double longest_s, double sync_s, uint64_t regions) {
  longest_s *= kPriceSlack;
  sync_s *= kPriceSlack;
  usable_.clear();
  for (int placement : coarse_)
    if (is_in(placement, regions)) usable_.push_back(placement);
  for (bool behind : {false, true})
    for (int placement = 0; placement < costs_.size(); ++placement) {
      int16_t* lowest = &lowest_[(static_cast<size_t>(behind) * costs_.size() + placement) * (layers_ + 1)];
      if (!is_in(placement, regions)) {
        for (int end = 0; end <= layers_; ++end) lowest[end] = static_cast<int16_t>(end);
        continue;
      }
      costs_.find_lowest_in_time(placement, behind, longest_s, lowest);
      for (int end = behind ? 1 : layers_, in_sync = 0; end <= layers_; ++end) {
        while (in_sync < end && sync_.this_or_longer_s(placement, in_sync, end) > sync_s) ++in_sync;
        lowest[end] = std::max(lowest[end], static_cast<int16_t>(in_sync));
      }
    }
}

const PlacementClass::Group& PricedCuts::cheapest(int placement, uint32_t groups) const {
  const std::vector<PlacementClass::Group>& all = costs_.classes()[placement].groups;
  const PlacementClass::Group* best = nullptr;
  for (size_t g = 0; g < all.size(); ++g)
    if (PlacementClass::serves(groups, g) && (best == nullptr || price_of(all[g]) < price_of(*best)))
      best = &all[g];
  return *best;
}

double PricedCuts::messages_s(int placement, int end, int behind, bool first) const {
  if (behind == 0) return 0;
  const size_t at = static_cast<size_t>(placement) * layers_ + end;
  // The first stage of more than three pays for its activation twice, the last for its gradient.
  return activation_s_[at] * (first && behind >= 3 ? 2 : 1) + gradient_s_[at] * (behind == 1 ? 2 : 1);
}

double PricedCuts::solve(const std::vector<double>& prices) {
  prices_ = prices;
  for (int placement : usable_) {
    uint32_t last_groups = 0;
    double last_price = 0;
    for (int end = 1; end <= layers_; ++end) {
      const auto& segments = costs_.segments(placement, end);
      std::vector<double>& of = segment_price_[static_cast<size_t>(placement) * (layers_ + 1) + end];
      of.resize(segments.size());
      for (size_t k = 0; k < segments.size(); ++k) {
        if (segments[k].groups == 0) continue;
        if (segments[k].groups != last_groups) {
          last_groups = segments[k].groups;
          last_price = replicas_ * price_of(cheapest(placement, last_groups));
        }
        of[k] = last_price;
      }
    }
  }
  std::fill(known_.begin(), known_.end(), 0);
  return rest(layers_, 0);
}

double PricedCuts::rest(int end, int behind) {
  if (end == 0) return 0;
  behind = std::min(behind, most_behind_);
  if (!known_[static_cast<size_t>(behind) * (layers_ + 1) + end]) find_rest(end, behind);
  return rest_[state(end, behind)];
}

void PricedCuts::find_rest(int end, int behind) {
  known_[static_cast<size_t>(behind) * (layers_ + 1) + end] = 1;
  rest_[state(end, behind)] = kNever;
  step_[state(end, behind)] = {};
  for (int placement : usable_) {
    const int lowest = std::max(
        lowest_in_time(placement, end, behind > 0),
        costs_.lowest_first(costs_.classes()[placement].slowest(), end, std::min(behind + 1, layers_)));
    if (lowest >= end) continue;
    const auto& segments = costs_.segments(placement, end);
    const std::vector<double>& prices = segment_price_[static_cast<size_t>(placement) * (layers_ + 1) + end];
    double least = kNever, whole = kNever;
    Step step, whole_step;
    for (size_t k = 0; k < segments.size() && segments[k].highest >= lowest; ++k) {
      if (segments[k].groups == 0) continue;
      for (int first = segments[k].highest; first >= std::max(lowest, segments[k].lowest); --first) {
        double s = costs_.compute_s(placement, first, end) + prices[k];
        const Step here{static_cast<int16_t>(first), static_cast<int16_t>(placement), segments[k].groups};
        if (first == 0) {
          whole = s;
          whole_step = here;
        } else if (s < least && (s += rest(first, behind + 1)) < least) {
          least = s;
          step = here;
        }
      }
    }
    double& best = rest_[state(end, behind)];
    if (const double s = least + messages_s(placement, end, behind, false); s < best) {
      best = s;
      step_[state(end, behind)] = step;
    }
    if (const double s = whole + messages_s(placement, end, behind, true); s < best) {
      best = s;
      step_[state(end, behind)] = whole_step;
    }
  }
}

std::vector<PricedCuts::Stage> PricedCuts::path() {
  std::vector<Stage> out;
  for (int end = layers_; end > 0;) {
    const int behind = static_cast<int>(out.size());
    if (rest(end, behind) == kNever) return {};
    const Step& step = step_[state(end, std::min(behind, most_behind_))];
    out.push_back({step.first, end, step.placement, step.groups});
    end = step.first;
  }
  return out;
}

std::vector<double> PricedCuts::use_of(const std::vector<Stage>& path) const {
  std::vector<double> use(supplies().size(), 0);
  for (const Stage& stage : path) {
    const PlacementClass::Group& group = cheapest(stage.placement, stage.groups);
    use[resources_.options[group.option].supply] += static_cast<double>(replicas_) * group.shape.gpus();
  }
  return use;
}

}  // namespace sailor
