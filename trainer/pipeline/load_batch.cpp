#include "trainer/pipeline/load_batch.h"

#include <algorithm>
#include <cstring>

#include "trainer/data/token_digest.h"

namespace sailor {
namespace {

// [sequences, length] in host memory, from which a device copies without waiting.
at::Tensor host_integers(int64_t sequences, int64_t length, at::Device device) {
  return at::empty({sequences, length}, at::TensorOptions().dtype(at::kLong).pinned_memory(!device.is_cpu()));
}

void drop_uncounted(const SequenceLayout& layout, int64_t* targets, int64_t length) {
  int64_t next = 0;
  for (const auto& [first, end] : layout.counted) {
    std::fill(targets + next, targets + first, kUncounted);
    next = end;
  }
  std::fill(targets + next, targets + length, kUncounted);
}

at::Tensor positions_in(const std::vector<int64_t>& documents, int64_t sequences, at::Device device) {
  int64_t tokens = 0;
  for (const int64_t length : documents) tokens += length;
  at::Tensor positions = host_integers(sequences, tokens / sequences, device);
  int64_t* next = positions.data_ptr<int64_t>();
  for (const int64_t length : documents) {
    for (int64_t i = 0; i < length; ++i) *next++ = i;
  }
  return positions.to(device, /*non_blocking=*/true);
}

}  // namespace

Batch load_batch(const TokenData& data, const std::vector<TokenData::Place>& places, bool tokens,
                 at::Device device, double* digest) {
  const auto sequences = static_cast<int64_t>(places.size());
  Batch batch;
  for (int64_t i = 0; i < sequences; ++i) {
    const TokenData::Place& place = places[static_cast<std::size_t>(i)];
    SequenceLayout layout;
    if (!data.whole_sequences()) {
      layout = data.layout(place);
      batch.documents.insert(batch.documents.end(), layout.documents.begin(), layout.documents.end());
    }
    if (!tokens) continue;
    const std::vector<int64_t> row = data.tokens(place);
    const auto length = static_cast<int64_t>(row.size()) - 1;
    if (digest) *digest += token_digest(row);
    if (i == 0) {
      batch.inputs = host_integers(sequences, length, device);
      batch.targets = host_integers(sequences, length, device);
    }
    const auto bytes = static_cast<std::size_t>(length) * sizeof(int64_t);
    int64_t* const targets = batch.targets.data_ptr<int64_t>() + i * length;
    std::memcpy(batch.inputs.data_ptr<int64_t>() + i * length, row.data(), bytes);
    std::memcpy(targets, row.data() + 1, bytes);
    if (!data.whole_sequences()) drop_uncounted(layout, targets, length);
  }
  // Sequences that are one document each are computed together.
  if (static_cast<int64_t>(batch.documents.size()) == sequences) batch.documents.clear();
  if (!tokens) return batch;
  // Enqueued; libtorch keeps the pinned memory until it has been read.
  batch.inputs = batch.inputs.to(device, /*non_blocking=*/true);
  batch.targets = batch.targets.to(device, /*non_blocking=*/true);
  if (!batch.documents.empty()) batch.positions = positions_in(batch.documents, sequences, device);
  return batch;
}

}  // namespace sailor
