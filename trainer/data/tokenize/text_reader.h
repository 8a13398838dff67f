// Reads text files one after the other in chunks that end where no token is split: at a line end, else at a
// space, else between two characters. Holds one chunk at a time, for files of any size.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace sailor {

struct TextChunk {
  std::string text;
  int64_t position = 0;        // of its first byte in the concatenated files
  bool ends_document = false;  // last chunk of a file
};

class TextReader {
 public:
  // Throws InputError naming a file that cannot be read. Requires chunk_bytes >= 16.
  TextReader(std::vector<std::string> files, std::size_t chunk_bytes);

  int64_t total_bytes() const { return total_bytes_; }
  // The next chunk of at most chunk_bytes, in the order of the files; false after the last one. Empty files
  // have none. Throws std::runtime_error when reading fails.
  bool next(TextChunk& chunk);

 private:
  std::vector<std::string> files_;
  std::size_t chunk_bytes_;
  int64_t total_bytes_ = 0;
  int64_t position_ = 0;
  std::size_t file_ = 0;
  std::ifstream in_;
  std::string rest_;  // read, but not returned yet
};

}  // namespace sailor
