// By rules, for many GPUs. First how many replicas of each stage each group of options (a type and TP degree
// in a region) gets (type_assignment.h); then, for every order of a region's zones, the zones are filled:
// with whole pipelines as far as they go, or stage by stage. The best of what comes out is taken.
#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "planner/search/assignment/assignment.h"
#include "planner/search/assignment/type_assignment.h"

namespace sailor {
namespace {

constexpr size_t kMostZonesToPermute = 5;

class Zones {
 public:
  Zones(const AssignmentProblem& problem, const PipelineTemplate& pipeline, double threshold)
      : p_(problem),
        costs_(problem.costs.stage()),
        resources_(problem.costs.resources()),
        template_(pipeline),
        threshold_(threshold) {}

  std::optional<Assignment> run() {
    if (std::optional<TypeAssignment> shares = assign_types(p_, template_)) {
      shares_ = std::move(*shares);
      fill_zones();
    }
    return std::move(best_);
  }

 private:
  void fill_zones() {
    // The zones of each region, in their own order at first.
    std::vector<std::string> regions;
    for (const auto& shares : shares_) {
      const std::string& region = resources_.options[shares[0].options[0]].region;
      if (std::find(regions.begin(), regions.end(), region) == regions.end()) regions.push_back(region);
    }
    std::map<std::string, std::vector<std::string>> order;
    for (const Option& option : resources_.options) {
      std::vector<std::string>& zones = order[option.region];
      if (std::find(zones.begin(), zones.end(), option.zone) == zones.end()) zones.push_back(option.zone);
    }
    for (auto& [region, zones] : order) std::sort(zones.begin(), zones.end());
    // One region after another, the others as they are best so far.
    for (const std::string& region : regions) {
      std::vector<std::string>& zones = order[region];
      if (zones.size() > kMostZonesToPermute) {
        attempt_all(order);
        continue;
      }
      std::vector<std::string> best = zones;
      double best_value = std::numeric_limits<double>::infinity();
      do {
        if (const double value = attempt_all(order); value < best_value) {
          best_value = value;
          best = zones;
        }
      } while (zones.size() > 1 && std::next_permutation(zones.begin(), zones.end()));
      zones = best;
    }
  }

  using Order = std::map<std::string, std::vector<std::string>>;

  double attempt_all(const Order& order) {
    const double whole = attempt(whole_pipelines(order));
    return std::min(whole, attempt(stage_by_stage(order)));
  }

  double attempt(const Layout& layout) {
    if (layout.stages.size() != template_.stages.size() || !within_resources(resources_, layout))
      return std::numeric_limits<double>::infinity();
    const LayoutValue value = evaluate(costs_, resources_, layout, p_.replicas, p_.microbatches);
    const double v = p_.goal.value(value.iteration_s, value.charge);
    if (p_.goal.allowed_value(value.iteration_s, value.charge) < threshold_) {
      threshold_ = v;
      best_ = Assignment{layout, value};
    }
    return v;
  }

  std::vector<int64_t> all() const { return {resources_.capacity.begin(), resources_.capacity.end()}; }
  int option_in(const GroupShare& share, const std::string& zone) const {
    for (int o : share.options)
      if (resources_.options[o].zone == zone) return o;
    return -1;
  }
  Layout empty_layout() const {
    Layout layout;
    for (const PipelineTemplate::Stage& stage : template_.stages)
      layout.stages.push_back({stage.first_layer, stage.end_layer, {}});
    return layout;
  }

  // Zone after zone as many replicas of a share as there is room for.
  bool fill(const GroupShare& share, int replicas, const std::vector<std::string>& zones,
            Layout::Stage& stage, std::vector<int64_t>& left) const {
    for (const std::string& zone : zones) {
      const int o = option_in(share, zone);
      if (o < 0 || replicas == 0) continue;
      const int n = resources_.room(o, left, replicas);
      stage.append(o, n);
      resources_.take(o, n, left);
      replicas -= n;
    }
    return replicas == 0;
  }

  // One group per stage: pipelines that stay in one zone of each region, as many as the zone holds, then the
  // rest stage by stage.
  Layout whole_pipelines(const Order& order) const {
    Layout layout = empty_layout();
    std::vector<int64_t> left = all();
    for (const auto& [region, zones] : order) {
      std::vector<size_t> stages;
      for (size_t i = 0; i < shares_.size(); ++i)
        if (resources_.options[shares_[i][0].options[0]].region == region) {
          if (shares_[i][0].replicas != p_.replicas) return {};
          stages.push_back(i);
        }
      if (stages.empty()) continue;
      int open = p_.replicas;
      for (const std::string& zone : zones) {
        int most = open;
        // What one pipeline uses here.
        std::vector<int64_t> once(left.size(), 0);
        for (size_t i : stages) {
          const int o = option_in(shares_[i][0], zone);
          if (o < 0) most = 0;
          for (size_t c = 0; o >= 0 && c < left.size(); ++c) once[c] += resources_.use[o][c];
        }
        for (size_t c = 0; c < left.size(); ++c)
          if (once[c] > 0) most = static_cast<int>(std::min<int64_t>(most, left[c] / once[c]));
        if (most <= 0) continue;
        for (size_t i : stages) {
          const int o = option_in(shares_[i][0], zone);
          layout.stages[i].append(o, most);
          resources_.take(o, most, left);
        }
        open -= most;
      }
      for (size_t i : stages)
        if (!fill(shares_[i][0], open, zones, layout.stages[i], left)) return {};
    }
    return layout;
  }

  // Stage by stage: one that fits a single zone takes the first that holds it, others zone after zone.
  Layout stage_by_stage(const Order& order) const {
    Layout layout = empty_layout();
    std::vector<int64_t> left = all();
    for (size_t i = 0; i < shares_.size(); ++i)
      for (const GroupShare& share : shares_[i]) {
        if (share.replicas == 0) continue;
        const std::vector<std::string>& zones = order.at(resources_.options[share.options[0]].region);
        bool done = false;
        for (size_t z = 0; z < zones.size() && !done; ++z) {
          const int o = option_in(share, zones[z]);
          if (o < 0 || resources_.room(o, left, share.replicas) < share.replicas) continue;
          layout.stages[i].append(o, share.replicas);
          resources_.take(o, share.replicas, left);
          done = true;
        }
        if (!done && !fill(share, share.replicas, zones, layout.stages[i], left)) return {};
      }
    return layout;
  }

  const AssignmentProblem& p_;
  const StageCosts& costs_;
  const Resources& resources_;
  const PipelineTemplate& template_;
  double threshold_;
  TypeAssignment shares_;
  std::optional<Assignment> best_;
};

}  // namespace

std::optional<Assignment> assign_greedily(const AssignmentProblem& problem, const PipelineTemplate& pipeline,
                                          double threshold) {
  return Zones(problem, pipeline, threshold).run();
}

}  // namespace sailor
