// The layers of a decoder.
#pragma once

#include <memory>
#include <vector>

#include "planner/plan/rank_layout.h"
#include "planner/spec/model_family.h"
#include "trainer/model/layer.h"

namespace sailor {

// Layer `index` (0 = embedding, 1..layers = blocks, layers + 1 = norm and head) of the context's model.
// Throws InputError for an unknown family.
std::unique_ptr<Layer> build_layer(const LayerContext& context, int index);
// Throws InputError when the model cannot be built, or cannot be split over `tp` GPUs.
void check_split(const ModelSpec& model, int tp);

// Matrix units read rows of logits that begin at multiples of 16 bytes, also in 8 bits; other rows take about
// five times as long. The planner's styles of this trainer (etc/frameworks) say the same.
inline constexpr int64_t kVocabularyMultiple = 16;
// vocabulary rounded up to a multiple of this and of every number of parts, of those that replicas hold
// weights in.
int64_t padded_vocabulary(int vocabulary, const std::vector<int>& parts);
int64_t padded_vocabulary(int vocabulary, const RankLayout& layout);

}  // namespace sailor
