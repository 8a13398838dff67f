// Bytes of token files and of their indices, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sailor {

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// An index as Megatron's IndexedDatasetBuilder writes it.
inline std::string megatron_index(uint8_t code, int width, const std::vector<int32_t>& lengths,
                                  const std::vector<int64_t>& documents,
                                  const std::string& magic = std::string("MMIDIDX\0\0", 9),
                                  uint64_t version = 1) {
  std::vector<int64_t> pointers;
  int64_t at = 0;
  for (const int32_t length : lengths) {
    pointers.push_back(at);
    at += int64_t{length} * width;
  }
  return magic + raw<uint64_t>({version}) + raw<uint8_t>({code}) +
         raw<uint64_t>({lengths.size(), documents.size()}) + raw(lengths) + raw(pointers) + raw(documents);
}

}  // namespace sailor
