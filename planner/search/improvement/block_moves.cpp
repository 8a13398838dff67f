#include "planner/search/improvement/block_moves.h"

#include <algorithm>
#include <numeric>

namespace sailor {
namespace {

// How many replicas of a stage have each key, in the order in which keys occur.
template <typename Key>
std::vector<std::pair<int, int>> counts_of(const BlockCosts::Columns& columns, int stage, Key key) {
  std::vector<std::pair<int, int>> counts;
  for (const std::vector<int>& column : columns) {
    const int of = key(column[stage]);
    const auto known =
        std::find_if(counts.begin(), counts.end(), [&](const auto& count) { return count.first == of; });
    if (known == counts.end())
      counts.emplace_back(of, 1);
    else
      ++known->second;
  }
  return counts;
}

}  // namespace

int BlockMoves::below(size_t n) {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return static_cast<int>((state_ >> 11) % n);
}

template <typename Items>
void BlockMoves::shuffle(Items& items) {
  for (size_t k = items.size(); k > 1; --k) std::swap(items[k - 1], items[below(k)]);
}

std::vector<int>& BlockMoves::any_column(size_t block) {
  return next_[block].columns[below(next_[block].columns.size())];
}

int BlockMoves::any_alike(int option) {
  const std::vector<int>& alike = costs_.alike(option);
  return alike[below(alike.size())];
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
  if (times > 1) split(block, below(2) == 0 ? times / 2 : 1 + below(times - 1));
}

bool BlockMoves::move() {
  if (below(8) == 0) return refill_stages();
  if (below(8) == 0) return insert_column();
  if (below(16) == 0) return swap_stages();
  switch (below(5)) {
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
  const int other = any_alike(option);
  if (other == option) return false;
  option = other;
  return true;
}

// One pipeline leaves its block and comes back elsewhere, made of the columns there and one random zone: a
// way from one column to another whose direct links are slow.
bool BlockMoves::insert_column() {
  const size_t at = any_block(), from = any_block();
  const size_t behind = at + 1 < next_.size() && below(2) == 0 ? at + 1 : at;
  if (next_[from].columns.size() > 1 || next_[from].times < 2) return false;
  std::vector<int> column = any_column(at);
  const std::vector<int>& other = any_column(behind);
  for (size_t i = 0; i < column.size(); ++i)
    if (below(2) == 0) column[i] = other[i];
  int& option = column[any_stage()];
  option = any_alike(option);
  --next_[from].times;
  next_.insert(next_.begin() + static_cast<ptrdiff_t>(at + below(2)), {{std::move(column)}, 1});
  return true;
}

// Two pipelines (or two equally long series of them) change places, in one stage or in all.
bool BlockMoves::swap_columns() {
  size_t a = any_block(), b = any_block();
  if (a > b) std::swap(a, b);
  if (a != b && next_[a].times != next_[b].times && below(2) == 0) {
    const int times = std::min(next_[a].times, next_[b].times);
    split(b, times);
    const size_t before = next_.size();
    split(a, times);
    b += next_.size() - before;
  }
  std::vector<int>&x = any_column(a), &y = any_column(b);
  if (&x == &y || x == y) return false;
  if (below(3) == 0)
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

// Two stages whose replicas differ in their zones only change places.
bool BlockMoves::swap_stages() {
  const int i = any_stage(), k = any_stage();
  for (PipelineBlock& block : next_)
    for (std::vector<int>& column : block.columns) {
      if (i == k || costs_.alike(column[i]) != costs_.alike(column[k])) return false;
      std::swap(column[i], column[k]);
    }
  return true;
}

// The replicas of one stage in a new order, ignoring facing stages: zone after zone, or alternating zones.
bool BlockMoves::reorder_stage() {
  BlockCosts::Columns columns = BlockCosts::columns_of(next_);
  const int stage = any_stage();
  Counts counts = counts_of(columns, stage, [](int option) { return option; });
  if (counts.size() < 2) return false;
  shuffle(counts);
  size_t j = 0;
  for (size_t first = 0; first < counts.size();) {
    const size_t end = std::min(counts.size(), first + 1 + below(3));
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

// Some or all stages, one after another, into the GPUs that the other stages leave: few stages are then in
// several zones.
bool BlockMoves::refill_stages() {
  BlockCosts::Columns columns = BlockCosts::columns_of(next_);
  std::vector<int> stages(costs_.stages()), options(costs_.num_options());
  std::iota(stages.begin(), stages.end(), 0);
  std::iota(options.begin(), options.end(), 0);
  shuffle(stages);
  shuffle(options);
  const size_t refilled = 1 + below(stages.size());
  std::vector<int64_t> left = costs_.capacity();
  for (const std::vector<int>& column : columns)
    for (size_t k = refilled; k < stages.size(); ++k) costs_.take(column[stages[k]], 1, left);
  for (size_t k = 0; k < refilled; ++k)
    if (!fill_stage(columns, stages[k], options, left)) return false;
  next_ = BlockCosts::blocks_of(columns);
  return true;
}

// Takes `options` in their order, from the first pipeline to the last or the other way round.
bool BlockMoves::fill_stage(BlockCosts::Columns& columns, int stage, const std::vector<int>& options,
                            std::vector<int64_t>& left) {
  std::vector<int> replicas;
  const Counts kinds = counts_of(columns, stage, [&](int option) { return costs_.alike(option).front(); });
  for (const auto& [kind, count] : kinds) {
    int64_t open = count;
    for (int o : options) {
      if (costs_.alike(o).front() != kind) continue;
      const int64_t times = std::min(open, costs_.most(o, left));
      if (times <= 0) continue;
      costs_.take(o, times, left);
      replicas.insert(replicas.end(), times, o);
      open -= times;
    }
    if (open > 0) return false;
  }
  if (below(2) == 0) std::reverse(replicas.begin(), replicas.end());
  for (size_t j = 0; j < replicas.size(); ++j) columns[j][stage] = replicas[j];
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
