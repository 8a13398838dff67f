#include "profiler/samples.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sailor {

double Samples::median() const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

double Samples::mean() const {
  double sum = 0;
  for (const double value : values_) sum += value;
  return values_.empty() ? 0 : sum / size();
}

double Samples::usual_mean() const {
  const double most = 2 * median();
  double sum = 0;
  int count = 0;
  for (const double value : values_) {
    if (value > most) continue;
    sum += value;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

int Samples::outliers() const {
  const double most = 2 * median();
  return static_cast<int>(
      std::count_if(values_.begin(), values_.end(), [most](double value) { return value > most; }));
}

double Samples::relative_error() const {
  const int n = size();
  if (n < 5) return std::numeric_limits<double>::infinity();
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const double reach = 0.98 * std::sqrt(n);
  const int low = std::max(0, static_cast<int>(std::floor(n / 2.0 - reach)));
  const int high = std::min(n - 1, static_cast<int>(std::ceil(n / 2.0 + reach)));
  const double middle = median();
  if (middle <= 0) return std::numeric_limits<double>::infinity();
  return 0.5 * (sorted[static_cast<size_t>(high)] - sorted[static_cast<size_t>(low)]) / middle;
}

double slowdown_by_interruptions(const Samples& samples, double usual_s) {
  return usual_s > 0 ? std::max(1.0, samples.mean() / usual_s) : 1;
}

bool enough(const Samples& samples, double elapsed_s, const MeasuringOptions& options) {
  if (samples.size() < std::min(options.min_samples, options.max_samples)) return false;
  if (elapsed_s < std::min(options.min_seconds, options.max_seconds)) return false;
  return samples.relative_error() <= options.relative_error || elapsed_s >= options.max_seconds ||
         samples.size() >= options.max_samples;
}

}  // namespace sailor
