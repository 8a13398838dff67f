// Decides which elements dropout drops: a random number for every element of every activation, from a
// counter-based generator (Philox4x32-10: Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC 2011).
//
// An element's number is a function of the training seed, the step, the sequence's index in the global batch,
// the layer, the place in the layer and the element's index in the sequence. So every rank with a copy of an
// activation drops the same elements, recomputing a block gives the same bits, and neither the plan nor a
// resume changes a run. Pure and thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace sailor {

// One block of four random numbers.
std::array<uint32_t, 4> philox4x32(const std::array<uint32_t, 4>& counter,
                                   const std::array<uint32_t, 2>& key);

// Position of one sequence's activation in a run; element i of it has number i % 4 of block i / 4. Block b
// has the counter {b mod 2^32, sequence, step, b / 2^32 * 2^16 + 4 layer + site} and the key {seed mod 2^32,
// seed / 2^32}: no two elements of a run share one below 2^32 steps, 2^32 sequences, 2^14 layers and 2^50
// elements of a sequence.
struct DropoutPlace {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t sequence = 0;  // index in the global batch
  int layer = 0;
  int site = 0;  // 0..3
};

// Blocks [first_block, first_block + blocks) into `numbers`, four each.
void dropout_numbers(const DropoutPlace& place, int64_t first_block, int64_t blocks, uint32_t* numbers);

// An element is dropped if its number is below this: floor(rate * 2^32). Requires 0 <= rate < 1.
uint32_t dropout_threshold(double rate);

}  // namespace sailor
