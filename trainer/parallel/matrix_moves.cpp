#include "trainer/parallel/matrix_moves.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>

namespace sailor {
namespace {

int owner_of(const std::vector<MatrixRange>& held, std::map<int, double>& work_of) {
  int owner = held.front().rank;
  for (const MatrixRange& range : held) {
    if (std::pair(work_of[range.rank], range.rank) < std::pair(work_of[owner], owner)) owner = range.rank;
  }
  return owner;
}

// Every element from the nearest of those that hold it.
std::vector<MatrixRange> nearest(const RankLayout& layout, int owner, const std::vector<MatrixRange>& held) {
  const auto node = [&](int rank) { return layout.slots()[static_cast<std::size_t>(rank)].node; };
  const auto distance = [&](const MatrixRange& range) {
    const bool near = !node(owner).empty() && node(range.rank) == node(owner);
    return std::tuple(range.rank == owner ? 0 : near ? 1 : 2, range.rank);
  };
  std::vector<int64_t> cuts;
  for (const MatrixRange& range : held) cuts.insert(cuts.end(), {range.first, range.first + range.count});
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<MatrixRange> gathered;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const MatrixRange* best = nullptr;
    for (const MatrixRange& range : held) {
      if (range.first > cuts[i] || range.first + range.count < cuts[i + 1]) continue;
      if (!best || distance(range) < distance(*best)) best = &range;
    }
    if (!best) throw std::logic_error("matrix moves: nobody holds an element");
    MatrixRange* const last = gathered.empty() ? nullptr : &gathered.back();
    if (last && last->rank == best->rank && last->slice == best->slice) {
      last->count += cuts[i + 1] - cuts[i];
    } else {
      gathered.push_back(
          {best->rank, best->slice, best->offset + cuts[i] - best->first, cuts[i], cuts[i + 1] - cuts[i]});
    }
  }
  return gathered;
}

}  // namespace

std::vector<std::vector<MatrixMoves>> plan_matrix_moves(const RankLayout& layout,
                                                        const std::vector<double>& work,
                                                        const std::vector<std::vector<MatrixRange>>& held) {
  std::vector<std::size_t> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
  std::map<int, double> work_of;
  std::map<int, std::size_t> owned;  // matrices of each owner
  std::vector<std::vector<MatrixMoves>> rounds;
  for (const std::size_t matrix : order) {
    if (held[matrix].empty()) throw std::logic_error("matrix moves: nobody holds a matrix");
    const int owner = owner_of(held[matrix], work_of);
    work_of[owner] += work[matrix];
    const std::size_t round = owned[owner]++;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back({matrix, owner, nearest(layout, owner, held[matrix]), held[matrix]});
  }
  return rounds;
}

}  // namespace sailor
