#include "planner/search/improvement/block_moves.h"

#include <algorithm>

namespace sailor {

size_t BlockMoves::any_block() {
  return random_.below(next_.size());
}
int BlockMoves::any_stage() {
  return random_.below(costs_.stages());
}
std::vector<int>& BlockMoves::any_column(size_t block) {
  return next_[block].columns[random_.below(next_[block].columns.size())];
}

// Cuts a block into one that is repeated `times` times and the rest.
void BlockMoves::split(size_t block, int times) {
  if (times <= 0 || times >= next_[block].times) return;
  PipelineBlock rest = next_[block];
  rest.times -= times;
  next_[block].times = times;
  next_.insert(next_.begin() + block + 1, std::move(rest));
}

void BlockMoves::split_somewhere(size_t block) {
  const int times = next_[block].times;
  if (times > 1) split(block, random_.below(2) == 0 ? times / 2 : 1 + random_.below(times - 1));
}

bool BlockMoves::move() {
  switch (random_.below(5)) {
    case 0:
      split_somewhere(any_block());
      return other_zone();
    case 1:
      return other_zone();
    case 2:
      return reorder_stage();
    default:
      return swap_columns();
  }
}

bool BlockMoves::other_zone() {
  int& option = any_column(any_block())[any_stage()];
  const std::vector<int>& alike = costs_.alike(option);
  const int other = alike[random_.below(alike.size())];
  if (other == option) return false;
  option = other;
  return true;
}

// Two pipelines (or two equally long series of them) change places, in one stage or in all.
bool BlockMoves::swap_columns() {
  size_t a = any_block(), b = any_block();
  if (a > b) std::swap(a, b);
  if (a != b && next_[a].times != next_[b].times && random_.below(2) == 0) {
    const int times = std::min(next_[a].times, next_[b].times);
    split(b, times);
    const size_t before = next_.size();
    split(a, times);
    b += next_.size() - before;
  }
  std::vector<int>&x = any_column(a), &y = any_column(b);
  if (&x == &y || x == y) return false;
  if (random_.below(3) == 0)
    x.swap(y);
  else {
    const int i = any_stage();
    if (x[i] == y[i]) return false;
    // Mixed stages: kinds change places with their zones, which keeps what the stage is made of only when
    // both are repeated equally often.
    if (next_[a].times != next_[b].times) {
      const std::vector<int>& alike = costs_.alike(x[i]);
      if (std::find(alike.begin(), alike.end(), y[i]) == alike.end()) return false;
    }
    std::swap(x[i], y[i]);
    return true;
  }
  return next_[a].times == next_[b].times;
}

// The replicas of one stage in a new order, whatever they face: zone after zone, or some zones in turns.
bool BlockMoves::reorder_stage() {
  BlockCosts::Columns columns = BlockCosts::columns_of(next_);
  const int stage = any_stage();
  std::vector<std::pair<int, int>> counts;  // option, replicas
  for (const std::vector<int>& column : columns) {
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& count) { return count.first == column[stage]; });
    if (known == counts.end())
      counts.emplace_back(column[stage], 1);
    else
      ++known->second;
  }
  if (counts.size() < 2) return false;
  for (size_t k = counts.size(); k > 1; --k) std::swap(counts[k - 1], counts[random_.below(k)]);
  size_t j = 0;
  for (size_t first = 0; first < counts.size();) {
    const size_t end = std::min(counts.size(), first + 1 + random_.below(3));
    for (bool left = true; left;) {
      left = false;
      for (size_t k = first; k < end; ++k)
        if (counts[k].second > 0) {
          columns[j++][stage] = counts[k].first;
          left = --counts[k].second > 0 || left;
        }
    }
    first = end;
  }
  next_ = BlockCosts::blocks_of(columns);
  return true;
}

size_t BlockMoves::tidy() {
  size_t columns = 0;
  for (size_t b = 0; b < next_.size(); ++b) {
    PipelineBlock& block = next_[b];
    const bool alike = std::all_of(block.columns.begin(), block.columns.end(),
                                   [&](const auto& column) { return column == block.columns.front(); });
    if (alike && block.columns.size() > 1) {
      block.times *= static_cast<int>(block.columns.size());
      block.columns.resize(1);
    }
    if (b > 0 && next_[b - 1].columns == block.columns) {
      next_[b - 1].times += block.times;
      next_.erase(next_.begin() + b--);
      continue;
    }
    columns += block.columns.size();
  }
  return columns;
}

}  // namespace sailor
