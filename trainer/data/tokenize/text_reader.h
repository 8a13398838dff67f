// Reads text files one after the other in chunks that end where no token is split: at a line end, else at a
// space, else between two characters. Holds one chunk at a time, for files of any size.
#pragma once

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace sailor {

struct TextChunk {
  std::string text;
  int64_t position = 0;        // of its first byte in the concatenated files
  bool ends_document = false;  // last chunk of a file
  bool after_split = false;    // begins behind TextOptions::split_at
};

struct TextOptions {
  static constexpr std::size_t kWholeDocuments = std::numeric_limits<std::size_t>::max();

  std::size_t chunk_bytes = kWholeDocuments;  // at most in a chunk; at least 16
  // Where in the concatenated files another part begins. A whole document is cut there, where no token is
  // split, into two documents.
  int64_t split_at = std::numeric_limits<int64_t>::max();
};

class TextReader {
 public:
  // Throws InputError naming a file that cannot be read.
  TextReader(std::vector<std::string> files, const TextOptions& options);

  int64_t total_bytes() const { return total_bytes_; }
  // The next chunk, in the order of the files; false after the last one. Empty files have none. Throws
  // std::runtime_error when reading fails.
  bool next(TextChunk& chunk);

 private:
  // Fills `rest_` with what the next chunk may have; true at the end of the file.
  bool fill();

  std::vector<std::string> files_;
  TextOptions options_;
  int64_t total_bytes_ = 0;
  int64_t position_ = 0;
  std::size_t file_ = 0;
  std::ifstream in_;
  std::string rest_;  // read, but not returned yet
};

}  // namespace sailor
