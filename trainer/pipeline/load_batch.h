// Microbatches from training data, in the memory that a rank computes on.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "trainer/data/token_data.h"
#include "trainer/model/layer.h"

namespace sailor {

// The sequences at `places`, in this order. Without `tokens`, for chunks that read none, only what every
// block needs: the documents. Adds the digests of the sequences' tokens (token_digest.h) to `digest`, if
// given. Copies to a device are enqueued. Throws as TokenData::tokens().
Batch load_batch(const TokenData& data, const std::vector<TokenData::Place>& places, bool tokens,
                 at::Device device, double* digest = nullptr);

}  // namespace sailor
