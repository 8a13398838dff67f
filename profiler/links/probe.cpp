#include "profiler/links/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <filesystem>
#include <numeric>
#include <optional>

#include "planner/process/seconds_since.h"
#include "profiler/links/link_fit.h"
#include "profiler/links/ring_check.h"
#include "profiler/links/series_bench.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kSmallest = 4096;
constexpr int64_t kStep = 4;
constexpr int kLeastSamples = 5;  // fewer have no confidence interval
constexpr int kUsualSamples = 15;
constexpr int kMostSamples = 100'000;
constexpr double kRelativeError = 0.02;

// What rank 0 sends to all before a series; sent as its bytes in memory.
struct Order {
  int32_t series = -1;  // -1 = the end
  int32_t sizes = 0;
  double seconds = 0;
  std::array<int64_t, 24> bytes{};
};
// What the first member of a series tells rank 0 after every size.
struct Report {
  NetworkMeasurement measurement;
  bool last = false;
  double needed_s = 0;  // for the next size, when that was too much
};
static_assert(std::is_trivially_copyable_v<Order> && std::is_trivially_copyable_v<Report>);

// Measures the sizes of one order, as a member of the series.
class SeriesRun {
 public:
  SeriesRun(const ProbeSeries& series, const Order& order, Communicator& control, Communicator& data,
            Device& device)
      : order_(order), bench_(series, control, data, device) {}

  // The next size; nothing more after a report that is the last. Rank 0 of the group gets the result.
  Report next() {
    const auto i = static_cast<size_t>(at_);
    // The i-th size has i + 1 parts of what is left: larger messages take longer.
    const double parts = 0.5 * (order_.sizes - at_) * (order_.sizes + at_ + 1);
    const double share_s = std::max(0.0, order_.seconds - seconds_since(begin_)) * (at_ + 1) / parts;
    MeasuringOptions options{.relative_error = kRelativeError,
                             .min_samples = kUsualSamples,
                             .max_samples = kMostSamples,
                             .max_seconds = share_s,
                             .warm_up = 2};
    const double expected_s = expected_round_s(order_.bytes[i]);
    if (expected_s * kUsualSamples > share_s) {
      options.min_samples = kLeastSamples;
      options.warm_up = 1;
    }
    Report report;
    options.warm_up = same_everywhere(options.warm_up);
    report.measurement = bench_.measure(order_.bytes[i], options);
    last_ = report.measurement;
    if (++at_ < order_.sizes)
      report.needed_s = (kLeastSamples + 1) * expected_round_s(order_.bytes[static_cast<size_t>(at_)]);
    // A size that takes longer than all the time that is left has no share in it.
    const bool affordable = at_ < order_.sizes && report.needed_s <= order_.seconds - seconds_since(begin_);
    report.last = !bench_.agreed(affordable);
    return report;
  }

 private:
  // As much longer as it is larger, at most.
  double expected_round_s(int64_t bytes) const {
    if (last_.samples == 0) return 0;
    return last_.seconds * std::max(1.0, static_cast<double>(bytes) / static_cast<double>(last_.bytes));
  }
  int same_everywhere(int warm_up) { return bench_.agreed(warm_up > 1) ? 2 : 1; }

  const Order& order_;
  SeriesBench bench_;
  Clock::time_point begin_ = Clock::now();
  int at_ = 0;
  NetworkMeasurement last_;
};

// Rank 0's side: the file, and what is still to do.
class Keeper {
 public:
  Keeper(const std::vector<ProbeSeries>& series, const ProbeRequest& request)
      : series_(series), request_(request) {
    const fs::path directory = fs::path(request.file).parent_path();
    std::error_code error;
    if (!directory.empty()) fs::create_directories(directory, error);
    if (error)
      throw std::runtime_error(fmt::format("cannot make {}: {}", directory.string(), error.message()));
    if (fs::exists(request.file)) network_ = load_network_file(request.file);
    network_.measured = request.measured;
    for (const ProbeSeries& s : series_) {
      const std::vector<int64_t> sizes = probe_sizes(
          s.transport == Transport::nccl ? std::min(request.max_bytes, request.gpu_bytes.value_or(INT64_MAX))
                                         : request.max_bytes);
      std::vector<int64_t>& todo = todo_.emplace_back();
      for (const int64_t bytes : sizes) {
        const NetworkMeasurement* known = request.again ? nullptr : find(measurements(s), bytes, s.pairs());
        if (known == nullptr || !known->precise) todo.push_back(bytes);
      }
      series_left_ += todo.empty() ? 0 : 1;
    }
    series_to_do_ = series_left_;
    save();  // a file that cannot be written is told now
  }

