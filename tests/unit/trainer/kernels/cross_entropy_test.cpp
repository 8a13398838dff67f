#include "trainer/kernels/cross_entropy.h"

#include <limits>

#include "tests/unit/trainer/kernels/kernel_values.h"

namespace sailor::kernels {
namespace {

using test::Values;

struct LossCase {
  int64_t rows, columns, real, first_column;
};

void check_loss(const LossCase& c, Element type, const Place& place, const std::string& label) {
  const Element statistics = test::computed(type);
  Values logits = Values::some(type, c.rows * c.columns, 1, 20);
  const Values given = logits;
  std::vector<int64_t> targets;
  for (int64_t row = 0; row < c.rows; ++row) targets.push_back(row % 3 == 2 ? -1 : (row * 7) % (c.real + 3));
  const test::Integers targets_in_memory(targets);
  Values largest(statistics, c.rows), sum = largest, score = largest;
  CrossEntropy loss{.type = type,
                    .rows = c.rows,
                    .columns = c.columns,
                    .real = c.real,
                    .first_column = c.first_column,
                    .logits = logits.data(),
                    .targets = targets_in_memory.data(),
                    .largest = largest.data(),
                    .sum = sum.data(),
                    .score = score.data()};
  cross_entropy_forward(loss, place);
  Values of_softmax = Values::some(statistics, c.rows, 2), of_target = Values::some(statistics, c.rows, 3);
  for (int64_t row = 2; row < c.rows; row += 3) {
    of_softmax.set(row, 0);
    of_target.set(row, 0);
  }
  std::vector<double> wanted_largest, wanted_sum, wanted_score, wanted_gradient;
  for (int64_t row = 0; row < c.rows; ++row) {
    const int64_t first = row * c.columns, target = targets[static_cast<std::size_t>(row)] - c.first_column;
    double most = -std::numeric_limits<double>::infinity(), all = 0;
    for (int64_t i = 0; i < c.real; ++i) most = std::max(most, given[first + i]);
    for (int64_t i = 0; i < c.real; ++i) all += std::exp(given[first + i] - most);
    wanted_largest.push_back(most);
    wanted_sum.push_back(all);
    wanted_score.push_back(target >= 0 && target < c.real ? given[first + target] : 0);
    for (int64_t i = 0; i < c.columns; ++i) {
      const bool counts = i < c.real && row % 3 != 2;
      wanted_gradient.push_back(!counts ? 0
                                        : of_softmax[row] * std::exp(given[first + i] - largest[row]) -
                                              (i == target ? of_target[row] : 0));
    }
  }
  test::expect_near(largest, wanted_largest, 0, label + ": largest");
  test::expect_near(sum, wanted_sum, 64, label + ": sum");
  test::expect_near(score, wanted_score, 0, label + ": score");
  for (int64_t i = 0; i < logits.size(); ++i) ASSERT_EQ(logits[i], given[i]) << "the forward only reads";
  loss.shift = largest.data();
  loss.of_softmax = of_softmax.data();
  loss.of_target = of_target.data();
  cross_entropy_backward(loss, place);
  test::expect_near(logits, wanted_gradient, 64, label + ": gradient");
}

TEST(CrossEntropyKernel, IsAsItsFormulaForOddSizesOfAllTypes) {
  test::everywhere([](Element type, const Place& place, const std::string& label) {
    for (const LossCase& c :
         {LossCase{1, 1, 1, 0}, LossCase{4, 37, 37, 0}, LossCase{7, 129, 100, 0}, LossCase{5, 64, 64, 40},
          LossCase{3, 5003, 5001, 0}, LossCase{4, 1040, 1040, 7}, LossCase{3, 9008, 9001, 0}})
      check_loss(c, type, place, label + ", columns " + std::to_string(c.columns));
  });
}

TEST(CrossEntropyKernel, ARankWithoutRealColumnsAddsNothing) {
  test::everywhere([](Element type, const Place& place, const std::string& label) {
    Values logits = Values::some(type, 5, 1), largest(test::computed(type), 1), sum = largest,
           score = largest;
    const test::Integers target({3});
    cross_entropy_forward({.type = type,
                           .rows = 1,
                           .columns = 5,
                           .real = 0,
                           .first_column = 10,
                           .logits = logits.data(),
                           .targets = target.data(),
                           .largest = largest.data(),
                           .sum = sum.data(),
                           .score = score.data()},
                          place);
    EXPECT_LT(largest[0], -1e38) << label;
    EXPECT_EQ(sum[0], 0) << label;
    EXPECT_EQ(score[0], 0) << label;
  });
}

// A logit of -infinity has the probability 0, wherever it is.
TEST(CrossEntropyKernel, MinusInfinityIsNoColumn) {
  test::everywhere([](Element type, const Place& place, const std::string& label) {
    Values logits = Values::some(type, 300, 1), largest(test::computed(type), 1), sum = largest,
           score = largest;
    for (const int64_t i : {0, 1, 70, 299}) logits.set(i, -std::numeric_limits<double>::infinity());
    double wanted = 0;
    const test::Integers target({3});
    cross_entropy_forward({.type = type,
                           .rows = 1,
                           .columns = 300,
                           .real = 300,
                           .logits = logits.data(),
                           .targets = target.data(),
                           .largest = largest.data(),
                           .sum = sum.data(),
                           .score = score.data()},
                          place);
    for (int64_t i = 0; i < 300; ++i) wanted += std::exp(logits[i] - largest[0]);
    EXPECT_NEAR(sum[0], wanted, 1e-5 * wanted) << label;
  });
}

}  // namespace
}  // namespace sailor::kernels
