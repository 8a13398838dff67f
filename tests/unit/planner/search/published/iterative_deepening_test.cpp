#include "planner/search/published/iterative_deepening.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/search/problem/goal.h"

namespace sailor {
namespace {

// Each configuration has some values, none below its bound; a search sees those in [searched, target).
struct Toy {
  std::vector<std::vector<double>> values;
  double best = kNever;
  int searches = 0;
  double largest_target = 0;

  Deepening problem(std::vector<double> bounds) {
    Deepening d;
    d.bounds = std::move(bounds);
    d.best = [this] { return best; };
    d.search = [this](size_t i, double target, double searched) {
      ++searches;
      largest_target = std::max(largest_target, target);
      for (double value : values[i])
        if (value >= searched && value < target) best = std::min(best, value);
      return true;
    };
    d.expired = [] { return false; };
    return d;
  }
};

TEST(Deepening, FindsTheBestHoweverFarAboveTheBounds) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(1, 20);
  for (int round = 0; round < 200; ++round) {
    Toy toy;
    std::vector<double> bounds;
    double least = kNever;
    for (int i = 0; i < 5; ++i) {
      bounds.push_back(uniform(random));
      toy.values.emplace_back();
      for (int k = round % 3; k > 0; --k) toy.values.back().push_back(bounds.back() * uniform(random));
      for (double value : toy.values.back()) least = std::min(least, value);
    }
    const Deepened done = deepen(toy.problem(bounds));
    EXPECT_TRUE(done.complete);
    EXPECT_EQ(done.open_value, kNever);
    EXPECT_EQ(toy.best, least);
  }
}

TEST(Deepening, LooksNotFarBeyondTheBest) {
  Toy toy;
  toy.values = {{30}, {12}, {90}};
  deepen(toy.problem({10, 10.5, 5}));
  EXPECT_EQ(toy.best, 12);
  EXPECT_LT(toy.largest_target, 12 * 1.2);
}

TEST(Deepening, ATrustedBestIsTheFirstTarget) {
  Toy toy;
  toy.values = {{30}, {12}, {90}};
  toy.best = 13;
  Deepening problem = toy.problem({10, 10.5, 5});
  problem.trusted = true;
  const Deepened done = deepen(problem);
  EXPECT_TRUE(done.complete);
  EXPECT_EQ(toy.best, 12);
  EXPECT_EQ(toy.searches, 3) << "one for each configuration";
  EXPECT_EQ(toy.largest_target, 13);
}

TEST(Deepening, ReportsTheBoundOfWhatIsOpen) {
  Toy toy;
  toy.values = {{30}, {12}};
  Deepening problem = toy.problem({10, 11});
  const auto search = problem.search;
  problem.search = [&](size_t i, double target, double searched) {
    return i > 0 && search(i, target, searched);
  };
  Deepened done = deepen(problem);
  EXPECT_FALSE(done.complete);
  EXPECT_EQ(done.open_value, 10);
  EXPECT_EQ(toy.best, 12);

  problem.expired = [] { return true; };
  toy.best = kNever;
  done = deepen(problem);
  EXPECT_FALSE(done.complete);
  EXPECT_EQ(done.open_value, 10);
  EXPECT_EQ(toy.best, kNever);
}

}  // namespace
}  // namespace sailor