  // The order for the next series that has something to do.
  Order next() {
    while (++at_ < static_cast<int>(series_.size()) && todo_[static_cast<size_t>(at_)].empty()) {
    }
    if (at_ >= static_cast<int>(series_.size())) return {};
    const std::vector<int64_t>& todo = todo_[static_cast<size_t>(at_)];
    Order order;
    order.series = at_;
    order.sizes = static_cast<int32_t>(todo.size());
    order.seconds = std::max(0.0, request_.seconds - seconds_since(begin_)) / series_left_--;
    std::copy(todo.begin(), todo.end(), order.bytes.begin());
    taken_ = 0;
    return order;
  }

  void keep(const Report& report) {
    const ProbeSeries& s = series_[static_cast<size_t>(at_)];
    ++taken_;
    ++outcome_.measurements;
    outcome_.imprecise += report.measurement.precise ? 0 : 1;
    put(s, report.measurement);
    save();
    const std::vector<int64_t>& todo = todo_[static_cast<size_t>(at_)];
    if (report.last && taken_ < static_cast<int>(todo.size()))
      outcome_.notes.push_back(
          fmt::format("{}: no messages of {} bytes and more: they would need {:.0f} s more; give --seconds "
                      "or --max-bytes",
                      describe(s), todo[static_cast<size_t>(taken_)], report.needed_s));
  }

  std::string summary() {
    const ProbeSeries& s = series_[static_cast<size_t>(at_)];
    const std::vector<NetworkMeasurement> all = of_pairs(measurements(s), s.pairs());
    const NetworkMeasurement& largest = all.back();
    double error = 0;
    for (const NetworkMeasurement& m : all) error = std::max(error, m.error);
    const int number = series_to_do_ - series_left_;
    const double left_s = std::max(0.0, request_.seconds - seconds_since(begin_));
    const std::string place =
        fmt::format("{} of {}, {}", number, series_to_do_,
                    series_left_ > 0 ? fmt::format("at most {:.0f} s left", left_s) : "the last");
    return fmt::format(
        "[{}] {}: {} sizes, {:.1f} us at {} bytes, {:.1f} MB/s at {} bytes, +-{:.1f} % at worst{}", place,
        describe(s), taken_, 1e6 * all.front().seconds, all.front().bytes,
        1e-6 * static_cast<double>(largest.bytes) * largest.pairs / largest.seconds, largest.bytes,
        100 * error, check(s, largest));
  }

  const ProbeOutcome& outcome() const { return outcome_; }

  // How well the planner's arithmetic predicts the largest size of a collective.
  std::string check(const ProbeSeries& s, const NetworkMeasurement& largest) {
    if (!s.is_collective()) return "";
    const auto predicted_s = ring_time_s(network_, collective(s), static_cast<double>(largest.bytes));
    if (!predicted_s) return "";
    return fmt::format("; predicted from the links: {:+.1f} %", 100 * (*predicted_s / largest.seconds - 1));
  }

 private:
  std::vector<NetworkMeasurement>& measurements(const ProbeSeries& s) {
    if (!s.is_collective()) return network_.link(s.from, s.to, s.scope, s.transport).messages;
    return collective(s).measurements;
  }

  NetworkFile::Collective& collective(const ProbeSeries& s) {
    return network_.collective(s.operation, s.kinds, static_cast<int>(s.members.size()), s.nodes,
                               s.transport);
  }

  static NetworkMeasurement* find(std::vector<NetworkMeasurement>& measurements, int64_t bytes, int pairs) {
    const auto it = std::find_if(measurements.begin(), measurements.end(),
                                 [&](const auto& m) { return m.bytes == bytes && m.pairs == pairs; });
    return it == measurements.end() ? nullptr : &*it;
  }

