#include "planner/spec/model_spec.h"

namespace sailor {

using Words = std::vector<std::string>;

const Words& words_of(Norm) {
  static const Words words = {"layer", "rms", "zero_centred_rms"};
  return words;
}
const Words& words_of(NormPlace) {
  static const Words words = {"before", "after", "both"};
  return words;
}
const Words& words_of(PositionEmbedding) {
  static const Words words = {"learned", "rotary"};
  return words;
}
const Words& words_of(RotaryScaling) {
  static const Words words = {"none", "linear", "dynamic", "llama3", "yarn"};
  return words;
}
const Words& words_of(QkNorm) {
  static const Words words = {"none", "heads", "projection"};
  return words;
}
const Words& words_of(Activation) {
  static const Words words = {"gelu", "gelu_tanh", "silu", "relu"};
  return words;
}

}  // namespace sailor
