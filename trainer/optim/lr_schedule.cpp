#include "trainer/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace sailor {
namespace {

// From lr at r = 0 to min_lr at r = 1.
double decayed(const std::string& shape, double r, double lr, double min_lr) {
  if (shape == "linear") return lr - r * (lr - min_lr);
  if (shape == "1-sqrt") return lr - std::sqrt(r) * (lr - min_lr);
  return min_lr + 0.5 * (1 + std::cos(std::numbers::pi * r)) * (lr - min_lr);
}

}  // namespace

double learning_rate(const TrainingSpec& training, int64_t step) {
  const ScheduleSpec& schedule = training.schedule;
  const double lr = training.optimizer.lr, min_lr = schedule.min_lr;
  if (step < schedule.warmup_steps)
    return lr * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps + 1);
  if (schedule.name == "constant") return lr;
  if (schedule.name == "inverse_sqrt")
    return std::max(min_lr, lr * std::sqrt(static_cast<double>(schedule.warmup_steps + 1) /
                                           static_cast<double>(step + 1)));
  const int64_t end = schedule.decay_steps > 0 ? schedule.decay_steps : training.steps;
  const bool wsd = schedule.name == "wsd";
  const int64_t begin = wsd ? end - schedule.annealing_steps : schedule.warmup_steps;
  const double ratio = std::clamp(
      static_cast<double>(step - begin) / static_cast<double>(std::max<int64_t>(1, end - begin)), 0.0, 1.0);
  return decayed(wsd ? schedule.annealing : schedule.name, ratio, lr, min_lr);
}

}  // namespace sailor
