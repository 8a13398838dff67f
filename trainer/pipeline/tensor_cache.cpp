#include "trainer/pipeline/tensor_cache.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace sailor {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHeader = 64;         // before the data: the block's size, and alignment
constexpr std::size_t kSmall = 16 * kPage;  // smaller tensors come from the heap
constexpr double kLargestMisfit = 1.25;     // how much larger than wanted a free block may be
constexpr std::size_t kMostHeld = 2;        // times the most that was in use: of sizes that do not come back

std::size_t& block_bytes(char* block) {
  return *reinterpret_cast<std::size_t*>(block);
}

class TensorCache : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t bytes) override {
    return make(bytes);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
    return const_cast<TensorCache*>(this)->make(bytes);
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override {
    return &free_data;
  }

  void release() {
    const std::lock_guard lock(mutex_);
    for (auto& [bytes, blocks] : free_) {
      for (char* block : blocks) {
        munmap(block, bytes);
        held_bytes_ -= bytes;
      }
    }
    free_.clear();
    most_used_bytes_ = used_bytes_;
  }
  int64_t held_bytes() {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(held_bytes_);
  }

 private:
  c10::DataPtr make(std::size_t bytes) {
    if (bytes == 0) return {nullptr, nullptr, &free_data, c10::Device(c10::DeviceType::CPU)};
    char* data = take(bytes + kHeader) + kHeader;
    c10::profiledCPUMemoryReporter().New(data, bytes);
    return {data, data, &free_data, c10::Device(c10::DeviceType::CPU)};
  }

  char* take(std::size_t bytes) {
    const bool small = bytes < kSmall;
    if (!small) bytes = (bytes + kPage - 1) / kPage * kPage;
    char* block =
        small ? static_cast<char*>(std::aligned_alloc(kHeader, (bytes + kHeader - 1) / kHeader * kHeader))
              : take_large(bytes);
    if (small) block_bytes(block) = bytes;
    return block;
  }

  char* take_large(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto fit = free_.lower_bound(bytes);
    if (fit != free_.end() &&
        static_cast<double>(fit->first) <= kLargestMisfit * static_cast<double>(bytes)) {
      char* block = fit->second.back();
      fit->second.pop_back();
      if (fit->second.empty()) free_.erase(fit);
      use(block_bytes(block));
      return block;
    }
    use(bytes);
    while (!free_.empty() && held_bytes_ + bytes > kMostHeld * most_used_bytes_) unmap_largest();
    void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    held_bytes_ += bytes;
    block_bytes(static_cast<char*>(block)) = bytes;
    return static_cast<char*>(block);
  }

  void use(std::size_t bytes) {
    used_bytes_ += bytes;
    most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  }
  void unmap_largest() {
    const auto largest = std::prev(free_.end());
    munmap(largest->second.back(), largest->first);
    held_bytes_ -= largest->first;
    largest->second.pop_back();
    if (largest->second.empty()) free_.erase(largest);
  }

  static void free_data(void* data);

  void give_back(char* block) {
    if (block_bytes(block) < kSmall) return std::free(block);
    const std::lock_guard lock(mutex_);
    used_bytes_ -= block_bytes(block);
    free_[block_bytes(block)].push_back(block);
  }

  std::mutex mutex_;
  std::map<std::size_t, std::vector<char*>> free_;  // by size
  std::size_t held_bytes_ = 0;
  std::size_t used_bytes_ = 0, most_used_bytes_ = 0;
};

TensorCache& cache() {
  static auto* const the_cache = new TensorCache;  // outlives every tensor
  return *the_cache;
}

void TensorCache::free_data(void* data) {
  if (data == nullptr) return;
  c10::profiledCPUMemoryReporter().Delete(data);
  cache().give_back(static_cast<char*>(data) - kHeader);
}

}  // namespace

void use_tensor_cache() {
  c10::SetCPUAllocator(&cache());
}
void release_cached_tensors() {
  cache().release();
}
int64_t tensor_cache_bytes() {
  return cache().held_bytes();
}

}  // namespace sailor
