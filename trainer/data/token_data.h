// Training data: memory-mapped token files, read as one array of tokens that is divided into windows of one
// sequence each, or a blend of several such sources (blend.h).
//
// The window of the index-th sequence of a step depends only on (seed, step, index, global batch), not on the
// plan: an epoch of a source is a permutation of all its windows, drawn from (seed, source, epoch). A run
// that resumes at any step sees the same data as without the interruption. File formats: token_file.h.
// Immutable after opening and thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"
#include "trainer/data/token_source.h"

namespace sailor {

class TokenData {
 public:
  // Opens `job.data.train`. Throws InputError naming the key and what to do: no match, unreadable, odd size,
  // fewer tokens than one sequence, a weight too small to count.
  static TokenData open(const JobSpec& job);
  // The same for a set of `job.data.validation`.
  static TokenData open_validation(const JobSpec& job, const ValidationSet& set);
  // The same with tokens in memory.
  static TokenData in_memory(TokensInMemory tokens, const JobSpec& job);
  static TokenData from_tokens(std::vector<uint16_t> tokens, int sequence, int64_t global_batch,
                               int vocabulary, uint64_t seed);
  TokenData(TokenData&&) noexcept;
  TokenData& operator=(TokenData&&) noexcept;
  ~TokenData();

  // A window of a source.
  struct Place {
    std::size_t source = 0;
    int64_t window = 0;
  };
  // Of one sequence of the global batch. Requires step >= 0 and 0 <= index < global batch.
  Place place(int64_t step, int64_t index) const;
  // For data of one source, of the index-th of `of` sequences that are spread evenly over the data, the same
  // every time. Requires 0 <= index < of <= num_windows().
  Place spread_place(int64_t index, int64_t of) const;

  // The sequence + 1 tokens (inputs, and the last target). Throws InputError naming file and position when a
  // token is outside the vocabulary.
  std::vector<int64_t> tokens(const Place& place) const;
  std::vector<int64_t> sequence(int64_t step, int64_t index) const { return tokens(place(step, index)); }
  // What a middle stage needs of a sequence, from the index alone.
  SequenceLayout layout(const Place& place) const;
  // Every sequence is one document, and all of its targets count.
  bool whole_sequences() const;
  // The targets of a step's global batch that count in the loss, at least 1.
  int64_t counted_targets(int64_t step) const;

  // How many documents of each length are in the first 4096 sequences of a training, as parts of these.
  std::map<int64_t, int64_t> document_lengths() const;

  // Entropy of the token frequencies in nats, over at most `most` tokens spread evenly over the data: the
  // mean loss of a unigram model. Sources count by their weights. Throws like sequence().
  double unigram_entropy(int64_t most = 1 << 20) const;

  // `megatron: 2 files, 1000 tokens, blended 70 %, 30 %, in documents of 42 tokens, 30 % answers`
  std::string describe() const;
  int64_t num_tokens() const;
  int64_t num_windows() const;

 private:
  struct Impl;
  explicit TokenData(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sailor
