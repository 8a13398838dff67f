#include "spank_plugin/node_choice.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace sailor {
namespace {

// Nodes that are alike, by index in the snapshot.
using Kind = std::vector<size_t>;

std::vector<Kind> kinds_of(const Snapshot& snapshot) {
  using Key = std::tuple<std::string, std::string, std::string, size_t>;
  std::map<Key, Kind> kinds;
  for (size_t i = 0; i < snapshot.nodes.size(); ++i) {
    const SnapshotNode& node = snapshot.nodes[i];
    kinds[{node.zone, node.partition, node.gpu_type, node.free_gpus.size()}].push_back(i);
  }
  std::vector<Kind> result;
  for (auto& [key, kind] : kinds) result.push_back(std::move(kind));
  return result;
}

// All ways to take `left` nodes of the kinds from `k` on, each a multiple of `bunch` or all of a kind; the
// last kind makes up the rest. Stops soon after `most`.
void enumerate(const std::vector<Kind>& kinds, size_t k, size_t left, size_t bunch, size_t most,
               std::vector<size_t>& counts, std::vector<std::vector<size_t>>& found) {
  if (found.size() > most) return;
  if (k == kinds.size()) {
    if (left == 0) found.push_back(counts);
    return;
  }
  size_t behind = 0;
  for (size_t i = k + 1; i < kinds.size(); ++i) behind += kinds[i].size();
  size_t least = left > behind ? left - behind : 0;
  size_t largest = std::min(kinds[k].size(), left);
  for (size_t count = least; count <= largest; ++count) {
    if (count != least && count != largest && count % bunch != 0) continue;
    counts.push_back(count);
    enumerate(kinds, k + 1, left - count, bunch, most, counts, found);
    counts.pop_back();
  }
}

std::optional<double> lesser(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? std::optional<double>(std::min(*a, *b)) : std::nullopt;
}

}  // namespace

NodeChoices choose_nodes(const Snapshot& snapshot, int max_nodes, size_t most) {
  NodeChoices choices;
  std::vector<Kind> kinds = kinds_of(snapshot);
  size_t wanted = std::min(snapshot.nodes.size(), static_cast<size_t>(std::max(max_nodes, 0)));
  std::vector<std::vector<size_t>> ways;
  for (size_t bunch = 1;; bunch *= 2) {
    ways.clear();
    std::vector<size_t> counts;
    enumerate(kinds, 0, wanted, bunch, most, counts, ways);
    // With groups of all nodes there is nothing more to skip: then use the result.
    if (ways.size() <= most || bunch > wanted) break;
    choices.complete = false;
  }
  if (ways.size() > most) ways.resize(most);
  for (const std::vector<size_t>& way : ways) {
    Snapshot chosen = snapshot;
    chosen.nodes.clear();
    for (size_t k = 0; k < kinds.size(); ++k) {
      for (size_t i = 0; i < way[k]; ++i) chosen.nodes.push_back(snapshot.nodes[kinds[k][i]]);
    }
    choices.snapshots.push_back(std::move(chosen));
  }
  return choices;
}

SearchResult better_of(SearchResult a, SearchResult b, Objective objective) {
  auto value = [&](const SearchResult& result) {
    return objective.value(result.candidates.front().prediction.figures());
  };
  bool second = a.candidates.empty() || (!b.candidates.empty() && value(b) < value(a));
  // A time limit says less than a proof that nothing fits.
  if (a.candidates.empty() && b.candidates.empty()) second = b.status == SearchStatus::time_limit;
  SearchResult& better = second ? b : a;
  SearchResult& other = second ? a : b;
  if (other.status != SearchStatus::infeasible) {  // a choice without plans bounds nothing
    better.bound_iteration_s = lesser(better.bound_iteration_s, other.bound_iteration_s);
    for (const Expense expense : kExpenses)
      better.bound[expense] = lesser(better.bound[expense], other.bound[expense]);
  }
  for (const auto& [reason, count] : other.rejected) better.rejected[reason] += count;
  better.stats.configurations += other.stats.configurations;
  better.stats.labels += other.stats.labels;
  better.stats.plans_scored += other.stats.plans_scored;
  better.stats.search_s += other.stats.search_s;
  better.stats.complete = better.stats.complete && other.stats.complete;
  return std::move(better);
}

}  // namespace sailor
