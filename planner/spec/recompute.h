// What a stage computes again in the backward instead of keeping it: nothing, the inside of attention, whole
// layers from their inputs.
#pragma once

namespace sailor {

class Field;

enum class Recompute { none, selective, full };

const char* to_string(Recompute recompute);
Recompute read_recompute(const Field& field);  // a word of a file; throws InputError on another

}  // namespace sailor
