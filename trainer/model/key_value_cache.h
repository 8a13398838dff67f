// Keys and values of the tokens that a model has read, for text that is generated token by token: attention
// of the next tokens reads them instead of computing them again. One thread at a time.
//
//     KeyValueCache past(capacity);
//     Batch batch{.inputs = ..., .past = &past};      // the next tokens of the sequences
//     ... forward() of every layer ...
//     past.advance(batch.inputs.size(1));
#pragma once

#include <cstdint>
#include <map>

#include "trainer/model/attention.h"

namespace sailor {

class KeyValueCache {
 public:
  explicit KeyValueCache(int64_t capacity) : capacity_(capacity) {}

  int64_t tokens() const { return tokens_; }  // of the batches before this one
  // Adds the keys and values of the batch in block `layer`; returns those of all tokens with the batch's
  // queries. Throws std::logic_error beyond the capacity.
  Heads extended(int layer, const Heads& heads);
  void advance(int64_t tokens) { tokens_ += tokens; }

 private:
  struct KeysAndValues {
    at::Tensor keys, values;  // [sequences, key and value heads, capacity, head size]
  };

  const int64_t capacity_;
  int64_t tokens_ = 0;
  std::map<int, KeysAndValues> of_layer_;
};

}  // namespace sailor
