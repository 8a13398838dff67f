// Tokens that are stored in a file, as an array. Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sailor {

using TokenRange = std::pair<int64_t, int64_t>;  // from the first to before the second

class TokenArray {
 public:
  virtual ~TokenArray() = default;

  virtual const std::string& path() const = 0;
  virtual const std::string& format() const = 0;  // as in data.format, never `auto`
  virtual int64_t tokens() const = 0;

  // Tokens [first, first + count), which must exist. Values as in the file: negative ones are possible.
  // Throws InputError naming the file if its content is corrupted.
  virtual void read(int64_t first, int64_t count, int64_t* out) const = 0;

  // Throws InputError, naming the file and `key` (the job spec's key that named it), unless the file marks
  // its documents.
  virtual void require_documents(const std::string& key) const = 0;
  // Where documents begin in [first, end), ascending. Requires require_documents().
  virtual std::vector<int64_t> document_starts(int64_t first, int64_t end) const = 0;
  // Throws InputError, as above, unless the file marks documents and answers.
  virtual void require_answers(const std::string& key) const = 0;
  // The parts of [first, end) that belong to answers, ascending. Requires require_answers().
  virtual std::vector<TokenRange> answers(int64_t first, int64_t end) const = 0;
};

}  // namespace sailor
