#include "trainer/data/token_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "planner/spec/error.h"
#include "trainer/comm/file_descriptor.h"

namespace sailor {
namespace {

// A file mapped for reading.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) : path_(path) {
    const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
      throw InputError(Where{path, 0}, fmt::format("data.train: cannot read: {}", std::strerror(errno)));
    }
    if (!S_ISREG(status.st_mode))
      throw InputError(Where{path, 0}, "data.train: not a file; name files or a glob of files");
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) return;
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (mapped == MAP_FAILED)
      throw std::runtime_error(fmt::format("{}: mmap: {}", path, std::strerror(errno)));
    data_ = static_cast<const unsigned char*>(mapped);
  }
  MappedFile(MappedFile&& other) noexcept
      : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile() {
    if (data_) ::munmap(const_cast<unsigned char*>(data_), size_);
  }

  const std::string& path() const { return path_; }
  const unsigned char* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::string path_;
  const unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
};

// A bijection of [0, n) drawn from a key: a four-round Feistel network on the next even number of bits,
// walked until it lands inside.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key)
      : n_(n), half_bits_(std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2)), key_(key) {}

  uint64_t operator()(uint64_t x) const {
    do x = round_trip(x);
    while (x >= n_);
    return x;
  }

 private:
  static uint64_t mix(uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t round_trip(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = x >> half_bits_;
    uint64_t right = x & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t next = left ^ (mix(mix(key_ + round) ^ right) & mask);
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  uint64_t n_;
  int half_bits_;
  uint64_t key_;
};

std::vector<std::string> expand(const DataSpec& data, const std::string& job_file) {
  std::filesystem::path pattern = data.train;
  if (pattern.is_relative()) pattern = std::filesystem::path(job_file).parent_path() / pattern;
  glob_t found{};
  const int rc = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (rc != 0 || paths.empty()) {
    throw InputError(
        Where{job_file, 0},
        fmt::format("data.train: no file matches {}; give a path or a glob, absolute or relative to the job "
                    "spec",
                    pattern.string()));
  }
  return paths;  // glob sorts
}

}  // namespace

struct TokenData::Impl {
  int sequence_length;
  int64_t global_batch;
  int64_t vocabulary;
  uint64_t seed;
  std::size_t token_bytes = 2;
  std::vector<MappedFile> files;
  std::vector<int64_t> file_ends;  // tokens up to the end of each file
  std::vector<uint16_t> memory;    // instead of files
  int64_t tokens = 0;
  int64_t windows = 0;

  void finish(const Where& where) {
    tokens = files.empty() ? static_cast<int64_t>(memory.size()) : file_ends.back();
    windows = (tokens - 1) / sequence_length;
    if (windows < 1) {
      throw InputError(
          where,
          fmt::format("data.train: {} tokens are fewer than one sequence of {} + 1; give more text or a "
                      "shorter model.sequence",
                      tokens, sequence_length));
    }
  }

  int64_t token(int64_t position) const {
    int64_t value;
    if (files.empty()) {
      value = memory[static_cast<std::size_t>(position)];
    } else {
      const std::size_t file = static_cast<std::size_t>(
          std::upper_bound(file_ends.begin(), file_ends.end(), position) - file_ends.begin());
      const int64_t offset = position - (file == 0 ? 0 : file_ends[file - 1]);
      const unsigned char* at = files[file].data() + static_cast<std::size_t>(offset) * token_bytes;
      value = token_bytes == 1 ? at[0] : at[0] | at[1] << 8;
    }
    if (value >= vocabulary) {
      throw InputError(where_of(position),
                       fmt::format("data.train: token {} is outside model.vocabulary {}; was the file "
                                   "made with another tokenizer?",
                                   value, vocabulary));
    }
    return value;
  }

  Where where_of(int64_t position) const {
    if (files.empty()) return {"memory, token " + std::to_string(position), 0};
    const std::size_t file = static_cast<std::size_t>(
        std::upper_bound(file_ends.begin(), file_ends.end(), position) - file_ends.begin());
    const int64_t offset = position - (file == 0 ? 0 : file_ends[file - 1]);
    return {fmt::format("{}, token {}", files[file].path(), offset), 0};
  }
};

TokenData::TokenData(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenData::TokenData(TokenData&&) noexcept = default;
TokenData& TokenData::operator=(TokenData&&) noexcept = default;
TokenData::~TokenData() = default;

TokenData TokenData::open(const JobSpec& job) {
  auto impl = std::make_unique<Impl>();
  impl->sequence_length = job.model.sequence;
  impl->global_batch = job.training.global_batch;
  impl->vocabulary = job.model.vocabulary;
  impl->seed = job.training.seed;
  const Where where{job.file, 0};
  if (job.data.format == "bytes") {
    impl->token_bytes = 1;
  } else if (job.data.format != "nanogpt") {
    throw InputError(where,
                     "data.format: unknown format \"" + job.data.format + "\" (known: nanogpt, bytes)");
  }
  int64_t total = 0;
  for (const std::string& path : expand(job.data, job.file)) {
    MappedFile file(path);
    if (file.size() % impl->token_bytes != 0) {
      throw InputError(Where{path, 0},
                       fmt::format("data.train: {} bytes are no whole number of 16-bit tokens; truncated, or "
                                   "another data.format?",
                                   file.size()));
    }
    total += static_cast<int64_t>(file.size() / impl->token_bytes);
    impl->files.push_back(std::move(file));
    impl->file_ends.push_back(total);
  }
  impl->finish(where);
  return TokenData(std::move(impl));
}

TokenData TokenData::from_tokens(std::vector<uint16_t> tokens, int sequence, int64_t global_batch,
                                 int vocabulary, uint64_t seed) {
  auto impl = std::make_unique<Impl>();
  impl->sequence_length = sequence;
  impl->global_batch = global_batch;
  impl->vocabulary = vocabulary;
  impl->seed = seed;
  impl->memory = std::move(tokens);
  impl->finish(Where{"memory", 0});
  return TokenData(std::move(impl));
}

std::vector<int64_t> TokenData::sequence(int64_t step, int64_t index) const {
  const int64_t sample = step * impl_->global_batch + index;
  const int64_t epoch = sample / impl_->windows;
  const Permutation order(static_cast<uint64_t>(impl_->windows),
                          impl_->seed * 0x100000001b3u + static_cast<uint64_t>(epoch));
  const auto window = static_cast<int64_t>(order(static_cast<uint64_t>(sample % impl_->windows)));
  std::vector<int64_t> tokens(static_cast<std::size_t>(impl_->sequence_length) + 1);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = impl_->token(window * impl_->sequence_length + static_cast<int64_t>(i));
  }
  return tokens;
}

double TokenData::unigram_entropy(int64_t most) const {
  const int64_t stride = std::max<int64_t>(1, impl_->tokens / std::max<int64_t>(1, most));
  std::vector<int64_t> counts(static_cast<std::size_t>(impl_->vocabulary));
  int64_t total = 0;
  for (int64_t position = 0; position < impl_->tokens; position += stride, ++total) {
    ++counts[static_cast<std::size_t>(impl_->token(position))];
  }
  double entropy = 0;
  for (const int64_t count : counts) {
    const double p = static_cast<double>(count) / static_cast<double>(total);
    if (count > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

int64_t TokenData::num_tokens() const {
  return impl_->tokens;
}
int64_t TokenData::num_windows() const {
  return impl_->windows;
}

}  // namespace sailor
