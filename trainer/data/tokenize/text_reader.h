// Reads text files one after the other in chunks that end where no token is split: at a line end, else at a
// space, else between two characters. Holds one chunk at a time, for files of any size.
//
// A file is one document; in a JSONL file (*.jsonl, *.ndjson) every line is one (json_line.h).
#pragma once

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace sailor {

struct TextChunk {
  std::string text;
  int64_t position = 0;          // in the concatenated files: of its first byte, or of its line
  int64_t end_position = 0;      // up to where the files have been read
  bool ends_document = false;    // last chunk of a document
  bool after_split = false;      // begins behind TextOptions::split_at
  std::size_t prompt_bytes = 0;  // of an example: what the text begins with, before the answer
};

struct TextOptions {
  static constexpr std::size_t kWholeDocuments = std::numeric_limits<std::size_t>::max();

  std::size_t chunk_bytes = kWholeDocuments;  // at most in a chunk; at least 16
  // Where in the concatenated files another part begins. A whole document of a text file is cut there, where
  // no token is split, into two documents; a line of a JSONL file never is.
  int64_t split_at = std::numeric_limits<int64_t>::max();
  std::string text_key = "text";  // of the lines of JSONL files
  // Lines of JSONL files, the only ones then, are examples of a prompt and its completion, in one chunk each.
  bool examples = false;
};

class TextReader {
 public:
  // Throws InputError naming a file that cannot be read, or is Parquet or compressed.
  TextReader(std::vector<std::string> files, const TextOptions& options);

  int64_t total_bytes() const { return total_bytes_; }
  // The next chunk, in the order of the files; false after the last one. Documents without text have none.
  // Throws InputError at a line of a JSONL file that has no text, std::runtime_error when reading fails.
  bool next(TextChunk& chunk);

 private:
  bool next_of_text(TextChunk& chunk);
  bool next_of_lines(TextChunk& chunk);
  bool next_document();
  // Fills `rest_` with what the next chunk may have; true at the end of the file.
  bool fill();
  void require_good() const;

  std::vector<std::string> files_;
  TextOptions options_;
  int64_t total_bytes_ = 0;
  int64_t position_ = 0;
  std::size_t file_ = 0;
  std::ifstream in_;
  std::string rest_;       // read, but not returned yet; of JSONL, the text of a document
  std::size_t taken_ = 0;  // what has been returned of a document of JSONL
  std::size_t prompt_bytes_ = 0;
  int64_t line_position_ = 0;
  int line_ = 0;
};

}  // namespace sailor
