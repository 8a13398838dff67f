// Measures one series of a probe, as one of its members: every member constructs it on the same communicator
// and calls the same functions. The communicator's rank 0 decides the duration, and has the results.
//
// A message counts from posting until the receiver has all of it. The sender waits for an answer of one byte,
// and half the round trip of two such bytes is subtracted (measured before every size; the smallest median of
// them, so that a disturbance of the answers does not make messages look faster). With several concurrent
// pairs, and for collectives, the slowest member's time counts. The bench allocates one buffer of the largest
// size (reduce_scatter: that and its share); the communicator needs more for reductions.
//
// One thread. Throws CommError.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/profile/network_file.h"
#include "profiler/links/probe_series.h"
#include "profiler/samples.h"
#include "trainer/comm/communicator.h"

namespace sailor {

class SeriesBench {
 public:
  // `group` has the series' members in their order.
  SeriesBench(const ProbeSeries& series, Communicator& group);

  // Measures one size until samples.h says that it is enough. The result is on rank 0; other ranks have no
  // samples.
  NetworkMeasurement measure(int64_t bytes, const MeasuringOptions& options);

  // Rank 0's value, on every member.
  bool agreed(bool rank_0_says);

 private:
  Samples sample(int64_t bytes, const MeasuringOptions& options);
  double round_s(int64_t bytes);  // on every member, the same
  double own_part_s(int64_t bytes);

  const ProbeSeries& series_;
  Communicator& group_;
  double answer_s_ = 0;
  std::vector<char> buffer_;
};

}  // namespace sailor
