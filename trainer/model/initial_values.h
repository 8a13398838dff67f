// Initial values of parameters. Element i of a parameter only depends on (seed, name, i), where i is the
// index in the unsharded tensor: a rank generates its own rows without the others, and every plan starts from
// the same bits.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>

namespace sailor {

// Elements [first, first + count) of N(mean, deviation) as a flat tensor, drawn in double precision and then
// rounded to `dtype`.
at::Tensor normal_values(uint64_t seed, const std::string& name, int64_t first, int64_t count, double mean,
                         double deviation, at::ScalarType dtype);

}  // namespace sailor
