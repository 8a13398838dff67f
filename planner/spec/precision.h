// The precisions that a model can be trained in, one row of a table each. What depends on a precision without
// computing in it (files, memory, messages, prices of kernels) takes it from its row; which type of libtorch
// its element type is, says trainer/model/element_types.h.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace sailor {

class Field;

enum class Precision { fp32, fp64, bf16, fp16 };

struct PrecisionKind {
  Precision precision;
  const char* name;            // in every file and option
  const char* element_type;    // of weights, activations and messages, as safetensors calls it ...
  int element_bytes;           // ... and its size
  const char* state_type;      // the same of what the optimizer updates: sums of gradients, moments, and
  int state_bytes;             // a master copy where weights are narrower
  const char* peak_flops_key;  // of a GPU type's peak_flops in catalogs
  const char* megatron_flag;   // that asks Megatron-LM for it; empty: its default, null: it has no such
  bool scales_loss = false;    // its range is too small for gradients: see training.loss_scale
};

inline constexpr std::array kPrecisions = {
    PrecisionKind{Precision::fp32, "fp32", "F32", 4, "F32", 4, "fp32", ""},
    PrecisionKind{Precision::fp64, "fp64", "F64", 8, "F64", 8, "fp64", nullptr},
    PrecisionKind{Precision::bf16, "bf16", "BF16", 2, "F32", 4, "bf16", "--bf16"},
    PrecisionKind{Precision::fp16, "fp16", "F16", 2, "F32", 4, "fp16", "--fp16", true},
};

constexpr const PrecisionKind& kind_of(Precision precision) {
  return kPrecisions[static_cast<size_t>(precision)];
}
constexpr const char* to_string(Precision precision) {
  return kind_of(precision).name;
}
// Bytes of one element of weights and activations.
constexpr int element_bytes(Precision precision) {
  return kind_of(precision).element_bytes;
}

const std::vector<std::string>& precision_names();  // in the order of the table
Precision read_precision(const Field& field);       // a name in a file; throws InputError on another
// A name as the value of an option; throws InputError with the option on another.
Precision parse_precision(const std::string& text, const std::string& option);

// In job specs: bf16 for plans whose GPU types all have it, fp16 for the others.
inline constexpr char k16Bit[] = "16-bit";

}  // namespace sailor
