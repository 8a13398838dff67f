#include "planner/simulator/minimize.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace sailor {
namespace {

struct Vertex {
  std::vector<double> at;
  double value;
};

// a + t (b - a)
std::vector<double> along(const std::vector<double>& a, const std::vector<double>& b, double t) {
  std::vector<double> result(a.size());
  for (size_t i = 0; i < a.size(); ++i) result[i] = a[i] + t * (b[i] - a[i]);
  return result;
}

}  // namespace

Minimum minimize(const std::function<double(std::span<const double>)>& f, std::vector<double> start,
                 const std::vector<double>& step, int max_evaluations) {
  if (start.size() != step.size()) throw std::invalid_argument("minimize: one step for every variable");
  constexpr double kEnough = 1e-7;  // relative difference of the best and the worst vertex
  const size_t n = start.size();
  int evaluations = 0;
  const auto evaluate = [&](std::vector<double> at) {
    ++evaluations;
    const double value = f(at);
    return Vertex{std::move(at), value};
  };
  Vertex best = evaluate(std::move(start));
  if (n == 0) return {best.at, best.value, evaluations};
  const auto by_value = [](const Vertex& a, const Vertex& b) { return a.value < b.value; };
  for (double scale = 1; evaluations < max_evaluations; scale /= 2) {
    std::vector<Vertex> simplex{best};
    for (size_t i = 0; i < n; ++i) {
      std::vector<double> at = best.at;
      at[i] += scale * step[i];
      simplex.push_back(evaluate(std::move(at)));
    }
    while (evaluations < max_evaluations) {
      std::stable_sort(simplex.begin(), simplex.end(), by_value);
      if (simplex.back().value - simplex[0].value <= kEnough * std::fabs(simplex[0].value)) break;
      std::vector<double> centre(n, 0.0);
      for (size_t v = 0; v < n; ++v)
        for (size_t i = 0; i < n; ++i) centre[i] += simplex[v].at[i] / static_cast<double>(n);
      Vertex& worst = simplex.back();
      Vertex next = evaluate(along(centre, worst.at, -1));
      if (next.value < simplex[0].value) {
        Vertex further = evaluate(along(centre, worst.at, -2));
        if (further.value < next.value) next = std::move(further);
      } else if (next.value >= simplex[n - 1].value) {
        next = evaluate(along(centre, next.value < worst.value ? next.at : worst.at, 0.5));
        if (next.value >= worst.value) {  // nothing gained anywhere: shrink towards the best
          for (size_t v = 1; v <= n; ++v) simplex[v] = evaluate(along(simplex[0].at, simplex[v].at, 0.5));
          continue;
        }
      }
      worst = std::move(next);
    }
    const Vertex& found = *std::min_element(simplex.begin(), simplex.end(), by_value);
    const bool gained = found.value < best.value - 1e-4 * std::fabs(best.value);
    if (found.value < best.value) best = found;
    if (!gained) break;
  }
  return {best.at, best.value, evaluations};
}

}  // namespace sailor
