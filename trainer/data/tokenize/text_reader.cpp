#include "trainer/data/tokenize/text_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/json_line.h"

namespace sailor {
namespace {

// Where to cut `text`, which goes on behind its end: after the last line end, else after the last space, else
// before the last character that began.
std::size_t cut(const std::string& text) {
  for (const char separator : {'\n', ' '}) {
    if (const std::size_t at = text.rfind(separator); at != std::string::npos) return at + 1;
  }
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at > 0 ? at : text.size();
}

bool is_jsonl(const std::string& file) {
  return file.ends_with(".jsonl") || file.ends_with(".ndjson");
}

// Refuses files whose content would be read as text by mistake.
void require_text_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InputError(Where{file, 0}, "cannot read");
  std::string start(4, '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  if (start == "PAR1") throw InputError(Where{file, 0}, "is Parquet; convert it to JSONL");
  if (start.starts_with("\x1f\x8b") || start == "\x28\xb5\x2f\xfd")
    throw InputError(Where{file, 0}, "is compressed; decompress it first");
}

}  // namespace

TextReader::TextReader(std::vector<std::string> files, const TextOptions& options)
    : files_(std::move(files)), options_(options) {
  for (const std::string& file : files_) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(file, error);
    if (error) throw InputError(Where{file, 0}, "cannot read: " + error.message());
    require_text_file(file);
    if (options_.examples && !is_jsonl(file))
      throw InputError(Where{file, 0}, "is not JSONL (.jsonl, .ndjson), as examples must be");
    total_bytes_ += static_cast<int64_t>(bytes);
  }
}

void TextReader::require_good() const {
  if (in_.bad()) throw std::runtime_error(fmt::format("{}: reading failed", files_[file_]));
}

bool TextReader::fill() {
  std::size_t most = options_.chunk_bytes;
  if (most == TextOptions::kWholeDocuments && position_ < options_.split_at)
    most = static_cast<std::size_t>(options_.split_at - position_);
  constexpr std::size_t kAtOnce = 1 << 20;
  while (rest_.size() < most && in_) {
    const std::size_t have = rest_.size();
    rest_.resize(std::min(most, have + kAtOnce));
    in_.read(rest_.data() + have, static_cast<std::streamsize>(rest_.size() - have));
    rest_.resize(have + static_cast<std::size_t>(in_.gcount()));
  }
  require_good();
  return in_.eof() || in_.peek() == std::ifstream::traits_type::eof();
}

bool TextReader::next_of_text(TextChunk& chunk) {
  const bool last = fill();
  const std::size_t size = last ? rest_.size() : cut(rest_);
  if (size == 0) return false;
  chunk.text.assign(rest_, 0, size);
  chunk.position = position_;
  chunk.after_split = position_ >= options_.split_at;
  const bool whole = options_.chunk_bytes == TextOptions::kWholeDocuments;
  chunk.ends_document = last || whole;
  rest_.erase(0, size);
  position_ += static_cast<int64_t>(size);
  chunk.end_position = position_;
  if (whole && !last) options_.split_at = position_;
  return true;
}

// Takes the next line that has text; false at the end of the file.
bool TextReader::next_document() {
  rest_.clear();
  taken_ = 0;
  for (std::string line; rest_.empty() && std::getline(in_, line);) {
    line_position_ = position_;
    position_ += static_cast<int64_t>(line.size()) + (in_.eof() ? 0 : 1);
    ++line_;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Where where{files_[file_], line_};
    if (options_.examples) {
      Example example = example_of_json_line(line, where);
      prompt_bytes_ = example.prompt.size();
      rest_ = std::move(example.prompt) + example.completion;
    } else {
      rest_ = text_of_json_line(line, options_.text_key, where);
    }
  }
  require_good();
  return !rest_.empty();
}

bool TextReader::next_of_lines(TextChunk& chunk) {
  if (taken_ == rest_.size() && !next_document()) return false;
  chunk.text = rest_.substr(taken_, options_.chunk_bytes);
  chunk.ends_document = taken_ + chunk.text.size() == rest_.size();
  if (!chunk.ends_document) chunk.text.resize(cut(chunk.text));
  taken_ += chunk.text.size();
  chunk.prompt_bytes = prompt_bytes_;
  chunk.position = line_position_;
  chunk.end_position = position_;
  chunk.after_split = line_position_ >= options_.split_at;
  return true;
}

bool TextReader::next(TextChunk& chunk) {
  for (; file_ < files_.size(); ++file_) {
    if (!in_.is_open()) in_.open(files_[file_], std::ios::binary);
    if (is_jsonl(files_[file_]) ? next_of_lines(chunk) : next_of_text(chunk)) return true;
    in_.close();
    in_.clear();
    rest_.clear();
    taken_ = 0;
    line_ = 0;
  }
  return false;
}

}  // namespace sailor