  void put(const ProbeSeries& s, const NetworkMeasurement& measurement) {
    std::vector<NetworkMeasurement>& all = measurements(s);
    if (NetworkMeasurement* known = find(all, measurement.bytes, measurement.pairs)) {
      // Measured again for the sake of precision: the better one stays.
      if (request_.again || measurement.error <= known->error) *known = measurement;
    } else {
      all.push_back(measurement);
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::pair(a.pairs, a.bytes) < std::pair(b.pairs, b.bytes);
    });
    if (s.is_collective()) {
      collective(s).measured = request_.measured;
    } else {
      NetworkFile::Link& link = network_.link(s.from, s.to, s.scope, s.transport);
      link.measured = request_.measured;
      fit_curve(link);
    }
    fit_steps(network_);
  }

  void save() const {
    NetworkFile written = network_;
    std::erase_if(written.links, [](const auto& link) { return !link.has_curve() && link.messages.empty(); });
    std::erase_if(written.collectives, [](const auto& c) { return c.measurements.empty(); });
    save_network_file(written, request_.file);
  }

  const std::vector<ProbeSeries>& series_;
  const ProbeRequest& request_;
  NetworkFile network_;
  std::vector<std::vector<int64_t>> todo_;  // by series
  Clock::time_point begin_ = Clock::now();
  int at_ = -1;
  int series_to_do_ = 0, series_left_ = 0;
  int taken_ = 0;  // of this series
  ProbeOutcome outcome_;
};

template <typename T>
void broadcast(Communicator& all, T& value) {
  all.broadcast(&value, sizeof value, ElementType::u8, 0);
}

}  // namespace

std::vector<int64_t> probe_sizes(int64_t max_bytes) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = kSmallest; bytes <= max_bytes; bytes *= kStep) sizes.push_back(bytes);
  if (sizes.empty()) sizes.push_back(max_bytes);
  return sizes;
}

ProbeOutcome probe(CommFactory& factory, const std::vector<ProbeRank>& ranks, const ProbeRequest& request,
                   const std::function<void(const std::string&)>& progress,
                   const std::optional<DevicePlane>& gpu) {
  const std::vector<ProbeSeries> all_series = probe_series(ranks, request.collectives, request.only);
  std::vector<int> everybody(ranks.size());
  std::iota(everybody.begin(), everybody.end(), 0);
  const bool keeps = factory.rank() == 0;
  const auto all = factory.create("probe", everybody);
  std::optional<Keeper> keeper;
  std::exception_ptr unusable;  // the file; only rank 0 has something to say about it
  if (keeps) {
    try {
      keeper.emplace(all_series, request);
    } catch (...) {
      unusable = std::current_exception();
    }
  }
  unsigned char go = unusable ? 0 : 1;
  broadcast(*all, go);
  if (unusable) std::rethrow_exception(unusable);
  if (go == 0) return {};

  for (int number = 0;; ++number) {
    Order order;
    if (keeps) order = keeper->next();
    broadcast(*all, order);
    if (order.series < 0) break;
    const ProbeSeries& series = all_series[static_cast<size_t>(order.series)];
    const int first = series.members.front();
    const bool member =
        std::find(series.members.begin(), series.members.end(), factory.rank()) != series.members.end();
    std::unique_ptr<Communicator> control, data;
    std::optional<SeriesRun> run;
    if (member) {
      control = factory.create(fmt::format("probe/{}", number), series.members);
      if (series.transport == Transport::nccl)
        data = gpu.value().factory.create(
            fmt::format("probe/{}/data", number), series.members,
            series.is_collective() ? CommUse::background_collectives : CommUse::any);
      run.emplace(series, order, *control, data ? *data : *control, data ? gpu->device : host_device());
    }
    for (Report report; !report.last && (member || keeps);) {
      if (member) report = run->next();
      // The others of the series have nothing to tell.
      if (factory.rank() == first && !keeps) all->send(&report, sizeof report, ElementType::u8, 0)->wait();
      if (keeps && factory.rank() != first) all->recv(&report, sizeof report, ElementType::u8, first)->wait();
      if (keeps) keeper->keep(report);
    }
    if (keeps && progress) progress(keeper->summary());
  }
  return keeps ? keeper->outcome() : ProbeOutcome{};
}

}  // namespace sailor
