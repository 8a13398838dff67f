// How many random cases a property test draws: `usual` in the suite, SAILOR_TEST_FACTOR times as many in
// longer runs (tests/run.sh --long properties). The first cases are the same in both.
#pragma once

#include <cstdlib>

namespace sailor::test {

template <typename Count>
Count drawn(Count usual) {
  const char* factor = std::getenv("SAILOR_TEST_FACTOR");
  const int times = factor == nullptr ? 1 : std::atoi(factor);
  return usual * static_cast<Count>(times < 1 ? 1 : times);
}

}  // namespace sailor::test
