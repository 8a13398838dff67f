#include "profiler/links/series_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "planner/process/seconds_since.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr MeasuringOptions kAnswerOptions{
    .relative_error = 0.05, .min_samples = 11, .max_samples = 100, .max_seconds = 0.2, .warm_up = 2};

// `data` holds `bytes`, the whole tensor.
void run_collective(const std::string& operation, Communicator& group, std::vector<char>& data,
                    int64_t bytes) {
  const auto count = static_cast<size_t>(bytes) / sizeof(float);
  const auto size = static_cast<size_t>(group.size()), share = count / size;
  char* own_share = data.data() + static_cast<size_t>(group.rank()) * share * sizeof(float);
  if (operation == "all_reduce") {
    group.all_reduce(data.data(), count, ElementType::f32, ReduceOp::sum);
  } else if (operation == "reduce_scatter") {
    group.reduce_scatter(data.data(), own_share, share, ElementType::f32, ReduceOp::sum);
  } else if (operation == "all_gather") {
    group.all_gather(own_share, data.data(), share, ElementType::f32);
  } else if (operation == "broadcast") {
    group.broadcast(data.data(), count, ElementType::f32, 0);
  } else {
    throw std::logic_error("SeriesBench: unknown collective " + operation);
  }
}

}  // namespace

SeriesBench::SeriesBench(const ProbeSeries& series, Communicator& group) : series_(series), group_(group) {
  if (group.size() != static_cast<int>(series.members.size()))
    throw std::logic_error("SeriesBench: the communicator has other members");
}

bool SeriesBench::agreed(bool rank_0_says) {
  unsigned char word = rank_0_says ? 1 : 0;
  group_.broadcast(&word, 1, ElementType::u8, 0);
  return word == 1;
}

double SeriesBench::own_part_s(int64_t bytes) {
  if (series_.is_collective()) {
    const auto start = Clock::now();
    run_collective(series_.operation, group_, buffer_, bytes);
    return seconds_since(start);
  }
  const int pairs = series_.pairs();
  const auto count = static_cast<size_t>(bytes);
  char answer = 0;
  if (group_.rank() >= pairs) {
    const int sender = group_.rank() - pairs;
    group_.recv(buffer_.data(), count, ElementType::u8, sender)->wait();
    group_.send(&answer, 1, ElementType::u8, sender)->wait();
    return 0;
  }
  const int receiver = group_.rank() + pairs;
  const std::array<Transfer, 2> there_and_back{
      {{Transfer::Kind::send, buffer_.data(), count, ElementType::u8, receiver},
       {Transfer::Kind::recv, &answer, 1, ElementType::u8, receiver}}};
  const auto start = Clock::now();
  group_.exchange(there_and_back)->wait();
  const double seconds = seconds_since(start);
  // The answer takes at most half of the shortest round trip, even if its measurement was disturbed.
  return std::max(seconds - answer_s_, 0.5 * seconds);
}

double SeriesBench::round_s(int64_t bytes) {
  double seconds = own_part_s(bytes);
  // A single sender is rank 0, which already has the value.
  if (series_.is_collective() || series_.pairs() > 1)
    group_.all_reduce(&seconds, 1, ElementType::f64, ReduceOp::max);
  return seconds;
}

Samples SeriesBench::sample(int64_t bytes, const MeasuringOptions& options) {
  for (int i = 0; i < options.warm_up; ++i) round_s(bytes);
  Samples samples;
  const auto begin = Clock::now();
  // Asked after every eighth more of them only: asking takes a message, and sorting of all samples.
  while (agreed(!enough(samples, seconds_since(begin), options))) {
    for (int i = samples.size() / 8; i >= 0; --i) samples.add(round_s(bytes));
  }
  return samples;
}

NetworkMeasurement SeriesBench::measure(int64_t bytes, const MeasuringOptions& options) {
  if (buffer_.size() < static_cast<size_t>(bytes)) {
    std::vector<char>().swap(buffer_);  // never two of them
    buffer_.resize(static_cast<size_t>(bytes));
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
  if (group_.rank() != 0) return result;
  result.seconds = samples.median();
  result.samples = samples.size();
  result.error = samples.relative_error();
  result.outliers = samples.outliers();
  result.precise = result.error <= options.relative_error;
  return result;
}

}  // namespace sailor
