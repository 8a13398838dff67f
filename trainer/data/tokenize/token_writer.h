// Writes tokens and document boundaries in Megatron's format: FILE.bin with the tokens and FILE.idx.
// Sequences that are answers have mode 1, if there are any. Tokens have 16 bits for vocabularies of at most
// 65536, so that FILE.bin alone is a file in nanoGPT's format, else 32. The complete pair appears under its
// names with finish(); an object that is destroyed before leaves nothing behind.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace sailor {

class TokenWriter {
 public:
  // `stem` is the path without `.bin`. Throws std::runtime_error when a file cannot be made.
  TokenWriter(std::string stem, int vocabulary);
  ~TokenWriter();
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  void write(const std::vector<int>& tokens);  // each below the vocabulary
  void end_prompt();                           // what follows in the document is an answer
  void end_answer();                           // what follows in it is not
  void end_document();                         // does nothing for a document without tokens
  void finish();  // ends the document; throws std::runtime_error unless everything was written

  int64_t tokens() const { return tokens_; }

 private:
  std::string temporary(const char* extension) const { return stem_ + extension + ".tmp"; }
  void end_sequence();
  void write_index();

  std::string stem_;
  bool wide_;
  std::ofstream out_;
  std::vector<uint16_t> narrow_tokens_;
  std::vector<int32_t> lengths_;    // of sequences; a long document has several
  std::vector<uint8_t> modes_;      // of sequences: 1 is an answer
  std::vector<int64_t> documents_;  // first sequence of each
  int64_t next_document_ = 0;       // first sequence of the one that is being written
  bool in_answer_ = false, has_answers_ = false;
  int64_t tokens_ = 0;
  int64_t sequence_tokens_ = 0;  // since the last end of a sequence
  bool finished_ = false;
};

}  // namespace sailor
