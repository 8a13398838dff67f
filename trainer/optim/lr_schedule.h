// The learning rate of a step, as in nanoGPT and Megatron-LM (warm-up counts as part of the decay steps).
#pragma once

#include <cstdint>

#include "planner/spec/job_spec.h"

namespace sailor {

// Of step `step`, counted from 0. With W warm-up steps and D decay steps (the job's steps by default):
//
//     step < W       lr (step + 1) / (W + 1)
//     else           constant: lr
//                    linear:   lr - r (lr - min_lr)                     r = (step - W) / (D - W), at most 1
//                    cosine:   min_lr + (1 + cos(pi r)) (lr - min_lr) / 2
//                    wsd:      r = (step - (D - A)) / A, at most 1, in the last A = annealing_steps steps,
//                              0 before them; linear or cosine as above, or
//                              1-sqrt: lr - sqrt(r) (lr - min_lr)
//                    inverse_sqrt: lr sqrt((W + 1) / (step + 1)), at least min_lr
//
// Warm-up, stable, decay (wsd): MiniCPM (Hu et al. 2024); 1-sqrt: Haegele et al. 2024. Inverse square root:
// Vaswani et al. 2017.
double learning_rate(const TrainingSpec& training, int64_t step);

}  // namespace sailor
