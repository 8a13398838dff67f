// One rank's file of a checkpoint: its ranges of tensors as a safetensors file whose tensors are named
// `TENSOR@FIRST`. Needs no libtorch.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_manifest.h"

namespace sailor {

struct ShardPiece {
  std::string tensor;
  std::string dtype;
  int64_t first = 0;  // element of the unsharded tensor
  int64_t count = 0;
  const void* data = nullptr;
};

// A file of the manifest, whose pieces name their tensors.
struct WrittenShard {
  CheckpointFile file;               // `tensor` of its pieces: index in the next
  std::vector<ShardPiece> contents;  // without data
};

// Writes and syncs `directory`/`name`. Throws std::runtime_error naming path and reason, also soon after
// `stop`, if given, became true.
WrittenShard write_shard(const std::string& directory, const std::string& name,
                         const std::vector<ShardPiece>& pieces, const std::atomic<bool>* stop = nullptr);

// For messages between ranks. parse_shard() throws std::runtime_error.
std::string to_text(const WrittenShard& shard);
WrittenShard parse_shard(const std::string& text);

}  // namespace sailor
