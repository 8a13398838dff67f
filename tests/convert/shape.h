// Shapes as the data sets describe them. Pure.
#pragma once

#include "planner/spec/transformer_shape.h"

namespace sailor::convert {

// A standard GPT: equal heads, keys and values for each, an MLP four times as wide.
inline TransformerShape gpt_shape(int layers, int hidden, int heads, int sequence, int vocabulary) {
  TransformerShape shape;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = shape.kv_heads = heads;
  shape.head_width = hidden / heads;
  shape.feed_forward = 4 * hidden;
  shape.sequence = sequence;
  shape.vocabulary = vocabulary;
  return shape;
}

}  // namespace sailor::convert
