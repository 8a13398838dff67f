// A whole file mapped for reading. Movable; the mapping lives as long as the object. Thread-safe.
#pragma once

#include <cstddef>
#include <string>

namespace sailor {

class MappedFile {
 public:
  // Throws InputError naming the file and, before the reason, `key` (the key that named the file).
  MappedFile(const std::string& path, const std::string& key);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  const unsigned char* data() const { return data_; }  // nullptr if empty
  std::size_t size() const { return size_; }

 private:
  std::string path_;
  const unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sailor
