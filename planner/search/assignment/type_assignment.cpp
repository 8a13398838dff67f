#include "planner/search/assignment/type_assignment.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace sailor {
namespace {

constexpr double kRatios[] = {1, 0.5, 2, 0.25, 4};  // of prices per GPU; TP degrees are powers of two mostly
constexpr size_t kMostPriced = 4;                   // types of a region; more have too many combinations

class TypeAssignmentSearch {
 public:
  TypeAssignmentSearch(const AssignmentProblem& problem, const PipelineTemplate& pipeline)
      : p_(problem), resources_(problem.costs.resources()) {
    std::vector<bool> counted(resources_.pools.size(), false);
    std::map<std::pair<std::string, std::string>, size_t> supply_of;  // (region, type)
    supply_of_.resize(resources_.options.size());
    for (size_t o = 0; o < resources_.options.size(); ++o) {
      const Option& option = resources_.options[o];
      const auto [it, added] = supply_of.try_emplace({option.region, option.gpu_type}, gpus_.size());
      if (added) gpus_.push_back(0);
      supply_of_[o] = it->second;
      if (counted[option.pool]) continue;
      counted[option.pool] = true;
      gpus_[it->second] += resources_.free_gpus(option.pool);
    }
    for (const std::vector<int>& options : serving_options(p_, pipeline)) {
      std::vector<GroupShare> shares;
      for (int o : options) {
        const auto same = std::find_if(shares.begin(), shares.end(), [&](const GroupShare& share) {
          return alike_but_for_zone(resources_.options[share.options[0]], resources_.options[o]);
        });
        if (same == shares.end())
          shares.push_back({{o}, 0});
        else
          same->options.push_back(o);
      }
      stages_.push_back(std::move(shares));
    }
  }

