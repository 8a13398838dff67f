#include "trainer/kernels/column_sums.h"

#include "tests/unit/trainer/kernels/kernel_values.h"

namespace sailor::kernels {
namespace {

using test::Values;

TEST(ColumnSumsKernel, AddsTheRowsOfOddSizesOfAllTypes) {
  struct Sizes {
    int64_t rows, columns;
  };
  test::on_devices([](Element type, const Place& place, const std::string& label) {
    for (const Sizes& c : {Sizes{1, 1}, Sizes{5, 33}, Sizes{130, 40}, Sizes{300, 264}, Sizes{257, 67}}) {
      Values matrix = Values::some(type, c.rows * c.columns, 1),
             sums = Values::some(test::computed(type), c.columns, 2);
      std::vector<double> wanted;
      for (int64_t i = 0; i < c.columns; ++i) {
        wanted.push_back(sums[i]);
        for (int64_t row = 0; row < c.rows; ++row) wanted.back() += matrix[row * c.columns + i];
      }
      ColumnSums call{
          .type = type, .rows = c.rows, .columns = c.columns, .matrix = matrix.data(), .sums = sums.data()};
      Values partial_sums(test::computed(type), call.parts() * c.columns);
      call.partial_sums = partial_sums.data();
      add_column_sums(call, place);
      test::expect_near(sums, wanted, 64 + static_cast<double>(c.rows),
                        label + ", rows " + std::to_string(c.rows));
    }
  });
}

TEST(ColumnSumsKernel, NothingIsAdded) {
  add_column_sums({.columns = 3}, Place{true});
  EXPECT_THROW(add_column_sums({.rows = 1, .columns = 3}, Place()), std::logic_error);
}

}  // namespace
}  // namespace sailor::kernels
