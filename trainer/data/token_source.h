// Token files read as one array of tokens, which is divided into windows of one sequence each. Immutable
// after opening and thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/spec/error.h"
#include "trainer/data/token_file.h"

namespace sailor {

class TokenSource {
 public:
  struct Options {
    std::string key;  // of the job spec, for errors
    Where where;
    int sequence = 0;
    int64_t vocabulary = 0;
  };

  // `pattern` is a path or glob, relative to the directory of the file in `options.where`; several files are
  // read in the order of their names. Throws InputError naming the key and what to do: no match, unreadable,
  // fewer tokens than one sequence, and as TokenFile::open().
  TokenSource(const std::string& pattern, const std::string& format, Options options);
  // The same with tokens in memory.
  TokenSource(std::vector<uint16_t> tokens, Options options);

  int64_t tokens() const { return tokens_; }
  int64_t windows() const { return windows_; }
  std::size_t num_files() const { return files_.size(); }
  std::set<std::string> formats() const;

  // The sequence + 1 tokens of a window; the last one is the first of the next window. Throws InputError
  // naming file and position when a token is outside the vocabulary.
  std::vector<int64_t> window(int64_t index) const;
  int64_t token(int64_t position) const;  // throws as above

 private:
  void finish();
  // File of a position, and the position in it.
  std::pair<std::size_t, int64_t> place(int64_t position) const;
  void read(int64_t position, int64_t count, int64_t* out) const;
  Where where_of(int64_t position) const;

  Options options_;
  std::vector<TokenFile> files_;
  std::vector<int64_t> file_ends_;  // tokens up to the end of each file
  std::vector<uint16_t> memory_;    // instead of files
  int64_t tokens_ = 0, windows_ = 0;
};

}  // namespace sailor
