#include "trainer/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sailor {

double learning_rate(const TrainingSpec& training, int64_t step) {
  const ScheduleSpec& schedule = training.schedule;
  const double lr = training.optimizer.lr, min_lr = schedule.min_lr;
  if (step < schedule.warmup_steps)
    return lr * static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps + 1);
  if (schedule.name == "constant") return lr;
  const int64_t end = schedule.decay_steps > 0 ? schedule.decay_steps : training.steps;
  const double ratio =
      std::min(1.0, static_cast<double>(step - schedule.warmup_steps) /
                        static_cast<double>(std::max<int64_t>(1, end - schedule.warmup_steps)));
  if (schedule.name == "linear") return lr - ratio * (lr - min_lr);
  return min_lr + 0.5 * (1 + std::cos(std::numbers::pi * ratio)) * (lr - min_lr);
}

}  // namespace sailor
