// Writes tokens in nanoGPT's format: raw little-endian uint16. The complete file appears under its name with
// finish(); an object that is destroyed before leaves nothing behind.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace sailor {

class TokenWriter {
 public:
  // Throws std::runtime_error when the file cannot be made.
  explicit TokenWriter(std::string path);
  ~TokenWriter();
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  void write(const std::vector<int>& tokens);  // each from 0 to 65535
  void finish();                               // throws std::runtime_error unless everything was written

  int64_t tokens() const { return tokens_; }
  const std::string& path() const { return path_; }

 private:
  std::string temporary() const { return path_ + ".tmp"; }

  std::string path_;
  std::ofstream out_;
  std::vector<uint16_t> buffer_;
  int64_t tokens_ = 0;
  bool finished_ = false;
};

}  // namespace sailor
