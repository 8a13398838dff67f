#include "trainer/data/tokenize/tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "trainer/data/tokenize/text_reader.h"

namespace sailor {
namespace {

class Bytes : public Tokenizer {
 public:
  int vocabulary() const override { return 256; }
  void encode(const std::string& text, std::vector<int>& tokens) const override {
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(const std::vector<int>& tokens) const override { return {tokens.begin(), tokens.end()}; }
  int end_of_document() const override { return -1; }
};

// Later releases of SentencePiece take a span; their form for a vector is deprecated.
template <typename Processor>
auto decode_ids(const Processor& processor, const std::vector<int>& ids, std::string& text) {
  if constexpr (requires { processor.Decode({ids.data(), ids.size()}, &text); })
    return processor.Decode({ids.data(), ids.size()}, &text);
  else
    return processor.Decode(ids, &text);
}

class Pieces : public Tokenizer {
 public:
  explicit Pieces(const std::string& path) {
    if (!std::ifstream(path)) throw InputError(Where{path, 0}, "cannot read");
    if (!processor_.Load(path).ok())
      throw InputError(Where{path, 0},
                       "no SentencePiece model; give one that `sailor tokenize` or SentencePiece wrote");
    splits_at_lines_ = splits_at_lines();
  }
  int vocabulary() const override { return processor_.GetPieceSize(); }
  void encode(const std::string& text, std::vector<int>& tokens) const override {
    std::vector<int> ids;
    if (const auto status = processor_.Encode(text, &ids); !status.ok())
      throw std::runtime_error("SentencePiece: " + status.ToString());
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  std::string decode(const std::vector<int>& tokens) const override {
    std::string text;
    if (const auto status = decode_ids(processor_, tokens, text); !status.ok())
      throw std::runtime_error("SentencePiece: " + status.ToString());
    return text;
  }
  int end_of_document() const override { return processor_.eos_id(); }
  bool needs_whole_documents() const override { return !splits_at_lines_; }

 private:
  // Whether lines, one after the other, have the tokens of the text: no piece goes on behind a line end, and
  // spaces are neither added at the beginning of a text nor removed at its ends.
  bool splits_at_lines() const {
    for (int id = 0; id < vocabulary(); ++id) {
      const std::string& piece = processor_.IdToPiece(id);
      if (piece != "\n" && piece.find('\n') != std::string::npos) return false;
    }
    for (const auto& [before, after] :
         {std::pair("a\n", "b"), std::pair(" \n", " b"), std::pair("\n", "\n")}) {
      std::vector<int> together, apart;
      encode(std::string(before) + after, together);
      encode(before, apart);
      encode(after, apart);
      if (together != apart) return false;
    }
    return true;
  }

  sentencepiece::SentencePieceProcessor processor_;
  bool splits_at_lines_ = false;
};

// Lines of evenly spread chunks of the text. SentencePiece keeps what it is given in memory, and skips lines
// that are longer than kLongestLine.
class Sample : public sentencepiece::SentenceIterator {
  using Status = decltype(std::declval<const SentenceIterator&>().status());

 public:
  Sample(const std::vector<std::string>& files, int64_t sample_bytes, const std::string& text_key)
      : reader_(files, {.chunk_bytes = kChunkBytes, .text_key = text_key}) {
    stride_ = std::max<int64_t>(1, (reader_.total_bytes() + sample_bytes - 1) / sample_bytes);
    Next();
  }

  bool done() const override { return done_; }
  void Next() override {
    while (true) {
      if (at_ < chunk_.text.size()) {
        std::size_t end = std::min(chunk_.text.find('\n', at_), chunk_.text.size());
        const bool cut_short = end - at_ > kLongestLine;
        if (cut_short) {
          end = at_ + kLongestLine;
          while (end > at_ + 1 && (static_cast<unsigned char>(chunk_.text[end]) & 0xc0) == 0x80) --end;
        }
        line_.assign(chunk_.text, at_, end - at_);
        at_ = cut_short ? end : end + 1;
        std::replace(line_.begin(), line_.end(), '\0', ' ');
        if (!line_.empty()) return;
        continue;
      }
      at_ = 0;
      do {
        if (!reader_.next(chunk_)) {
          done_ = true;
          return;
        }
      } while (chunk_number_++ % stride_ != 0);
    }
  }
  const std::string& value() const override { return line_; }
  Status status() const override { return {}; }

 private:
  static constexpr std::size_t kChunkBytes = 1 << 16, kLongestLine = 4000;

  TextReader reader_;
  TextChunk chunk_;
  std::string line_;
  std::size_t at_ = 0;
  int64_t stride_ = 1, chunk_number_ = 0;
  bool done_ = false;
};

// Explains SentencePiece's most frequent error: a text with too few different words for the number of pieces.
std::string explain(const std::string& error, int size) {
  static const std::string most = "value <= ";
  if (const std::size_t at = error.find(most); at != std::string::npos)
    return fmt::format("this text is too short for a vocabulary of {}: it has {} pieces at most", size,
                       std::atoi(error.c_str() + at + most.size()));
  return fmt::format("SentencePiece cannot learn a vocabulary of {}: {}", size, error);
}

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer() {
  return std::make_unique<Bytes>();
}

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path) {
  return std::make_unique<Pieces>(path);
}

void train_sentencepiece(const std::vector<std::string>& files, int size, int64_t sample_bytes,
                         const std::string& path, const std::string& text_key) {
  Sample sample(files, sample_bytes, text_key);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      {{"model_type", "bpe"},
       {"vocab_size", std::to_string(size)},
       {"byte_fallback", "true"},
       {"normalization_rule_name", "identity"},
       {"add_dummy_prefix", "false"},
       {"remove_extra_whitespaces", "false"},
       {"allow_whitespace_only_pieces", "true"},
       {"split_digits", "true"},
       {"user_defined_symbols", "\n"},
       {"num_threads", std::to_string(std::max(1u, std::thread::hardware_concurrency()))},
       {"minloglevel", "2"}},
      &sample, &model);
  if (!status.ok()) throw InputError(explain(status.ToString(), size));
  write_file_atomically(path, model);
}

}  // namespace sailor
