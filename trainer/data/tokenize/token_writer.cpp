#include "trainer/data/tokenize/token_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <stdexcept>

namespace sailor {
namespace {

template <class T>
void put(std::ofstream& out, const T* values, std::size_t count) {
  out.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(count * sizeof(T)));
}

void finish_file(std::ofstream& out, const std::string& path) {
  out.close();
  if (!out) throw std::runtime_error(fmt::format("cannot write {}: is the disk full?", path));
}

}  // namespace

TokenWriter::TokenWriter(std::string stem, int vocabulary)
    : stem_(std::move(stem)),
      wide_(vocabulary > 1 << 16),
      out_(temporary(".bin"), std::ios::binary | std::ios::trunc) {
  if (!out_) throw std::runtime_error(fmt::format("cannot write {}", temporary(".bin")));
}

TokenWriter::~TokenWriter() {
  std::error_code ignored;
  if (finished_) return;
  std::filesystem::remove(temporary(".bin"), ignored);
  std::filesystem::remove(temporary(".idx"), ignored);
}

void TokenWriter::write(const std::vector<int>& tokens) {
  if (wide_) {
    put(out_, tokens.data(), tokens.size());
  } else {
    narrow_tokens_.assign(tokens.begin(), tokens.end());
    put(out_, narrow_tokens_.data(), narrow_tokens_.size());
  }
  tokens_ += static_cast<int64_t>(tokens.size());
  sequence_tokens_ += static_cast<int64_t>(tokens.size());
}

void TokenWriter::end_sequence() {
  constexpr int64_t kLongest = std::numeric_limits<int32_t>::max();
  for (; sequence_tokens_ > 0; sequence_tokens_ -= lengths_.back()) {
    lengths_.push_back(static_cast<int32_t>(std::min(sequence_tokens_, kLongest)));
    modes_.push_back(in_answer_ ? 1 : 0);
  }
}

void TokenWriter::end_prompt() {
  end_sequence();
  in_answer_ = has_answers_ = true;
}

void TokenWriter::end_answer() {
  end_sequence();
  in_answer_ = false;
}

void TokenWriter::end_document() {
  end_answer();
  const auto sequences = static_cast<int64_t>(lengths_.size());
  if (sequences > next_document_) documents_.push_back(next_document_);
  next_document_ = sequences;
}

void TokenWriter::write_index() {
  std::ofstream index(temporary(".idx"), std::ios::binary | std::ios::trunc);
  documents_.push_back(static_cast<int64_t>(lengths_.size()));
  const uint64_t version = 1, sequences = lengths_.size(), documents = documents_.size();
  const uint8_t type = wide_ ? 4 : 8;  // int32, uint16
  put(index, "MMIDIDX\0", 9);
  put(index, &version, 1);
  put(index, &type, 1);
  put(index, &sequences, 1);
  put(index, &documents, 1);
  put(index, lengths_.data(), lengths_.size());
  int64_t position_bytes = 0;
  for (const int32_t length : lengths_) {
    put(index, &position_bytes, 1);
    position_bytes += int64_t{length} * (wide_ ? 4 : 2);
  }
  put(index, documents_.data(), documents_.size());
  if (has_answers_) put(index, modes_.data(), modes_.size());
  finish_file(index, temporary(".idx"));
}

void TokenWriter::finish() {
  end_document();
  finish_file(out_, temporary(".bin"));
  write_index();
  for (const char* extension : {".bin", ".idx"})
    std::filesystem::rename(temporary(extension), stem_ + extension);
  finished_ = true;
}

}  // namespace sailor
