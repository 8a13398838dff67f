#include "trainer/model/registry.h"

#include <fmt/format.h>

#include <cstddef>
#include <numeric>

#include "planner/spec/error.h"

namespace sailor {

std::unique_ptr<Layer> build_layer(const LayerContext& context, int index) {
  using Build = std::unique_ptr<Layer> (*)(const LayerContext&, int);
#define SAILOR_BUILD(name) build_##name,
  static constexpr Build kBuilds[] = {SAILOR_MODEL_FAMILIES(SAILOR_BUILD)};
#undef SAILOR_BUILD
  // Both lists are made from families.h.
  const std::ptrdiff_t place = &model_family(context.model.family) - model_families().data();
  return kBuilds[place](context, index);
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
  return (vocabulary + multiple - 1) / multiple * multiple;
}

int64_t padded_vocabulary(int vocabulary, const RankLayout& layout) {
  std::vector<int> parts;
  for (const RankSlot& slot : layout.slots()) parts.push_back(slot.shape.parts());
  return padded_vocabulary(vocabulary, parts);
}

}  // namespace sailor
