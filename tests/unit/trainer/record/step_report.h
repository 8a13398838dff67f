// A step as rank 0 reports it.
#pragma once

#include "trainer/control/control_message.h"

namespace sailor {

inline const StepReport kStepReport{.rank = 0,
                                    .step = 12,
                                    .loss = 5.312,
                                    .gradient_norm = 1.21,
                                    .learning_rate = 3e-4,
                                    .data_digest = 99,
                                    .step_s = 0.8};

}  // namespace sailor
