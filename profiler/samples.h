// Repeated measurements of one thing, and how sure they are. The median is reported, because other programs
// on the machine make some measurements too long and none too short. Value type.
#pragma once

#include <vector>

namespace sailor {

class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  int size() const { return static_cast<int>(values_.size()); }

  double median() const;  // 0 without samples
  // Half width of the 95 % confidence interval of the median (from order statistics), relative to the median.
  // Infinity with fewer than five samples.
  double relative_error() const;

 private:
  std::vector<double> values_;
};

// When a measurement is good enough.
struct MeasuringOptions {
  double relative_error = 0.02;
  int min_samples = 15;
  int max_samples = 300;
  double max_seconds = 0.5;  // what was measured by then counts
  int warm_up = 2;
};

// Whether one more sample is worth taking.
bool enough(const Samples& samples, double elapsed_s, const MeasuringOptions& options);

}  // namespace sailor
