// Independent forward passes of decoders in plain ATen from unsharded weights, without any code of the
// trainer.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"

namespace sailor::equality {

using Weights = std::map<std::string, at::Tensor>;  // unsharded, by parameter name

// Applies dropout to an activation [sequences, tokens, hidden]: of the embedding (layer 0, site 0), and of
// the output of a block's attention (site 0) or MLP (site 1).
using ReferenceDropout = std::function<at::Tensor(const at::Tensor& x, int layer, int site)>;

// Logits [sequences, tokens, vocabulary] of int64 ids [sequences, tokens].
using ReferenceForward = at::Tensor (*)(const ModelSpec& model, const Weights& weights, const at::Tensor& ids,
                                        const ReferenceDropout& drop);

// The family's own, or that of any decoder.
ReferenceForward reference_forward(const std::string& family);

// Reads every choice of the model, as the trainer does; the families below were written down by themselves.
at::Tensor decoder_reference(const ModelSpec& model, const Weights& weights, const at::Tensor& ids,
                             const ReferenceDropout& drop);

at::Tensor gpt2_reference(const ModelSpec& model, const Weights& weights, const at::Tensor& ids,
                          const ReferenceDropout& drop);
at::Tensor opt_reference(const ModelSpec& model, const Weights& weights, const at::Tensor& ids,
                         const ReferenceDropout& drop);
at::Tensor gpt_neo_reference(const ModelSpec& model, const Weights& weights, const at::Tensor& ids,
                             const ReferenceDropout& drop);
at::Tensor gpt_neox_reference(const ModelSpec& model, const Weights& weights, const at::Tensor& ids,
                              const ReferenceDropout& drop);

// Functions that several of them need. Names of a layer's parameters begin with `at`, such as `3.`.
at::Tensor reference_layer_norm(const at::Tensor& x, const Weights& weights, const std::string& at,
                                double epsilon);
at::Tensor reference_gelu(const at::Tensor& x);
// Rotary embeddings: elements (i, i + half) of every row [.., tokens, size] as complex numbers, times e^(i
// angle).
at::Tensor reference_rotation(const at::Tensor& x, double base);
// The same with the angle per token of every pair, and a factor of the result.
at::Tensor reference_rotation(const at::Tensor& x, const std::vector<double>& speeds, double factor);
// softmax(query key^T * scale) value over [.., tokens, size]; token i sees max(0, i - window + 1)..i, or 0..i
// without a window.
at::Tensor reference_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               double scale, int64_t window = 0);
// Multi-head attention with the fused matrix with rows [head][query, key, value][size]; uses its bias if
// there is one.
at::Tensor reference_fused_attention(const at::Tensor& x, const Weights& weights, const std::string& at,
                                     int64_t heads, double scale, int64_t window = 0);
// `weights` of the head: its own, or the embedding's.
at::Tensor reference_logits(const ModelSpec& model, const Weights& weights, const at::Tensor& normed);

}  // namespace sailor::equality
