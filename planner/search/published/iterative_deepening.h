// Best-first search with iterative deepening over configurations (one microbatch size and one D each).
//
// The configuration with the lowest bound is searched, but only for values up to a step above it; if there
// are none, its bound rises and the next one is searched. So no search goes far beyond the optimum, even if
// good plans are found late, and a search that accepts little is fast. Exact: a configuration is done when
// its bound has reached the best value. Pure except for the callbacks, which must not change bounds.
#pragma once

#include <functional>
#include <vector>

namespace sailor {

struct DeepeningOptions {
  // Relative step of the accepted values. It doubles with every step after these: the bound may be far below
  // every plan, or there may be none. After the last step everything is searched.
  double step = 0.12;
  int even_steps = 8, most_steps = 13;
};

struct Deepening {
  // By configuration: a lower bound on its plans.
  std::vector<double> bounds;
  // The best known value; infinite if there is none. Decreases as searches find plans.
  std::function<double()> best;
  // There may be no plan at all, and something other than the best value ends searches early: then the first
  // ones accept every value.
  bool limited = false;
  // The best value is probably close to the optimum: everything better is searched for at once.
  bool trusted = false;
  // Searches everything below the target; everything below `searched` is known. False if it could not finish.
  std::function<bool(size_t index, double target, double searched)> search;
  std::function<bool()> expired;
  DeepeningOptions options;
};

struct Deepened {
  bool complete = true;
  double open_value = 0;  // a lower bound on what was not searched; infinite if complete
};
Deepened deepen(const Deepening& problem);

}  // namespace sailor
