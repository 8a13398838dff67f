#include "trainer/model/registry.h"

#include <fmt/format.h>

#include <numeric>

#include "planner/spec/error.h"
#include "trainer/model/decoder_block.h"
#include "trainer/model/ends.h"

namespace sailor {

std::unique_ptr<Layer> build_layer(const LayerContext& context, int index) {
  model_family(context.model.family);
  if (index == 0) return std::make_unique<Embedding>(context);
  if (index > context.model.layers) return std::make_unique<Head>(context);
  return std::make_unique<DecoderBlock>(context, index);
}

void check_split(const ModelSpec& model, int tp) {
  model_family(model.family);
  if (const auto problem = find_problem(model))
    throw InputError(fmt::format("model.{}: {}", problem->key, problem->text));
  const auto divides = [&](const char* key, int value) {
    if (value % tp != 0) {
      throw InputError(fmt::format(
          "model.{}: {} cannot be split over {} GPUs of a TP group; choose a plan whose TP degrees "
          "divide it",
          key, value, tp));
    }
  };
  divides("heads", model.heads);
  divides("kv_heads", model.key_value_heads());
  divides("feed_forward", model.feed_forward);
}

int64_t padded_vocabulary(int vocabulary, const std::vector<int>& parts) {
  int64_t multiple = 1;
  for (const int n : parts) multiple = std::lcm(multiple, static_cast<int64_t>(n));
  multiple *= kVocabularyMultiple;
  return (vocabulary + multiple - 1) / multiple * multiple;
}

int64_t padded_vocabulary(int vocabulary, const RankLayout& layout) {
  std::vector<int> parts;
  for (const RankSlot& slot : layout.slots()) parts.push_back(slot.shape.parts());
  return padded_vocabulary(vocabulary, parts);
}

}  // namespace sailor
