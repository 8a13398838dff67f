#include "trainer/model/initial_values.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <numbers>

namespace sailor {
namespace {

uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t name_key(uint64_t seed, const std::string& name) {  // FNV-1a over the name, mixed with the seed
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return splitmix64(hash ^ splitmix64(seed));
}

// Standard normal number `index` of a stream: Box-Muller over two 32-bit uniforms of one counter.
double normal_at(uint64_t key, int64_t index) {
  const uint64_t bits = splitmix64(key ^ splitmix64(static_cast<uint64_t>(index)));
  const double u1 = (static_cast<double>(bits >> 32) + 1.0) / 4294967296.0;  // (0, 1]
  const double u2 = static_cast<double>(bits & 0xffffffffu) / 4294967296.0;
  return std::sqrt(-2.0 * std::log(u1)) * std::cos(2.0 * std::numbers::pi * u2);
}

}  // namespace

at::Tensor normal_values(uint64_t seed, const std::string& name, int64_t first, int64_t count, double mean,
                         double deviation, at::ScalarType dtype) {
  at::Tensor values = at::empty({count}, at::TensorOptions().dtype(at::kDouble));
  double* out = values.data_ptr<double>();
  const uint64_t key = name_key(seed, name);
  at::parallel_for(0, count, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = mean + deviation * normal_at(key, first + i);
  });
  return values.to(dtype);
}

}  // namespace sailor
