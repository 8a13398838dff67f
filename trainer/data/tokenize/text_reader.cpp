#include "trainer/data/tokenize/text_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/record.h"

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

TextReader::TextReader(const std::vector<std::string>& files, const TextOptions& options)
    : options_(options) {
  RecordFields fields{{options_.text_key}, text_form(options_.text_key)};
  if (options_.examples) fields = {{"prompt", "completion", "messages"}, example_form()};
  if (options_.conversations)
    fields.names.insert(fields.names.end(), {"tools", "documents", "chat_template_kwargs"});
  for (const std::string& file : files) {
    for (DataFile& data : data_files(file, fields)) {
      if (options_.examples && !data.records)
        throw InputError(Where{file, 0}, "is not JSONL (.jsonl, .ndjson) or Parquet, as examples must be");
      total_bytes_ += data.bytes;
      files_.push_back(std::move(data));
    }
  }
}

void TextReader::require_good() const {
  if (in_.bad()) throw std::runtime_error(fmt::format("{}: reading failed", files_[file_].path));
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

// Takes the next record that has text; false at the end of the file.
bool TextReader::next_document() {
  rest_.clear();
  taken_ = 0;
  for (DataRecord record; rest_.empty() && records_->next(record);) {
    record_position_ = file_position_ + record.position;
    position_ = file_position_ + record.end;
    where_ = record.where;
    is_conversation_ = options_.conversations && record.fields.contains("messages");
    if (is_conversation_) {
      prompt_bytes_ = 0;
      rest_ = record.json.empty() ? record.fields.dump() : std::move(record.json);
    } else if (options_.examples) {
      Example example = example_of_record(record.fields, record.where);
      prompt_bytes_ = example.prompt.size();
      rest_ = std::move(example.prompt) + example.completion;
    } else {
      rest_ = text_of_record(record.fields, options_.text_key, record.where);
    }
  }
  return !rest_.empty();
}

bool TextReader::next_of_records(TextChunk& chunk) {
  if (taken_ == rest_.size() && !next_document()) return false;
  chunk.text = rest_.substr(taken_, options_.chunk_bytes);
  chunk.ends_document = taken_ + chunk.text.size() == rest_.size();
  if (!chunk.ends_document) chunk.text.resize(cut(chunk.text));
  taken_ += chunk.text.size();
  chunk.prompt_bytes = prompt_bytes_;
  chunk.is_conversation = is_conversation_;
  chunk.where = where_;
  chunk.position = record_position_;
  chunk.end_position = position_;
  chunk.after_split = record_position_ >= options_.split_at;
  return true;
}

bool TextReader::next(TextChunk& chunk) {
  for (; file_ < files_.size(); ++file_) {
    const DataFile& file = files_[file_];
    if (file.records) {
      if (!records_) records_ = file.records();
      if (next_of_records(chunk)) return true;
    } else {
      if (!in_.is_open()) in_.open(file.path, std::ios::binary);
      if (next_of_text(chunk)) return true;
    }
    in_.close();
    in_.clear();
    records_.reset();
    rest_.clear();
    taken_ = 0;
    file_position_ += file.bytes;
    position_ = file_position_;
  }
  return false;
}

}  // namespace sailor
