// Reads text files one after the other in chunks that end where no token is split: at a line end, else at a
// space, else between two characters. Holds one chunk at a time, for files of any size.
//
// A text file is one document; in a file of records (record_file.h) every record is one.
#pragma once

#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/tokenize/record_file.h"

namespace sailor {

struct TextChunk {
  std::string text;
  int64_t position = 0;          // in the concatenated files: of its first byte, or of its record
  int64_t end_position = 0;      // up to where the files have been read
  bool ends_document = false;    // last chunk of a document
  bool after_split = false;      // begins behind TextOptions::split_at
  std::size_t prompt_bytes = 0;  // of an example: what the text begins with, before the answer
  bool is_conversation = false;  // the text is that of a record with `messages`
  Where where;                   // of its record
};

struct TextOptions {
  static constexpr std::size_t kWholeDocuments = std::numeric_limits<std::size_t>::max();

  std::size_t chunk_bytes = kWholeDocuments;  // at most in a chunk; at least 16
  // Where in the concatenated files another part begins. A whole document of a text file is cut there, where
  // no token is split, into two documents; a record never is.
  int64_t split_at = std::numeric_limits<int64_t>::max();
  std::string text_key = "text";  // of records
  // Records, in files of which all must be, are examples of a prompt and its completion, in one chunk each.
  bool examples = false;
  bool conversations = false;  // examples may have `messages` in place of prompt and completion
};

class TextReader {
 public:
  // Throws InputError as data_files() does.
  TextReader(const std::vector<std::string>& files, const TextOptions& options);

  int64_t total_bytes() const { return total_bytes_; }
  // The next chunk, in the order of the files; false after the last one. Documents without text have none.
  // Throws InputError at a record that has no text, std::runtime_error when reading fails.
  bool next(TextChunk& chunk);

 private:
  bool next_of_text(TextChunk& chunk);
  bool next_of_records(TextChunk& chunk);
  bool next_document();
  // Fills `rest_` with what the next chunk may have; true at the end of the file.
  bool fill();
  void require_good() const;

  std::vector<DataFile> files_;
  TextOptions options_;
  int64_t total_bytes_ = 0;
  int64_t position_ = 0;
  std::size_t file_ = 0;
  std::ifstream in_;                     // a text file
  std::unique_ptr<RecordFile> records_;  // or another one
  int64_t file_position_ = 0;            // where it begins in the concatenated files
  std::string rest_;                     // read, but not returned yet; of a record, its text
  std::size_t taken_ = 0;                // what has been returned of a record
  std::size_t prompt_bytes_ = 0;
  bool is_conversation_ = false;
  Where where_;
  int64_t record_position_ = 0;
};

}  // namespace sailor
