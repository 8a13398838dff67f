#include "profiler/links/series_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include "planner/process/seconds_since.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr MeasuringOptions kAnswerOptions{
    .relative_error = 0.05, .min_samples = 11, .max_samples = 100, .max_seconds = 0.2, .warm_up = 2};

// Small operations are measured this often in a row on a GPU, as many as these bytes at most.
constexpr int64_t kMostInARow = 16, kBytesInARow = int64_t{16} << 20;

// `data` holds `bytes`, the whole tensor.
void run_collective(const std::string& operation, Communicator& group, char* data, int64_t bytes,
                    Stream stream) {
  const auto count = static_cast<size_t>(bytes) / sizeof(float);
  const auto size = static_cast<size_t>(group.size()), share = count / size;
  char* own_share = data + static_cast<size_t>(group.rank()) * share * sizeof(float);
  if (operation == "all_reduce") {
    group.all_reduce(data, count, ElementType::f32, ReduceOp::sum, stream);
  } else if (operation == "reduce_scatter") {
    group.reduce_scatter(data, own_share, share, ElementType::f32, ReduceOp::sum, stream);
  } else if (operation == "all_gather") {
    group.all_gather(own_share, data, share, ElementType::f32, stream);
  } else if (operation == "broadcast") {
    group.broadcast(data, count, ElementType::f32, 0, stream);
  } else {
    throw std::logic_error("SeriesBench: unknown collective " + operation);
  }
}

}  // namespace

SeriesBench::SeriesBench(const ProbeSeries& series, Communicator& control, Communicator& data, Device& device)
    : series_(series), control_(control), data_(data), device_(device) {
  if (control.size() != static_cast<int>(series.members.size()) || data.size() != control.size())
    throw std::logic_error("SeriesBench: the communicator has other members");
}

bool SeriesBench::agreed(bool rank_0_says) {
  unsigned char word = rank_0_says ? 1 : 0;
  control_.broadcast(&word, 1, ElementType::u8, 0);
  return word == 1;
}

void SeriesBench::enqueue(int64_t bytes) {
  const Stream stream = device_.compute();
  if (series_.is_collective()) return run_collective(series_.operation, data_, data(), bytes, stream);
  const int pairs = series_.pairs();
  const auto count = static_cast<size_t>(bytes);
  char* const answer = buffer_.get();
  if (data_.rank() >= pairs) {
    const int sender = data_.rank() - pairs;
    data_.recv(data(), count, ElementType::u8, sender, stream)->wait_on(stream);
    data_.send(answer, 1, ElementType::u8, sender, stream)->wait_on(stream);
    return;
  }
  const int receiver = data_.rank() + pairs;
  const std::array<Transfer, 2> there_and_back{
      {{Transfer::Kind::send, data(), count, ElementType::u8, receiver},
       {Transfer::Kind::recv, answer, 1, ElementType::u8, receiver}}};
  data_.exchange(there_and_back, stream)->wait_on(stream);
}

double SeriesBench::own_part_s(int64_t bytes, Round round) {
  const bool on_gpu = device_.asynchronous();
  const int64_t times = on_gpu ? std::clamp<int64_t>(kBytesInARow / bytes, 1, kMostInARow) : 1;
  std::shared_ptr<void> held = round == Round::counts ? device_.hold(device_.compute()) : nullptr;
  // So that members start together, whenever their hosts are ready.
  if (on_gpu) data_.all_reduce(buffer_.get(), 1, ElementType::f32, ReduceOp::max, device_.compute());
  const auto begin = device_.mark();
  for (int64_t i = 0; i < times; ++i) enqueue(bytes);
  const auto end = device_.mark();
  held.reset();
  data_.settle();  // a failure is reported here
  const double seconds = device_.seconds_between(*begin, *end) / static_cast<double>(times);
  if (series_.is_collective()) return seconds;
  if (data_.rank() >= series_.pairs()) return 0;
  // The answer takes at most half of the shortest round trip, even if its measurement was disturbed.
  return std::max(seconds - answer_s_, 0.5 * seconds);
}

double SeriesBench::round_s(int64_t bytes, Round round) {
  double seconds = own_part_s(bytes, round);
  // A single sender is rank 0, which already has the value.
  if (series_.is_collective() || series_.pairs() > 1)
    control_.all_reduce(&seconds, 1, ElementType::f64, ReduceOp::max);
  return seconds;
}

Samples SeriesBench::sample(int64_t bytes, const MeasuringOptions& options) {
  for (int i = 0; i < options.warm_up; ++i) round_s(bytes, Round::warm_up);
  Samples samples;
  const auto begin = Clock::now();
  // Asked after every eighth more of them only: asking takes a message, and sorting of all samples.
  while (agreed(!enough(samples, seconds_since(begin), options))) {
    for (int i = samples.size() / 8; i >= 0; --i) samples.add(round_s(bytes, Round::counts));
  }
  return samples;
}

NetworkMeasurement SeriesBench::measure(int64_t bytes, const MeasuringOptions& options) {
  if (!buffer_ || buffer_bytes_ < bytes) {
    buffer_.reset();  // never two of them
    buffer_ = device_.device_memory(static_cast<size_t>(kAnswerBytes + bytes));
    buffer_bytes_ = bytes;
  }
  if (!series_.is_collective()) {
    const double before_s = std::exchange(answer_s_, 0);
    MeasuringOptions of_answers = kAnswerOptions;
    of_answers.max_seconds = std::min(of_answers.max_seconds, options.max_seconds / 4);
    const double now_s = 0.5 * sample(1, of_answers).median();
    answer_s_ = before_s > 0 ? std::min(before_s, now_s) : now_s;
  }
  const Samples samples = sample(bytes, options);
  NetworkMeasurement result;
  result.bytes = bytes;
  result.pairs = series_.pairs();
  if (control_.rank() != 0) return result;
  result.seconds = samples.median();
  result.samples = samples.size();
  result.error = samples.relative_error();
  result.outliers = samples.outliers();
  result.precise = result.error <= options.relative_error;
  return result;
}

}  // namespace sailor
