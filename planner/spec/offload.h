// What the ranks of a stage keep in the memory of their node instead of their GPU's: the optimizer's states,
// with master copies and averages (Rajbhandari et al., 2021, "ZeRO-Infinity"). Its step reads and writes them
// over the link between GPU and host, once in an iteration, and computes the same bits.
#pragma once

#include <string>

namespace sailor {

class Field;

enum class Offload { none, optimizer };

const char* to_string(Offload offload);
// A word of a file. Throws InputError on a word that is none.
Offload read_offload(const Field& field);

}  // namespace sailor
