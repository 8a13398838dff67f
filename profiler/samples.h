// Repeated measurements of one quantity, and their precision. Other programs on the machine make some
// measurements too long and none too short. For events that happen once per iteration, the median is the
// expected value. For those that an iteration does hundreds of times, it is the mean, because their sum
// matters, and it contains short disturbances in their usual proportion. Value type.
#pragma once

#include <vector>

namespace sailor {

class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  int size() const { return static_cast<int>(values_.size()); }

  double median() const;  // 0 without samples
  double mean() const;    // 0 without samples
  // Without the outliers. 0 without samples.
  double usual_mean() const;
  // Samples above twice the median: they were interrupted.
  int outliers() const;
  // Half width of the 95 % confidence interval of the median (from order statistics), relative to the median.
  // Infinity with fewer than five samples.
  double relative_error() const;

 private:
  std::vector<double> values_;
};

// Ratio of the mean over all samples to `usual_s`, which has no interruptions; at least 1. Of many short
// parts that are measured together only some are ever interrupted, in a few samples and for long: the mean of
// one part says little about that, the mean of all parts does.
double slowdown_by_interruptions(const Samples& samples, double usual_s);

// An estimated quantity, with its number of measurements.
struct Estimate {
  double value = 0;
  int samples = 0;
};

// When a measurement is precise enough.
struct MeasuringOptions {
  double relative_error = 0.02;
  int min_samples = 15;
  int max_samples = 300;
  double min_seconds = 0;
  double max_seconds = 0.5;  // stops then with what was measured
  int warm_up = 2;
  // Interruptions are normal on this machine (cpu_quota.h), and count.
  bool with_interruptions = false;
};

// Is one more sample worth taking?
bool enough(const Samples& samples, double elapsed_s, const MeasuringOptions& options);

}  // namespace sailor
