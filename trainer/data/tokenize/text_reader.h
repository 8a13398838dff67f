// Reads text files one after another in chunks that end where a tokenizer loses nothing: at a line end, else
// at a space, else between two characters. Holds one chunk at a time, whatever the files' sizes.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace sailor {

struct TextChunk {
  std::string text;
  int64_t position = 0;        // of its first byte in all files together
  bool ends_document = false;  // a file's last chunk
};

class TextReader {
 public:
  // Throws InputError naming a file that cannot be read. Requires chunk_bytes >= 16.
  TextReader(std::vector<std::string> files, std::size_t chunk_bytes);

  int64_t total_bytes() const { return total_bytes_; }
  // The next chunk of at most chunk_bytes, in the order of the files; false after the last one. Empty files
  // give none. Throws std::runtime_error when reading fails.
  bool next(TextChunk& chunk);

 private:
  std::vector<std::string> files_;
  std::size_t chunk_bytes_;
  int64_t total_bytes_ = 0;
  int64_t position_ = 0;
  std::size_t file_ = 0;
  std::ifstream in_;
  std::string rest_;  // read, not given out
};

}  // namespace sailor