  std::vector<TypeAssignment> run(size_t most) {
    std::vector<TypeAssignment> out;
    if (std::any_of(stages_.begin(), stages_.end(), [](const auto& shares) { return shares.empty(); }))
      return out;
    TypeAssignment shares = stages_;
    if (slowest_first(shares)) out.push_back(shares);
    // A choice of types is a choice for some stage.
    const bool choice =
        std::any_of(stages_.begin(), stages_.end(), [&](const std::vector<GroupShare>& stage) {
          return std::any_of(stage.begin(), stage.end(),
                             [&](const GroupShare& share) { return supply(share) != supply(stage[0]); });
        });
    if (!choice || gpus_.size() > kMostPriced) return out;
    using Rank = std::tuple<int, double, size_t>;  // mixed stages, USD per second, how it came
    std::vector<std::pair<Rank, TypeAssignment>> found;
    std::vector<double> prices(gpus_.size(), 1);
    for_all_prices(1, prices, [&] {
      shares = stages_;
      if (!cheapest_first(prices, shares)) return;
      found.push_back({{groups_in_use(shares), usd_per_s(shares), found.size()}, shares});
    });
    const bool money = p_.goal.objective == Objective::cost || p_.goal.max_usd < 1e300;
    std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
      const auto& [groups_a, usd_a, n_a] = a.first;
      const auto& [groups_b, usd_b, n_b] = b.first;
      if (money && usd_a != usd_b) return usd_a < usd_b;
      return std::tie(groups_a, usd_a, n_a) < std::tie(groups_b, usd_b, n_b);
    });
    for (auto& ranked : found) {
      if (out.size() >= most) break;
      TypeAssignment& way = ranked.second;
      if (std::none_of(out.begin(), out.end(), [&](const TypeAssignment& other) { return same(way, other); }))
        out.push_back(std::move(way));
    }
    return out;
  }

 private:
  size_t supply(const GroupShare& share) const { return supply_of_[share.options[0]]; }
  int tp(const GroupShare& share) const { return resources_.options[share.options[0]].tp; }

  template <typename Visit>
  void for_all_prices(size_t from, std::vector<double>& prices, const Visit& visit) {
    if (from == prices.size()) return visit();
    for (double ratio : kRatios) {
      prices[from] = ratio;
      for_all_prices(from + 1, prices, visit);
    }
  }

  static bool same(const TypeAssignment& a, const TypeAssignment& b) {
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t g = 0; g < a[i].size(); ++g)
        if (a[i][g].replicas != b[i][g].replicas) return false;
    return true;
  }

  static int groups_in_use(const TypeAssignment& stages) {
    int n = 0;
    for (const std::vector<GroupShare>& shares : stages)
      for (const GroupShare& share : shares) n += share.replicas > 0;
    return n;
  }

  double usd_per_s(const TypeAssignment& stages) const {
    double usd = 0;
    for (const std::vector<GroupShare>& shares : stages)
      for (const GroupShare& share : shares)
        usd += share.replicas * resources_.options[share.options[0]].usd_per_s;
    return usd;
  }

  // Every stage all the slowest at first; then, of all moves out of a short supply, the one that frees most
  // per GPU that it takes elsewhere.
  bool slowest_first(TypeAssignment& stages) const {
    std::vector<int> left = gpus_;
    for (std::vector<GroupShare>& shares : stages) {
      shares[0].replicas = p_.replicas;
      left[supply(shares[0])] -= p_.replicas * tp(shares[0]);
    }
    for (int round = 0; round < 64; ++round) {
      GroupShare *from = nullptr, *to = nullptr;
      double best = 0;
      bool is_short = false;
      for (auto& shares : stages)
        for (GroupShare& a : shares) {
          if (a.replicas == 0 || left[supply(a)] >= 0) continue;
          is_short = true;
          for (GroupShare& b : shares) {
            if (supply(a) == supply(b) || left[supply(b)] < tp(b)) continue;
            const double gain = static_cast<double>(tp(a)) / tp(b);
            if (gain > best) {
              best = gain;
              from = &a;
              to = &b;
            }
          }
        }
      if (!is_short) return true;
      if (from == nullptr) return false;
      const int n = std::min(
          {from->replicas, (-left[supply(*from)] + tp(*from) - 1) / tp(*from), left[supply(*to)] / tp(*to)});
      left[supply(*from)] += n * tp(*from);
      left[supply(*to)] -= n * tp(*to);
      from->replicas -= n;
      to->replicas += n;
    }
    return false;
  }

  // Every stage takes what costs it least at these prices per GPU; who would lose most chooses first.
  bool cheapest_first(const std::vector<double>& prices, TypeAssignment& stages) const {
    struct Turn {
      double regret;
      size_t stage;
      std::vector<size_t> groups;  // one of each supply, the cheapest first
    };
    std::vector<Turn> turns;
    for (size_t i = 0; i < stages.size(); ++i) {
      Turn turn{0, i, {}};
      const auto price = [&](size_t g) { return prices[supply(stages[i][g])] * tp(stages[i][g]); };
      for (size_t g = 0; g < stages[i].size(); ++g) turn.groups.push_back(g);
      std::stable_sort(turn.groups.begin(), turn.groups.end(),
                       [&](size_t a, size_t b) { return price(a) < price(b); });
      std::vector<bool> seen(gpus_.size(), false);
      std::erase_if(turn.groups, [&](size_t g) {
        const size_t s = supply(stages[i][g]);
        const bool known = seen[s];
        seen[s] = true;
        return known;
      });
      turn.regret = turn.groups.size() < 2 ? 1e300 : price(turn.groups[1]) - price(turn.groups[0]);
      turns.push_back(std::move(turn));
    }
    std::stable_sort(turns.begin(), turns.end(),
                     [](const Turn& a, const Turn& b) { return a.regret > b.regret; });
    std::vector<int> left = gpus_;
    for (const Turn& turn : turns) {
      int open = p_.replicas;
      for (size_t g : turn.groups) {
        GroupShare& share = stages[turn.stage][g];
        share.replicas = std::min(open, left[supply(share)] / tp(share));
        left[supply(share)] -= share.replicas * tp(share);
        open -= share.replicas;
      }
      if (open > 0) return false;
    }
    return true;
  }

  const AssignmentProblem& p_;
  const Resources& resources_;
  std::vector<size_t> supply_of_;  // by option
  std::vector<int> gpus_;          // by supply
  TypeAssignment stages_;          // nothing assigned yet
};

}  // namespace

std::vector<TypeAssignment> type_assignments(const AssignmentProblem& problem,
                                             const PipelineTemplate& pipeline, size_t most) {
  return TypeAssignmentSearch(problem, pipeline).run(most);
}

}  // namespace sailor
