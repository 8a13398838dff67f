// A memory-mapped file of tokens, in one of these formats:
//
//     nanogpt   raw little-endian uint16 (nanoGPT's prepare.py)
//     uint32    raw little-endian uint32
//     llmc      llm.c: 256 int32 of header (magic, version, tokens, zeros), then tokens: uint16 with magic
//               20240520 and version 1 (GPT-2), uint32 with magic 20240801 and version 7 (Llama 3)
//     megatron  Megatron-LM: FILE.bin with FILE.idx ("MMIDIDX", version 1, type, lengths and offsets of
//               sequences, documents) next to it (`sailor tokenize`); all sequences concatenated. Sequences
//               may have modes: 1 is an answer of fine-tuning, 0 is not
//     bytes     a text file, one token per byte
//     auto      llmc or megatron, recognized by the file's content and neighbours, else nanogpt
//
// Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/mapped_file.h"
#include "trainer/data/token_array.h"
#include "trainer/data/token_element.h"

namespace sailor {

class TokenFile final : public TokenArray {
 public:
  // Throws InputError naming the file, `key` (the job spec's key that named it), the error and what to do.
  static TokenFile open(const std::string& path, const std::string& format, const std::string& key);

  const std::string& path() const override { return file_.path(); }
  const std::string& format() const override { return format_; }
  int64_t tokens() const override { return tokens_; }
  void read(int64_t first, int64_t count, int64_t* out) const override {
    copy_tokens(element_, file_.data() + offset_ + static_cast<std::size_t>(first) * bytes_of(element_),
                count, out);
  }
  void require_documents(const std::string& key) const override;
  std::vector<int64_t> document_starts(int64_t first, int64_t end) const override;
  void require_answers(const std::string& key) const override;
  std::vector<TokenRange> answers(int64_t first, int64_t end) const override;

 private:
  explicit TokenFile(MappedFile file) : file_(std::move(file)) {}

  static bool starts_as_llmc(const MappedFile& file);
  void open_raw(const std::string& key);
  void open_llmc(const std::string& key);
  void open_megatron(const std::string& key);
  // The rest of the file from `offset_` on is tokens of the element type; throws if it is not a multiple of
  // its size.
  void take_rest(const std::string& key);
  // First token of a document of the index; the end of the file for the number that ends the list.
  int64_t document_start(uint64_t document) const;
  int64_t sequence_start(uint64_t sequence) const;  // the same of its sequences
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;
  [[noreturn]] void fail_index(const std::string& key, const std::string& what) const;

  MappedFile file_;
  std::string format_;
  TokenElement element_ = TokenElement::u16;
  std::size_t offset_ = 0;  // of the first token
  int64_t tokens_ = 0;
  std::optional<MappedFile> index_;  // of Megatron's format, like the next two
  uint64_t index_sequences_ = 0, index_documents_ = 0;
};

}  // namespace sailor
