// Token files read as one array of tokens, which is divided into windows of one sequence each. A file begins
// a document. For fine-tuning, windows have whole documents, as many as fit, in their order; documents that
// are too long are cut. Immutable after opening and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"
#include "trainer/data/token_array.h"

namespace sailor {

// Which tokens of a sequence belong together, and which ones are to be predicted.
struct SequenceLayout {
  std::vector<int64_t> documents;   // lengths of the parts of the inputs that belong to different documents
  std::vector<TokenRange> counted;  // of the targets that count in the loss, ascending

  int64_t counted_targets() const;
};

// Tokens in memory.
struct TokensInMemory {
  std::vector<uint16_t> tokens;
  std::vector<int64_t> document_starts{};  // ascending
  std::vector<TokenRange> answers{};       // ascending
};

class TokenSource {
 public:
  struct Options {
    std::string key;  // of the job spec, for errors
    Where where;
    int sequence = 0;
    int64_t vocabulary = 0;
    bool document_mask = false;  // else a sequence is one document, and all of its targets count
    bool sft = false;            // of the targets, only answers count; needs document_mask
  };

  // `pattern` is a path or glob of files, or of directories in MosaicML's format, relative to the directory
  // of the file in `options.where`; several are read in the order of their names. `data` says how. Throws
  // InputError naming the key and what to do: no match, unreadable, fewer tokens than one sequence, and as
  // TokenFile::open() and MdsTokens.
  TokenSource(const std::string& pattern, const DataSpec& data, Options options);
  TokenSource(TokensInMemory memory, Options options);

  int64_t tokens() const { return tokens_; }
  int64_t windows() const { return windows_; }
  std::size_t num_files() const { return files_.size(); }
  std::set<std::string> formats() const;

  // The sequence + 1 tokens of a window; the last one is the first of the next window. For fine-tuning, what
  // documents leave is filled with token 0. Throws InputError naming file and position when a token is
  // outside the vocabulary.
  std::vector<int64_t> window(int64_t index) const;
  SequenceLayout layout(int64_t index) const;  // of a window
  int64_t token(int64_t position) const;       // throws as above

 private:
  void open(const std::string& path, const DataSpec& data);
  void add(std::unique_ptr<const TokenArray> file);
  void finish();
  // File of a position, and the position in it.
  std::pair<std::size_t, int64_t> place(int64_t position) const;
  void read(int64_t position, int64_t count, int64_t* out) const;
  // Where documents begin in [first, end), ascending.
  std::vector<int64_t> document_starts(int64_t first, int64_t end) const;
  std::vector<TokenRange> answers(int64_t first, int64_t end) const;
  void pack_documents();
  TokenRange range(int64_t window) const;  // of its tokens
  // Calls visit(file, its first token, range in the file) for the files of [first, end).
  template <class Visit>
  void for_files(int64_t first, int64_t end, const Visit& visit) const;
  Where where_of(int64_t position) const;

  Options options_;
  std::vector<std::unique_ptr<const TokenArray>> files_;
  std::vector<int64_t> file_ends_;  // tokens up to the end of each file
  TokensInMemory memory_;           // instead of files
  std::vector<TokenRange> packed_;  // windows of whole documents, for fine-tuning
  int64_t tokens_ = 0, windows_ = 0;
};

}  // namespace sailor
