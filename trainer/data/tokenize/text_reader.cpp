#include "trainer/data/tokenize/text_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "planner/spec/error.h"

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

}  // namespace

TextReader::TextReader(std::vector<std::string> files, const TextOptions& options)
    : files_(std::move(files)), options_(options) {
  for (const std::string& file : files_) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(file, error);
    if (error) throw InputError(Where{file, 0}, "cannot read: " + error.message());
    if (!std::ifstream(file)) throw InputError(Where{file, 0}, "cannot read");
    total_bytes_ += static_cast<int64_t>(bytes);
  }
}

bool TextReader::fill() {
  if (!in_.is_open()) in_.open(files_[file_], std::ios::binary);
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
  if (in_.bad()) throw std::runtime_error(fmt::format("{}: reading failed", files_[file_]));
  return in_.eof() || in_.peek() == std::ifstream::traits_type::eof();
}

bool TextReader::next(TextChunk& chunk) {
  while (file_ < files_.size()) {
    const bool last = fill();
    const std::size_t size = last ? rest_.size() : cut(rest_);
    chunk.text.assign(rest_, 0, size);
    chunk.position = position_;
    chunk.after_split = position_ >= options_.split_at;
    const bool whole = options_.chunk_bytes == TextOptions::kWholeDocuments;
    chunk.ends_document = last || whole;
    rest_.erase(0, size);
    position_ += static_cast<int64_t>(size);
    if (whole && !last) options_.split_at = position_;
    if (last) {
      in_.close();
      in_.clear();
      ++file_;
    }
    if (size > 0) return true;
  }
  return false;
}

}  // namespace sailor
