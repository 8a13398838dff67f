// Best-first search with iterative deepening over configurations (one microbatch size and one D each).
//
// The one with the lowest bound is searched, but only for values a step above it; when there are none, its
// bound rises and the next one is searched. So no search looks far beyond the optimum, however late good
// plans are found, and a search that accepts little is quick. Exact: a configuration is done when its bound
// has reached the best value. Pure but for what the callbacks do; they must not change bounds.
#pragma once

#include <functional>
#include <vector>

namespace sailor {

struct DeepeningOptions {
  // Relative step of what is searched for. It doubles with every step after these: the bound may be far below
  // every plan, or there may be none. After the most steps everything is searched.
  double step = 0.12;
  int even_steps = 8, most_steps = 13;
};

struct Deepening {
  // By configuration: no plan of it is better.
  std::vector<double> bounds;
  // The best value known; infinite when there is none. Falls as searches find plans.
  std::function<double()> best;
  // There may be no plan at all, and something else than the best value ends a search soon: then the first
  // ones accept every value.
  bool limited = false;
  // The best value is close to the optimum, most likely: all that is better is looked for at once.
  bool trusted = false;
  // Searches everything below the target; everything below `searched` is known. False when it could not
  // finish.
  std::function<bool(size_t index, double target, double searched)> search;
  std::function<bool()> expired;
  DeepeningOptions options;
};

struct Deepened {
  bool complete = true;
  double open_value = 0;  // what was not searched has no better value; infinite when complete
};
Deepened deepen(const Deepening& problem);

}  // namespace sailor
