#include "trainer/model/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "planner/spec/error.h"

// Every family of the program, a line each: NAME has a function NAME_family() in its file.
#define SAILOR_MODEL_FAMILIES(FAMILY) \
  FAMILY(gpt2)                        \
  FAMILY(opt)                         \
  FAMILY(gpt_neo)                     \
  FAMILY(llama)

namespace sailor {

#define SAILOR_DECLARE(name) ModelFamily name##_family();
SAILOR_MODEL_FAMILIES(SAILOR_DECLARE)
#undef SAILOR_DECLARE

namespace {

const std::vector<ModelFamily>& families() {
#define SAILOR_CALL(name) name##_family(),
  // Never destroyed: writes of checkpoints that a disk holds up may look families up while the process ends.
  static const auto& all = *new std::vector<ModelFamily>{SAILOR_MODEL_FAMILIES(SAILOR_CALL)};
#undef SAILOR_CALL
  return all;
}

}  // namespace

std::vector<std::string> model_family_names() {
  std::vector<std::string> names;
  for (const ModelFamily& family : families()) names.push_back(family.name);
  return names;
}

const ModelFamily& model_family(const std::string& name) {
  for (const ModelFamily& family : families()) {
    if (family.name == name) return family;
  }
  throw InputError(fmt::format("model.family: the trainer does not know \"{}\" (known: {})", name,
                               fmt::join(model_family_names(), ", ")));
}

void check_split(const ModelSpec& model, int tp) {
  const auto divides = [&](const char* key, int value) {
    if (value % tp != 0) {
      throw InputError(fmt::format(
          "model.{}: {} cannot be split over {} GPUs of a TP group; choose a plan whose TP degrees "
          "divide it",
          key, value, tp));
    }
  };
  if (model.hidden % model.heads != 0) {
    throw InputError(
        fmt::format("model.heads: {} does not divide model.hidden {}", model.heads, model.hidden));
  }
  if (model.heads % model.key_value_heads() != 0) {
    throw InputError(fmt::format("model.kv_heads: {} does not divide model.heads {}", model.key_value_heads(),
                                 model.heads));
  }
  divides("heads", model.heads);
  divides("kv_heads", model.key_value_heads());
  divides("feed_forward", model.feed_forward);
}

std::vector<ParameterSpec> list_parameters(const ModelSpec& model, int64_t padded_vocabulary) {
  std::vector<ParameterSpec> parameters;
  LayerContext context;
  context.model = model;
  context.padded_vocabulary = padded_vocabulary;
  context.listing = &parameters;
  for (int i = 0; i < model.num_all_layers(); ++i) model_family(model.family).build(context, i);
  return parameters;
}

int64_t padded_vocabulary(int vocabulary, const std::vector<int>& tps) {
  int64_t multiple = 1;
  for (const int tp : tps) multiple = std::lcm(multiple, static_cast<int64_t>(tp));
  return (vocabulary + multiple - 1) / multiple * multiple;
}

at::ScalarType scalar_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return at::kFloat;
    case Precision::fp64:
      return at::kDouble;
    case Precision::bf16:
      return at::kBFloat16;
  }
  throw std::logic_error("scalar_type: no such precision");
}

ElementType element_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ElementType::f32;
    case at::kDouble:
      return ElementType::f64;
    case at::kBFloat16:
      return ElementType::bf16;
    case at::kLong:
      return ElementType::i64;
    case at::kByte:
      return ElementType::u8;
    default:
      throw std::logic_error(fmt::format("no communicator moves elements of type {}", at::toString(type)));
  }
}

}  // namespace sailor
