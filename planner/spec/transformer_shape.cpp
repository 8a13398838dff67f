#include "planner/spec/transformer_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/spec/error.h"
#include "planner/spec/model_family.h"

namespace sailor {
namespace {

constexpr int kMostWidth = 1 << 22;
constexpr int kMostLayers = 100'000;

OtherBlocks read_other_blocks(const Field& field, int layers) {
  MapField map(field,
               {"blocks", "hidden", "heads", "head_width", "feed_forward", "sequence", "attention_span"});
  OtherBlocks other;
  const Field blocks = map.required("blocks");
  const std::vector<Field> range = blocks.items();
  if (range.size() != 2) blocks.fail("must be [FIRST, END]");
  other.first = range[0].integer<int>(0, layers - 1);
  other.end = range[1].integer<int>(other.first + 1, layers);
  const auto width = [&](const char* key) { return map.required(key).integer<int>(1, kMostWidth); };
  other.hidden = width("hidden");
  other.heads = width("heads");
  other.head_width = width("head_width");
  other.feed_forward = width("feed_forward");
  other.sequence = width("sequence");
  other.attention_span = map.required("attention_span").integer<int>(0, kMostWidth);
  return other;
}

}  // namespace

int64_t TransformerShape::block_parameters() const {
  const int64_t h = hidden;
  const int64_t attention = int64_t{heads} * head_width, kv = int64_t{kv_heads} * head_width;
  const int64_t inner = feed_forward;
  const int64_t up = gated_mlp ? 2 * inner : inner;
  int64_t parameters = h * (attention + 2 * kv) + attention * h + h * up + inner * h;
  if (biases) parameters += (qkv_biases ? attention + 2 * kv : 0) + (mlp_biases ? up : 0);
  return parameters + whole_block_parameters() + (split_query_key_norms ? query_key_norms : 0);
}

int64_t TransformerShape::whole_block_parameters() const {
  int64_t vectors = norms * (biases && norm_biases ? 2 : 1);
  if (biases) vectors += (proj_biases ? 1 : 0) + (mlp_biases ? 1 : 0);
  return vectors * hidden + (split_query_key_norms ? 0 : query_key_norms);
}

int64_t TransformerShape::embedding_parameters() const {
  return (int64_t{vocabulary} + learned_rows()) * hidden;
}

int64_t TransformerShape::head_parameters() const {
  return (tied_embeddings ? 0 : int64_t{vocabulary} * hidden) + head_norm_parameters();
}

TransformerShape TransformerShape::of_block(int block) const {
  for (const OtherBlocks& other : other_blocks) {
    if (block < other.first || block >= other.end) continue;
    TransformerShape shape = *this;
    shape.other_blocks.clear();
    shape.hidden = other.hidden;
    if (other.heads != heads) shape.heads = shape.kv_heads = other.heads;
    shape.head_width = other.head_width;
    shape.feed_forward = other.feed_forward;
    shape.sequence = other.sequence;
    shape.attention_span = other.attention_span;
    return shape;
  }
  return *this;
}

double training_flops_per_token(const TransformerShape& shape) {
  double flops = 6.0 * shape.vocabulary * shape.hidden;
  for (int i = 0; i < shape.layers; ++i) flops += block_flops_per_token(shape.of_block(i));
  return flops;
}

double block_flops_per_token(const TransformerShape& block) {
  return 6.0 * static_cast<double>(block.block_parameters()) +
         12.0 * block.heads * block.head_width * block.keys();
}

TransformerShape shape_of(const ModelSpec& model) {
  if (find_family(model.family) == nullptr)
    throw InputError(
        fmt::format("model family \"{}\" has no known shape. Known families: {}. Without model.family, a "
                    "model is described "
                    "by its choices (formats.md); models of other programs need a measured profile of theirs",
                    model.family, fmt::join(known_families(), ", ")));
  TransformerShape shape;
  shape.layers = model.layers;
  shape.hidden = model.hidden;
  shape.heads = model.heads;
  shape.kv_heads = model.key_value_heads();
  shape.head_width = model.head_width();
  shape.feed_forward = model.feed_forward;
  shape.sequence = model.sequence;
  shape.vocabulary = model.vocabulary;
  shape.gated_mlp = model.gated_mlp;
  shape.tied_embeddings = model.tied_embeddings;
  shape.learned_positions = model.learned_positions();
  if (shape.learned_positions) shape.position_rows = model.position_rows() + model.unused_positions;
  shape.norm_biases = model.norm == Norm::layer;
  shape.qkv_biases = model.qkv_bias;
  shape.proj_biases = model.proj_bias;
  shape.mlp_biases = model.mlp_bias;
  shape.biases = shape.norm_biases || shape.qkv_biases || shape.proj_biases || shape.mlp_biases;
  shape.norms = (model.norm_place == NormPlace::both ? 4 : 2) - (model.shared_norm ? 1 : 0);
  shape.input_norms = model.norm_place == NormPlace::after ? 0 : model.shared_norm ? 1 : 2;
  const int of_each = model.head_width();
  if (model.qk_norm == QkNorm::heads) shape.query_key_norms = 2 * of_each;
  if (model.qk_norm == QkNorm::projection) {
    shape.query_key_norms = of_each * (model.heads + model.key_value_heads());
    shape.split_query_key_norms = true;
  }
  shape.soft_capped = model.attention_soft_cap > 0;
  if (model.attends_locally(1) && !model.mixes_local_blocks()) shape.attention_span = model.attention_window;
  for (int block = 0; block < model.layers && model.mixes_local_blocks(); ++block) {
    if (model.attends_locally(block + 1)) {
      shape.other_blocks.push_back({block, block + 1, shape.hidden, shape.heads, shape.head_width,
                                    shape.feed_forward, shape.sequence, model.attention_window});
    }
  }
  return shape;
}

TransformerShape read_transformer_shape(const Field& field) {
  MapField map(field, {"layers",      "hidden",         "heads",           "kv_heads",
                       "head_width",  "feed_forward",   "sequence",        "position_rows",
                       "vocabulary",  "gated_mlp",      "tied_embeddings", "learned_positions",
                       "biases",      "qkv_biases",     "proj_biases",     "mlp_biases",
                       "norm_biases", "norms",          "query_key_norms", "split_query_key_norms",
                       "soft_capped", "attention_span", "other_blocks"});
  TransformerShape shape;
  const auto width = [&](const char* key) { return map.required(key).integer<int>(1, kMostWidth); };
  shape.layers = map.required("layers").integer<int>(1, kMostLayers);
  shape.hidden = width("hidden");
  shape.heads = width("heads");
  shape.sequence = width("sequence");
  shape.vocabulary = width("vocabulary");
  const auto optional_width = [&](const char* key, int otherwise) {
    const auto value = map.optional(key);
    return value ? value->integer<int>(1, kMostWidth) : otherwise;
  };
  shape.kv_heads = optional_width("kv_heads", shape.heads);
  shape.head_width = optional_width("head_width", shape.hidden / shape.heads);
  shape.feed_forward = optional_width("feed_forward", 4 * shape.hidden);
  shape.position_rows = optional_width("position_rows", 0);
  const auto flag = [&](const char* key, bool& value) {
    if (const auto given = map.optional(key)) value = given->boolean();
  };
  flag("gated_mlp", shape.gated_mlp);
  flag("tied_embeddings", shape.tied_embeddings);
  flag("learned_positions", shape.learned_positions);
  flag("biases", shape.biases);
  flag("qkv_biases", shape.qkv_biases);
  flag("proj_biases", shape.proj_biases);
  flag("mlp_biases", shape.mlp_biases);
  flag("norm_biases", shape.norm_biases);
  flag("split_query_key_norms", shape.split_query_key_norms);
  flag("soft_capped", shape.soft_capped);
  if (const auto norms = map.optional("norms")) shape.norms = norms->integer<int>(0, 16);
  shape.query_key_norms = optional_width("query_key_norms", 0);
  if (const auto span = map.optional("attention_span"))
    shape.attention_span = span->integer<int>(0, kMostWidth);
  if (const auto others = map.optional("other_blocks"))
    for (const Field& item : others->items()) {
      const OtherBlocks other = read_other_blocks(item, shape.layers);
      if (!shape.other_blocks.empty() && other.first < shape.other_blocks.back().end)
        item.fail("must begin where the blocks before it end, or later");
      shape.other_blocks.push_back(other);
    }
  if (shape.kv_heads > shape.heads) map.fail("more kv_heads than heads");
  if (shape.head_width < 1) map.fail("more heads than hidden elements");
  return shape;
}

}  // namespace sailor
