#include "trainer/data/token_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "planner/spec/error.h"
#include "trainer/data/token_file.h"

namespace sailor {
namespace {

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

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  const int rc = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (rc != 0) paths.clear();
  // Indices are read with the files that they belong to.
  std::erase_if(paths, [](const std::string& path) { return path.ends_with(".idx"); });
  return paths;  // glob sorts
}

// Files by path or glob. What Megatron calls a prefix lacks `.bin`.
std::vector<std::string> expand(std::filesystem::path pattern, const std::string& key, const Where& where) {
  if (pattern.is_relative()) pattern = std::filesystem::path(where.file).parent_path() / pattern;
  std::vector<std::string> paths = matches(pattern);
  if (paths.empty()) paths = matches(pattern.string() + ".bin");
  if (paths.empty())
    throw InputError(
        where,
        fmt::format("{}: no file matches {}; give a path or a glob, absolute or relative to the job spec",
                    key, pattern.string()));
  return paths;
}

}  // namespace

struct TokenData::Impl {
  std::string key;  // of the job spec, for errors
  int sequence_length;
  int64_t global_batch;
  int64_t vocabulary;
  uint64_t seed;
  std::vector<TokenFile> files;
  std::vector<int64_t> file_ends;  // tokens up to the end of each file
  std::vector<uint16_t> memory;    // instead of files
  int64_t tokens = 0;
  int64_t windows = 0;

  void finish(const Where& where) {
    tokens = files.empty() ? static_cast<int64_t>(memory.size()) : file_ends.back();
    windows = tokens > 0 ? (tokens - 1) / sequence_length : 0;
    if (windows < 1) {
      throw InputError(
          where,
          fmt::format("{}: {} tokens are fewer than one sequence of {} + 1; give more text or a shorter "
                      "model.sequence",
                      key, tokens, sequence_length));
    }
  }

  // File of a position, and the position in it.
  std::pair<std::size_t, int64_t> place(int64_t position) const {
    const auto file = static_cast<std::size_t>(
        std::upper_bound(file_ends.begin(), file_ends.end(), position) - file_ends.begin());
    return {file, position - (file == 0 ? 0 : file_ends[file - 1])};
  }

  void read(int64_t position, int64_t count, int64_t* out) const {
    const int64_t first = position;
    int64_t* const begin = out;
    if (files.empty()) {
      std::copy_n(memory.begin() + position, count, out);
      out += count;
    }
    while (count > 0 && !files.empty()) {
      const auto [file, offset] = place(position);
      const int64_t run = std::min(count, files[file].tokens() - offset);
      files[file].read(offset, run, out);
      position += run;
      out += run;
      count -= run;
    }
    for (const int64_t* token = begin; token != out; ++token) {
      if (*token >= 0 && *token < vocabulary) continue;
      throw InputError(where_of(first + (token - begin)),
                       fmt::format("{}: token {} is outside model.vocabulary {}; was the file made with "
                                   "another tokenizer, or has it another data.format?",
                                   key, *token, vocabulary));
    }
  }

  Where where_of(int64_t position) const {
    if (files.empty()) return {"memory, token " + std::to_string(position), 0};
    const auto [file, offset] = place(position);
    return {fmt::format("{}, token {}", files[file].path(), offset), 0};
  }

  std::vector<int64_t> window(int64_t index) const {
    std::vector<int64_t> tokens(static_cast<std::size_t>(sequence_length) + 1);
    read(index * sequence_length, sequence_length + 1, tokens.data());
    return tokens;
  }

  static TokenData open(const JobSpec& job, const std::string& files, const std::string& key);
};

TokenData::TokenData(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenData::TokenData(TokenData&&) noexcept = default;
TokenData& TokenData::operator=(TokenData&&) noexcept = default;
TokenData::~TokenData() = default;

TokenData TokenData::Impl::open(const JobSpec& job, const std::string& pattern, const std::string& key) {
  auto impl = std::make_unique<Impl>();
  impl->key = key;
  impl->sequence_length = job.model.sequence;
  impl->global_batch = job.training.global_batch;
  impl->vocabulary = job.model.vocabulary;
  impl->seed = job.training.seed;
  Where where = job.where(key);
  int64_t total = 0;
  for (const std::string& path : expand(pattern, key, where)) {
    impl->files.push_back(TokenFile::open(path, job.data.format, key));
    total += impl->files.back().tokens();
    impl->file_ends.push_back(total);
  }
  impl->finish(where);
  return TokenData(std::move(impl));
}

TokenData TokenData::open(const JobSpec& job) {
  return Impl::open(job, job.data.train, "data.train");
}
TokenData TokenData::open_validation(const JobSpec& job) {
  return Impl::open(job, job.data.validation, "data.validation");
}

TokenData TokenData::from_tokens(std::vector<uint16_t> tokens, int sequence, int64_t global_batch,
                                 int vocabulary, uint64_t seed) {
  auto impl = std::make_unique<Impl>();
  impl->key = "tokens";
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
  return impl_->window(window);
}

std::vector<int64_t> TokenData::spread_sequence(int64_t index, int64_t of) const {
  return impl_->window(impl_->windows / of * index + impl_->windows % of * index / of);
}

double TokenData::unigram_entropy(int64_t most) const {
  const int64_t stride = std::max<int64_t>(1, impl_->tokens / std::max<int64_t>(1, most));
  std::vector<int64_t> counts(static_cast<std::size_t>(impl_->vocabulary));
  int64_t total = 0;
  for (int64_t position = 0; position < impl_->tokens; position += stride, ++total) {
    int64_t token = 0;
    impl_->read(position, 1, &token);
    ++counts[static_cast<std::size_t>(token)];
  }
  double entropy = 0;
  for (const int64_t count : counts) {
    const double p = static_cast<double>(count) / static_cast<double>(total);
    if (count > 0) entropy -= p * std::log(p);
  }
  return entropy;
}

std::string TokenData::describe() const {
  std::set<std::string> formats;
  for (const TokenFile& file : impl_->files) formats.insert(file.format());
  return fmt::format("{}{} file{}, {} tokens",
                     formats.empty() ? "" : fmt::format("{}: ", fmt::join(formats, ", ")),
                     impl_->files.size(), impl_->files.size() == 1 ? "" : "s", impl_->tokens);
}
int64_t TokenData::num_tokens() const {
  return impl_->tokens;
}
int64_t TokenData::num_windows() const {
  return impl_->windows;
}

}  // namespace sailor
