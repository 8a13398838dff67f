#include "profiler/links/link_fit.h"

#include <algorithm>
#include <iterator>

namespace sailor {
namespace {

// Nothing is known better than that: the error says how samples spread, not what they have in common.
constexpr double kBestError = 0.05;
constexpr size_t kSizesOfTheRate = 3;

struct Sample {
  double bytes, seconds, weight;  // weight of a relative residual
};

std::vector<Sample> samples_of(std::vector<NetworkMeasurement> messages) {
  std::sort(messages.begin(), messages.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  std::vector<Sample> samples;
  for (const NetworkMeasurement& m : messages) {
    const double error = std::max(m.error, kBestError);
    samples.push_back({static_cast<double>(m.bytes), m.seconds, 1 / (error * error)});
  }
  return samples;
}

// Seconds that never fall, as near to the measured ones as possible.
std::vector<double> rising_seconds(const std::vector<Sample>& samples) {
  struct Pool {
    double seconds, weight;
    size_t count;
  };
  std::vector<Pool> pools;
  for (const Sample& sample : samples) {
    pools.push_back({sample.seconds, sample.weight, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].seconds > pools.back().seconds) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& pool = pools.back();
      pool.seconds = (pool.seconds * pool.weight + last.seconds * last.weight) / (pool.weight + last.weight);
      pool.weight += last.weight;
      pool.count += last.count;
    }
  }
  std::vector<double> seconds;
  for (const Pool& pool : pools) seconds.insert(seconds.end(), pool.count, pool.seconds);
  return seconds;
}

// The line with least weighted squares of relative residuals, 0 <= latency <= most_latency_s and s_per_byte
// >= least_s_per_byte. The sum is convex, so the best line is the unconstrained one or is on a limit.
class LineFit {
 public:
  explicit LineFit(const std::vector<Sample>& samples) : samples_(samples) {
    for (const auto& [bytes, seconds, weight] : samples) {
      const double w = weight / (seconds * seconds);
      w_ += w;
      wb_ += w * bytes;
      wbb_ += w * bytes * bytes;
      wt_ += w * seconds;
      wbt_ += w * bytes * seconds;
    }
  }

  double best_s_per_byte(double most_latency_s, double least_s_per_byte) const {
    std::vector<std::pair<double, double>> lines;  // latency, seconds per byte
    const double determinant = w_ * wbb_ - wb_ * wb_;
    if (determinant > 1e-12 * w_ * wbb_) {
      const double slope = (w_ * wbt_ - wb_ * wt_) / determinant;
      const double latency = (wt_ - slope * wb_) / w_;
      if (latency >= 0 && latency <= most_latency_s && slope >= least_s_per_byte) return slope;
    }
    for (const double latency : {0.0, most_latency_s})
      lines.emplace_back(latency, std::max(least_s_per_byte, (wbt_ - latency * wb_) / wbb_));
    lines.emplace_back(std::clamp((wt_ - least_s_per_byte * wb_) / w_, 0.0, most_latency_s),
                       least_s_per_byte);
    const auto best = std::min_element(
        lines.begin(), lines.end(), [this](const auto& a, const auto& b) { return squares(a) < squares(b); });
    return best->second;
  }

 private:
  double squares(const std::pair<double, double>& line) const {
    double sum = 0;
    for (const auto& [bytes, seconds, weight] : samples_) {
      const double residual = (line.first + line.second * bytes) / seconds - 1;
      sum += weight * residual * residual;
    }
    return sum;
  }

  const std::vector<Sample>& samples_;
  double w_ = 0, wb_ = 0, wbb_ = 0, wt_ = 0, wbt_ = 0;
};

}  // namespace

LinkFit fit_link(std::vector<NetworkMeasurement> messages) {
  const std::vector<Sample> samples = samples_of(std::move(messages));
  double most_bytes_per_s = 0;
  for (const Sample& s : samples) most_bytes_per_s = std::max(most_bytes_per_s, s.bytes / s.seconds);
  const std::vector<double> rising = rising_seconds(samples);
  LinkFit fit;
  for (size_t i = 0; i < samples.size(); ++i)
    fit.points.emplace_back(samples[i].bytes, std::max(rising[i], samples[i].bytes / most_bytes_per_s));
  const std::vector<Sample> largest(
      samples.end() - static_cast<std::ptrdiff_t>(std::min(kSizesOfTheRate, samples.size())), samples.end());
  fit.bytes_per_s = 1 / LineFit(largest).best_s_per_byte(fit.points.front().second, 1 / most_bytes_per_s);
  const auto [bytes, seconds] = fit.points.front();
  fit.latency_s = std::max(0.0, seconds - bytes / fit.bytes_per_s);
  return fit;
}

std::vector<NetworkMeasurement> of_pairs(const std::vector<NetworkMeasurement>& messages, int pairs) {
  std::vector<NetworkMeasurement> found;
  std::copy_if(messages.begin(), messages.end(), std::back_inserter(found),
               [pairs](const NetworkMeasurement& m) { return m.pairs == pairs; });
  return found;
}

void fit_curve(NetworkFile::Link& link) {
  link.points.clear();
  link.latency_s.reset();
  link.bytes_per_s = link.node_bytes_per_s = 0;
  const std::vector<NetworkMeasurement> alone = of_pairs(link.messages, 1);
  if (alone.empty()) return;
  LinkFit fit = fit_link(alone);
  link.points = std::move(fit.points);
  link.latency_s = fit.latency_s;
  link.bytes_per_s = fit.bytes_per_s;
  int most = 1;
  for (const NetworkMeasurement& m : link.messages) most = std::max(most, m.pairs);
  // One pair of them cannot be faster alone than all together.
  if (most > 1)
    link.node_bytes_per_s =
        std::max(fit.bytes_per_s, most * fit_link(of_pairs(link.messages, most)).bytes_per_s);
}

}  // namespace sailor
