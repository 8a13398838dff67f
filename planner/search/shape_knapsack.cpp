#include "planner/search/shape_knapsack.h"

#include <algorithm>
#include <cstddef>

namespace sailor {
namespace {
constexpr int64_t kMostTableWork = 2000000;  // knapsack states x shapes
}  // namespace

ShapeKnapsack::ShapeKnapsack(const std::vector<Shape>& shapes, const std::vector<int>& capacity)
    : shapes_(shapes), capacity_(capacity) {
  states_ = 1;
  for (int c : capacity) {
    stride_.push_back(states_);
    states_ *= c + 1;
    if (states_ > kMostTableWork) break;
  }
  exact_ = states_ <= kMostTableWork && states_ * static_cast<int64_t>(shapes.size()) <= kMostTableWork;
  for (const Shape& shape : shapes) {
    int64_t offset = 0;
    for (size_t c = 0; exact_ && c < capacity.size(); ++c) offset += stride_[c] * shape.use[c];
    offset_.push_back(offset);
  }
}

std::optional<Selection> ShapeKnapsack::fill(double target_s, int64_t total) const {
  std::vector<int> worth;
  for (const Shape& shape : shapes_) worth.push_back(shape.microbatches_in(target_s));
  return exact_ ? by_table(worth, total) : greedy(worth, total);
}

std::optional<Selection> ShapeKnapsack::by_table(const std::vector<int>& worth, int64_t total) const {
  std::vector<int64_t> most(states_, 0);
  std::vector<int> last(states_, -1);
  std::vector<int> left(capacity_.size(), 0);
  for (int64_t state = 1; state < states_; ++state) {
    for (size_t c = 0; c < left.size(); ++c)  // next state in mixed radix
      if (++left[c] <= capacity_[c])
        break;
      else
        left[c] = 0;
    for (size_t s = 0; s < shapes_.size(); ++s) {
      if (worth[s] == 0 || !within(shapes_[s].use, left)) continue;
      const int64_t value = most[state - offset_[s]] + worth[s];
      if (value > most[state]) {
        most[state] = value;
        last[state] = static_cast<int>(s);
      }
    }
  }
  if (most[states_ - 1] < total) return std::nullopt;
  Selection out;
  for (int64_t state = states_ - 1; last[state] >= 0; state -= offset_[last[state]])
    out.push_back(last[state]);
  return out;
}

// Shapes in order of microbatches per share of the scarcest counter, each as often as it fits.
std::optional<Selection> ShapeKnapsack::greedy(const std::vector<int>& worth, int64_t total) const {
  std::vector<size_t> order(shapes_.size());
  for (size_t s = 0; s < order.size(); ++s) order[s] = s;
  const auto density = [&](size_t s) {
    double share = 0;
    for (size_t c = 0; c < capacity_.size(); ++c)
      if (shapes_[s].use[c] > 0) share += static_cast<double>(shapes_[s].use[c]) / capacity_[c];
    return worth[s] / share;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return density(a) > density(b); });
  std::vector<int> left = capacity_;
  Selection out;
  int64_t value = 0;
  for (size_t s : order)
    while (value < total && worth[s] > 0 && within(shapes_[s].use, left)) {
      for (size_t c = 0; c < left.size(); ++c) left[c] -= shapes_[s].use[c];
      out.push_back(static_cast<int>(s));
      value += worth[s];
    }
  if (value < total) return std::nullopt;
  return out;
}

}  // namespace sailor
