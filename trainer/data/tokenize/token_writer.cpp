#include "trainer/data/tokenize/token_writer.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

namespace sailor {

TokenWriter::TokenWriter(std::string path)
    : path_(std::move(path)), out_(temporary(), std::ios::binary | std::ios::trunc) {
  if (!out_) throw std::runtime_error(fmt::format("cannot write {}", temporary()));
}

TokenWriter::~TokenWriter() {
  std::error_code ignored;
  if (!finished_) std::filesystem::remove(temporary(), ignored);
}

void TokenWriter::write(const std::vector<int>& tokens) {
  buffer_.assign(tokens.begin(), tokens.end());
  out_.write(reinterpret_cast<const char*>(buffer_.data()),
             static_cast<std::streamsize>(buffer_.size() * sizeof(uint16_t)));
  tokens_ += static_cast<int64_t>(tokens.size());
}

void TokenWriter::finish() {
  out_.close();
  if (!out_) throw std::runtime_error(fmt::format("cannot write {}: is the disk full?", temporary()));
  std::filesystem::rename(temporary(), path_);
  finished_ = true;
}

}  // namespace sailor
