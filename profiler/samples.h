// Repeated measurements of one thing, and how sure they are. Other programs on the machine make some
// measurements too long and none too short. Of things that happen once in an iteration the median tells what
// to expect; of those that an iteration does hundreds of times it is the mean, because their sum is what is
// noticed, and it holds the short disturbances of every kind in their usual share. Value type.
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

// How many times as long as `usual_s`, which has no interruptions, something took on the average of all its
// samples; at least 1. Of many short parts that are measured together only some are ever interrupted, in a
// few samples and for long: what one part's own mean says of that is chance, what the mean of all says is
// not.
double slowdown_by_interruptions(const Samples& samples, double usual_s);

// What was measured of something, and from how much.
struct Estimate {
  double value = 0;
  int samples = 0;
};

// When a measurement is good enough.
struct MeasuringOptions {
  double relative_error = 0.02;
  int min_samples = 15;
  int max_samples = 300;
  double min_seconds = 0;
  double max_seconds = 0.5;  // what was measured by then counts
  int warm_up = 2;
  // Interruptions are how this machine computes (cpu_quota.h), and count.
  bool with_interruptions = false;
};

// Whether one more sample is worth taking.
bool enough(const Samples& samples, double elapsed_s, const MeasuringOptions& options);

}  // namespace sailor
