// Measures one series of a probe, as one of its members: every member constructs it on the same communicator
// and calls the same functions. The communicator's rank 0 decides how long it takes; the results are its.
//
// A message counts from when it is posted until the receiver has all of it: the sender waits for an answer of
// one byte, and half the round trip of two such bytes is taken off (measured before every size; the shortest
// median of them, so that a disturbance of the answers does not make messages look faster). Of several pairs
// at once, and of collectives, the slowest member's time counts. One buffer of the largest size is all the
// memory that the bench takes (reduce_scatter: that and its share; what the communicator needs for sums comes
// on top).
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

  // One size. Enough is enough as samples.h says. On rank 0 the result, elsewhere without samples.
  NetworkMeasurement measure(int64_t bytes, const MeasuringOptions& options);

  // What rank 0 says, on every member.
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
