// Measures one series of a probe, as one of its members: every member constructs it on the same communicator
// and calls the same functions. The communicator's rank 0 decides the duration, and has the results.
//
// Control messages between members use host memory, and the measured ones the memory of a device: over
// sockets the same communicator is both. On a GPU the device's clock counts: operations are enqueued on its
// stream while that is held (Device::hold), after a reduction for which members wait for each other, small
// ones several times in a row. The host's time to enqueue them is not part of it.
//
// A message counts from posting until the receiver has all of it. The sender waits for an answer of one byte,
// and half the round trip of two such bytes is subtracted (measured before every size; the smallest median of
// them, so that a disturbance of the answers does not make messages look faster). With several concurrent
// pairs, and for collectives, the slowest member's time counts. The bench allocates one buffer of the largest
// size (reduce_scatter: that and its share); over sockets, reductions need more.
//
// One thread. Throws CommError.
#pragma once

#include <cstdint>
#include <memory>

#include "planner/profile/network_file.h"
#include "profiler/links/probe_series.h"
#include "profiler/samples.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"

namespace sailor {

class SeriesBench {
 public:
  // Both communicators have the series' members in their order; `data` is over the device's memory.
  SeriesBench(const ProbeSeries& series, Communicator& control, Communicator& data, Device& device);

  // Measures one size until samples.h says that it is enough. The result is on rank 0; other ranks have no
  // samples.
  NetworkMeasurement measure(int64_t bytes, const MeasuringOptions& options);

  // Rank 0's value, on every member.
  bool agreed(bool rank_0_says);

 private:
  Samples sample(int64_t bytes, const MeasuringOptions& options);
  // On every member, the same. The first ones make connections and load kernels, for which CUDA may wait
  // until the device is idle: no stream is held then.
  enum class Round { warm_up, counts };
  double round_s(int64_t bytes, Round round);
  double own_part_s(int64_t bytes, Round round);

  void enqueue(int64_t bytes);
  char* data() { return buffer_.get() + kAnswerBytes; }

  static constexpr int64_t kAnswerBytes = 512;  // at the beginning of the buffer
  const ProbeSeries& series_;
  Communicator& control_;
  Communicator& data_;
  Device& device_;
  double answer_s_ = 0;
  std::shared_ptr<char> buffer_;
  int64_t buffer_bytes_ = 0;
};

}  // namespace sailor
