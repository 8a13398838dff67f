// ZeRO: what the replicas of a stage share instead of holding it each for itself. A degree shares what the
// ones before it do and one thing more; its value is the number that the papers give it. The trainer runs all
// but `parameters` (plan/features.h); the simulator predicts it of frameworks that do.
#pragma once

#include <string>

namespace sailor {

class Field;

enum class Zero { none, optimizer, gradients, parameters };

inline bool shards_optimizer(Zero zero) {
  return zero >= Zero::optimizer;
}

const char* to_string(Zero zero);
// As features of plans are called: `zero1`; empty for none.
std::string short_name(Zero zero);
// A word of a file. Throws InputError on a word that is none.
Zero read_zero(const Field& field);

}  // namespace sailor
