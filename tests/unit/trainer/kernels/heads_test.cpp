#include "trainer/kernels/heads.h"

#include "tests/unit/trainer/kernels/kernel_values.h"

namespace sailor::kernels {
namespace {

using test::Values;

struct HeadCase {
  int64_t batch, tokens, groups, queries, size, pairs;
  bool interleaved;
};

constexpr HeadCase kHeadCases[] = {
    {1, 1, 1, 1, 1, 0, false},  {2, 3, 2, 1, 7, 0, false},    {1, 5, 1, 3, 6, 3, false},
    {2, 3, 3, 2, 9, 2, true},   {3, 2, 1, 5, 66, 33, true},   {2, 7, 2, 2, 70, 20, false},
    {2, 5, 3, 1, 64, 0, false}, {1, 9, 2, 4, 128, 64, false}, {2, 3, 2, 2, 48, 16, false},
    {1, 5, 2, 3, 64, 32, true}, {1, 4, 2, 1, 64, 9, false},
};

// The element of the separate tensors, [batch, heads, tokens, size], that element i of the packed ones is.
struct Separate {
  int part;  // 0 query, 1 key, 2 value
  int64_t index;
};
Separate separate_of(const HeadCase& c, int64_t batch, int64_t token, int64_t head, int64_t i) {
  const int64_t of_group = c.queries + 2, group = head / of_group, member = head % of_group;
  const int part = member < c.queries ? 0 : member == c.queries ? 1 : 2;
  const int64_t heads = part == 0 ? c.groups * c.queries : c.groups;
  const int64_t mine = part == 0 ? group * c.queries + member : group;
  return {part, ((batch * heads + mine) * c.tokens + token) * c.size + i};
}

void check_heads(const HeadCase& c, Element type, const Place& place, const std::string& label) {
  const int64_t heads = c.groups * (c.queries + 2), rows = c.batch * c.tokens * heads;
  Values packed = Values::some(type, rows * c.size, 1), again(type, rows * c.size);
  Values cosine(type, c.tokens * c.pairs, [](int64_t i) { return std::cos(0.3 * static_cast<double>(i)); }),
      sine(type, c.tokens * c.pairs, [](int64_t i) { return std::sin(0.3 * static_cast<double>(i)); });
  std::vector<Values> parts = {Values(type, c.batch * c.groups * c.queries * c.tokens * c.size),
                               Values(type, c.batch * c.groups * c.tokens * c.size),
                               Values(type, c.batch * c.groups * c.tokens * c.size)};
  const auto rows_of = [&](Values& values, int64_t count) {
    return HeadRows{values.data(), count * c.tokens * c.size, c.tokens * c.size, c.size};
  };
  HeadMove move{.type = type,
                .has_values = true,
                .batch = c.batch,
                .tokens = c.tokens,
                .groups = c.groups,
                .queries = c.queries,
                .size = c.size,
                .packed = {packed.data(), c.tokens * heads * c.size, c.size, heads * c.size},
                .query = rows_of(parts[0], c.groups * c.queries),
                .key = rows_of(parts[1], c.groups),
                .value = rows_of(parts[2], c.groups),
                .pairs = c.pairs,
                .interleaved = c.interleaved,
                .cosine = cosine.data(),
                .sine = sine.data()};
  move_heads(move, place);
  std::vector<std::vector<double>> wanted;
  for (const Values& part : parts) wanted.emplace_back(static_cast<std::size_t>(part.size()));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t head = row % heads, token = row / heads % c.tokens, batch = row / heads / c.tokens;
    for (int64_t i = 0; i < c.size; ++i) {
      const Separate to = separate_of(c, batch, token, head, i);
      double value = packed[row * c.size + i];
      if (to.part < 2 && i < 2 * c.pairs) {
        const int64_t pair = c.interleaved ? i / 2 : i % c.pairs;
        const bool first = c.interleaved ? i % 2 == 0 : i < c.pairs;
        const int64_t other = c.interleaved ? (i ^ 1) : first ? i + c.pairs : i - c.pairs;
        value = value * cosine[token * c.pairs + pair] +
                packed[row * c.size + other] * sine[token * c.pairs + pair] * (first ? -1 : 1);
      }
      wanted[static_cast<std::size_t>(to.part)][static_cast<std::size_t>(to.index)] = value;
    }
  }
  for (std::size_t part = 0; part < 3; ++part)
    test::expect_near(parts[part], wanted[part], 4, label + ", part " + std::to_string(part));

  // Back by the negative angle: the packed tensor again, up to the rounding of tables and elements.
  move.to_packed = move.backwards = true;
  move.packed.data = again.data();
  move_heads(move, place);
  for (int64_t i = 0; i < again.size(); ++i)
    ASSERT_NEAR(again[i], packed[i], 16 * test::rounding(type)) << label << ", element " << i;
}

TEST(HeadsKernel, SplitsAndTurnsOddSizesOfAllTypes) {
  test::everywhere([](Element type, const Place& place, const std::string& label) {
    for (const HeadCase& c : kHeadCases)
      check_heads(c, type, place, label + ", size " + std::to_string(c.size));
  });
}

TEST(HeadsKernel, TurnsHeadsWithoutKeysAndValues) {
  test::everywhere([](Element type, const Place& place, const std::string& label) {
    const int64_t tokens = 3, size = 5, heads = 2;
    Values x = Values::some(type, heads * tokens * size, 1), y(type, x.size());
    Values cosine(type, tokens, [](int64_t) { return 0; }), sine(type, tokens, [](int64_t) { return 1; });
    const HeadRows rows{x.data(), 0, tokens * size, size};
    HeadMove move;
    move.type = type;
    move.batch = 1;
    move.tokens = tokens;
    move.groups = heads;
    move.queries = 1;
    move.size = size;
    move.packed = rows;
    move.query = {y.data(), 0, tokens * size, size};
    move.pairs = 1;
    move.cosine = cosine.data();
    move.sine = sine.data();
    move_heads(move, place);
    for (int64_t row = 0; row < heads * tokens; ++row) {
      EXPECT_EQ(y[row * size], -x[row * size + 1]) << label;
      EXPECT_EQ(y[row * size + 1], x[row * size]) << label;
      for (int64_t i = 2; i < size; ++i) EXPECT_EQ(y[row * size + i], x[row * size + i]) << label;
    }
  });
}

}  // namespace
}  // namespace sailor::kernels
