// Training data: memory-mapped token files, read as one array of tokens that is divided into windows of one
// sequence each, or a blend of several such sources (blend.h).
//
// The window of the index-th sequence of a step depends only on (seed, step, index, global batch), not on the
// plan: an epoch of a source is a permutation of all its windows, drawn from (seed, source, epoch). A run
// that resumes at any step sees the same data as without the interruption. File formats: token_file.h.
// Immutable after opening and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"

namespace sailor {

class TokenData {
 public:
  // Opens `job.data.train`. Throws InputError naming the key and what to do: no match, unreadable, odd size,
  // fewer tokens than one sequence, a weight too small to count.
  static TokenData open(const JobSpec& job);
  // The same for `job.data.validation`, which must not be empty.
  static TokenData open_validation(const JobSpec& job);
  // The same with tokens in memory.
  static TokenData from_tokens(std::vector<uint16_t> tokens, int sequence, int64_t global_batch,
                               int vocabulary, uint64_t seed);
  TokenData(TokenData&&) noexcept;
  TokenData& operator=(TokenData&&) noexcept;
  ~TokenData();

  // The sequence + 1 tokens (inputs, and the last target) of one sequence of the global batch. Requires step
  // >= 0 and 0 <= index < global batch. Throws InputError naming file and position when a token is outside
  // the vocabulary.
  std::vector<int64_t> sequence(int64_t step, int64_t index) const;

  // For data of one source, the index-th of `of` sequences that are spread evenly over the data, the same
  // every time. Requires 0 <= index < of <= num_windows(). Throws as above.
  std::vector<int64_t> spread_sequence(int64_t index, int64_t of) const;

  // Entropy of the token frequencies in nats, over at most `most` tokens spread evenly over the data: the
  // mean loss of a unigram model. Sources count by their weights. Throws like sequence().
  double unigram_entropy(int64_t most = 1 << 20) const;

  std::string describe() const;  // `nanogpt: 2 files, 1000 tokens, blended 70 %, 30 %`
  int64_t num_tokens() const;
  int64_t num_windows() const;

 private:
  struct Impl;
  explicit TokenData(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sailor
