// From text to tokens: SentencePiece, or bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sailor {

// Immutable and thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int vocabulary() const = 0;
  // Tokens of a piece of text are appended to `tokens`.
  virtual void encode(const std::string& text, std::vector<int>& tokens) const = 0;
  // The text of tokens; the inverse of encode() where the vocabulary has every byte.
  virtual std::string decode(const std::vector<int>& tokens) const = 0;
  // What stands between documents; -1 = nothing.
  virtual int end_of_document() const = 0;
};

// One token per byte, 256 of them, nothing between documents.
std::unique_ptr<Tokenizer> byte_tokenizer();

// A SentencePiece model. Throws InputError naming the file when it is none.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path);

// Learns a vocabulary of `size` pieces from at most `sample_bytes` of the text, taken evenly from all of it,
// and writes the model to `path`. Byte pair encoding with a piece for every byte and for the line end, spaces
// as they are: whatever the text, decoding gives it back. Throws InputError when the text is too short for
// the size.
void train_sentencepiece(const std::vector<std::string>& files, int size, int64_t sample_bytes,
                         const std::string& path);

}  // namespace sailor
