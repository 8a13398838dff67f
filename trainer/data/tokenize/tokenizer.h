// From text to tokens: SentencePiece, or bytes. For tokenizer.json see huggingface/tokenizer_json.h.
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
  // Appends the tokens of a text to `tokens`.
  virtual void encode(const std::string& text, std::vector<int>& tokens) const = 0;
  // The same without the special tokens that encode() puts around a text.
  virtual void encode_inner(const std::string& text, std::vector<int>& tokens) const { encode(text, tokens); }
  // The text of tokens; the inverse of encode() if the vocabulary has every byte.
  virtual std::string decode(const std::vector<int>& tokens) const = 0;
  // The token between documents; -1 = none.
  virtual int end_of_document() const = 0;
  // Whether the tokens of a document are not those of its chunks (text_reader.h), one after the other.
  virtual bool needs_whole_documents() const { return false; }
};

// One token per byte, 256 of them, none between documents.
std::unique_ptr<Tokenizer> byte_tokenizer();

// A SentencePiece model. Throws InputError naming the file if it is not one.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path);

// Learns a vocabulary of `size` pieces from at most `sample_bytes` of the text, sampled evenly, and writes
// the model to `path`. Byte pair encoding with a piece for every byte and for the line end, without changing
// spaces: decoding restores every text. `text_key` is that of TextOptions. Throws InputError when the text is
// too short for the size.
void train_sentencepiece(const std::vector<std::string>& files, int size, int64_t sample_bytes,
                         const std::string& path, const std::string& text_key = "text");

}  // namespace sailor
