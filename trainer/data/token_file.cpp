#include "trainer/data/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "planner/spec/error.h"

namespace sailor {
namespace {

constexpr std::size_t kLlmcHeaderBytes = 256 * sizeof(int32_t);
constexpr int32_t kLlmcMagic16 = 20240520, kLlmcMagic32 = 20240801;
constexpr char kMegatronMagic[] = "MMIDIDX\0";  // nine bytes with the one that ends the literal
constexpr std::size_t kIndexHeaderBytes = 34;

// Values may be unaligned: the arrays of a Megatron index begin at byte 34.
template <class T>
T value_at(const MappedFile& file, std::size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

std::string index_path(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".idx");
}

// Tokens of 32 bits read as 16 bits: every second one is the upper half of a token below 2^18. Tokens of 16
// bits are not so small at every second place, unless all are.
bool looks_like_32_bits(const MappedFile& file) {
  constexpr std::size_t kLeast = 16, kMost = 4096;
  const std::size_t pairs = std::min(file.size() / 4, kMost);
  bool low_are_small = true, high_are_small = true;
  for (std::size_t i = 0; i < pairs; ++i) {
    low_are_small = low_are_small && value_at<uint16_t>(file, 4 * i) < 4;
    high_are_small = high_are_small && value_at<uint16_t>(file, 4 * i + 2) < 4;
  }
  return pairs >= kLeast && file.size() % 4 == 0 && high_are_small && !low_are_small;
}

// Raw tokens of 16 bits have a zero byte soon, unless every token is 256 or more and none is a multiple of
// 256.
bool looks_like_text(const MappedFile& file) {
  const std::size_t shown = std::min<std::size_t>(file.size(), 4096);
  return shown > 0 && std::all_of(file.data(), file.data() + shown, [](unsigned char c) {
           return (c >= 0x20 && c != 0x7f) || c == '\n' || c == '\r' || c == '\t';
         });
}

// The first number below `end` that is, as all after it are; `end` if there is none.
template <class Is>
uint64_t first_number(uint64_t end, const Is& is) {
  uint64_t first = 0;
  while (first < end) {
    const uint64_t middle = first + (end - first) / 2;
    if (is(middle)) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

}  // namespace

TokenFile TokenFile::open(const std::string& path, const std::string& format, const std::string& key) {
  TokenFile file{MappedFile(path, key)};
  file.format_ = format;
  if (format == "auto") {
    if (starts_as_llmc(file.file_)) {
      file.format_ = "llmc";
    } else if (std::filesystem::exists(index_path(path))) {
      file.format_ = "megatron";
    } else {
      file.format_ = "nanogpt";
      if (std::filesystem::path(path).extension() != ".bin" && looks_like_text(file.file_))
        file.fail(key, "looks like text; convert it with `sailor tokenize`, or set data.format: bytes");
    }
  }
  if (file.format_ == "nanogpt" || file.format_ == "uint32") {
    file.open_raw(key);
  } else if (file.format_ == "llmc") {
    file.open_llmc(key);
  } else if (file.format_ == "megatron") {
    file.open_megatron(key);
  } else if (file.format_ == "bytes") {
    file.element_ = TokenElement::u8;
    file.take_rest(key);
  } else {
    throw InputError(fmt::format(
        "data.format: unknown format \"{}\" (known: auto, nanogpt, uint32, llmc, megatron, bytes)", format));
  }
  return file;
}

void TokenFile::fail(const std::string& key, const std::string& what) const {
  throw InputError(Where{path(), 0}, key + ": " + what);
}

void TokenFile::fail_index(const std::string& key, const std::string& what) const {
  throw InputError(Where{index_->path(), 0},
                   key + ": " + what + "; write the pair again with Megatron's tools");
}

bool TokenFile::starts_as_llmc(const MappedFile& file) {
  if (file.size() < kLlmcHeaderBytes) return false;
  const auto magic = value_at<int32_t>(file, 0);
  return magic == kLlmcMagic16 || magic == kLlmcMagic32;
}

void TokenFile::take_rest(const std::string& key) {
  const std::size_t width = bytes_of(element_);
  const std::size_t bytes = file_.size() - offset_;
  if (bytes % width != 0)
    fail(key, fmt::format("{} bytes are not a multiple of {}-bit tokens; truncated, or another data.format?",
                          bytes, 8 * width));
  tokens_ = static_cast<int64_t>(bytes / width);
}

void TokenFile::open_raw(const std::string& key) {
  if (starts_as_llmc(file_)) fail(key, "has the header of llm.c; say data.format: llmc, or auto");
  element_ = format_ == "uint32" ? TokenElement::u32 : TokenElement::u16;
  if (element_ == TokenElement::u16 && looks_like_32_bits(file_))
    fail(key, "looks like tokens of 32 bits; set data.format: uint32, or copy the .idx that belongs to it");
  take_rest(key);
}

void TokenFile::open_llmc(const std::string& key) {
  if (!starts_as_llmc(file_))
    fail(key, fmt::format("no llm.c token file: it does not begin with {} or {} and 1024 bytes of header",
                          kLlmcMagic16, kLlmcMagic32));
  const bool wide = value_at<int32_t>(file_, 0) == kLlmcMagic32;
  const auto version = value_at<int32_t>(file_, 4), count = value_at<int32_t>(file_, 8);
  const int32_t known = wide ? 7 : 1;
  if (version != known)
    fail(key,
         fmt::format("llm.c header of version {}, this program reads {}; write the file again with llm.c's "
                     "dev/data scripts",
                     version, known));
  element_ = wide ? TokenElement::u32 : TokenElement::u16;
  offset_ = kLlmcHeaderBytes;
  take_rest(key);
  if (tokens_ != count)
    fail(key, fmt::format("the header says {} tokens, the file has {}; truncated? Copy or write it again",
                          count, tokens_));
}

void TokenFile::open_megatron(const std::string& key) {
  const std::string name = index_path(path());
  if (!std::filesystem::exists(name))
    fail(key,
         fmt::format("Megatron's format needs {} next to it; copy it too, or set another data.format", name));
  const MappedFile& index = index_.emplace(name, key);
  if (index.size() < kIndexHeaderBytes || std::memcmp(index.data(), kMegatronMagic, 9) != 0)
    fail_index(key, "no Megatron index: it does not begin with MMIDIDX");
  if (const auto version = value_at<uint64_t>(index, 9); version != 1)
    fail_index(key, fmt::format("index of version {}, this program reads 1", version));
  switch (const int code = value_at<uint8_t>(index, 17)) {
    case 1:
      element_ = TokenElement::u8;
      break;
    case 2:
      element_ = TokenElement::i8;
      break;
    case 3:
      element_ = TokenElement::i16;
      break;
    case 4:
      element_ = TokenElement::i32;
      break;
    case 5:
      element_ = TokenElement::i64;
      break;
    case 8:
      element_ = TokenElement::u16;
      break;
    default:
      fail_index(key, fmt::format("elements of type code {} are no tokens (known: 1 to 5 and 8)", code));
  }
  index_sequences_ = value_at<uint64_t>(index, 18);
  index_documents_ = value_at<uint64_t>(index, 26);
  // A length and an offset each; documents; one byte each when sequences have modes (images).
  const std::size_t rest = index.size() - kIndexHeaderBytes;
  if (index_sequences_ > rest / 12 || index_documents_ > (rest - index_sequences_ * 12) / 8)
    fail_index(key, fmt::format("truncated: {} sequences and {} documents do not fit into {} bytes",
                                index_sequences_, index_documents_, index.size()));
  const auto width = static_cast<int64_t>(bytes_of(element_));
  int64_t bytes = 0;
  for (uint64_t i = 0; i < index_sequences_; ++i) {
    const auto length = value_at<int32_t>(index, kIndexHeaderBytes + i * 4);
    const auto pointer = value_at<int64_t>(index, kIndexHeaderBytes + index_sequences_ * 4 + i * 8);
    if (length < 0 || pointer != bytes)
      fail_index(key, fmt::format("sequence {} does not follow the one before it", i));
    bytes += int64_t{length} * width;
  }
  if (static_cast<uint64_t>(bytes) != file_.size())
    fail(key, fmt::format("the index promises {} bytes, the file has {}; truncated, or another file's index?",
                          bytes, file_.size()));
  take_rest(key);
}

void TokenFile::require_documents(const std::string& key) const {
  if (!index_)
    fail(key,
         fmt::format("data.document_mask needs an .idx that marks the documents, which files of format {} "
                     "do not have; write the file with `sailor tokenize`, or remove the option",
                     format_));
  const std::size_t list = kIndexHeaderBytes + index_sequences_ * 12;
  uint64_t before = 0;
  for (uint64_t i = 0; i < index_documents_; ++i) {
    const auto sequence = value_at<uint64_t>(*index_, list + i * 8);
    if (sequence < before || sequence > index_sequences_ || (i == 0 && sequence != 0))
      fail_index(key, fmt::format("document {} does not follow the one before it", i));
    before = sequence;
  }
  if (index_documents_ == 0 || before != index_sequences_)
    fail_index(key, "the last document does not end with the last sequence");
}

int64_t TokenFile::document_start(uint64_t document) const {
  return sequence_start(
      value_at<uint64_t>(*index_, kIndexHeaderBytes + index_sequences_ * 12 + document * 8));
}

int64_t TokenFile::sequence_start(uint64_t sequence) const {
  if (sequence == index_sequences_) return tokens_;
  const auto pointer = value_at<int64_t>(*index_, kIndexHeaderBytes + index_sequences_ * 4 + sequence * 8);
  return pointer / static_cast<int64_t>(bytes_of(element_));
}

std::vector<int64_t> TokenFile::document_starts(int64_t first, int64_t end) const {
  uint64_t document = first_number(index_documents_, [&](uint64_t i) { return document_start(i) >= first; });
  std::vector<int64_t> starts;
  for (; document < index_documents_ && document_start(document) < std::min(end, tokens_); ++document) {
    const int64_t start = document_start(document);
    if (starts.empty() || starts.back() != start) starts.push_back(start);
  }
  return starts;
}

void TokenFile::require_answers(const std::string& key) const {
  require_documents(key);
  const std::size_t modes = kIndexHeaderBytes + index_sequences_ * 12 + index_documents_ * 8;
  if (index_->size() < modes + index_sequences_)
    throw InputError(Where{index_->path(), 0},
                     key +
                         ": marks no answers, which training.task: sft needs; write "
                         "the file with `sailor tokenize --sft`");
}

std::vector<TokenRange> TokenFile::answers(int64_t first, int64_t end) const {
  const std::size_t modes = kIndexHeaderBytes + index_sequences_ * 12 + index_documents_ * 8;
  std::vector<TokenRange> ranges;
  for (uint64_t i = first_number(index_sequences_, [&](uint64_t k) { return sequence_start(k + 1) > first; });
       i < index_sequences_ && sequence_start(i) < end; ++i) {
    const int64_t from = std::max(first, sequence_start(i)), to = std::min(end, sequence_start(i + 1));
    if (from < to && value_at<uint8_t>(*index_, modes + i) == 1) ranges.emplace_back(from, to);
  }
  return ranges;
}

}  // namespace sailor
