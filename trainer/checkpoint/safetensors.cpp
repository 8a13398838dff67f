#include "trainer/checkpoint/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "planner/spec/document.h"
#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMostHeaderBytes = static_cast<int64_t>(kMaxTextFileBytes);
// At once: for its checksum and the copy, it comes from memory only once.
constexpr int64_t kAppendBytes = int64_t{256} << 10;
constexpr int64_t kTensorAlignment = 8;  // of the tensors' bytes, as other writers have it

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw InputError({path, 0}, what + "; it is damaged or not a safetensors file; get it again");
}

[[noreturn]] void fail_to(const std::string& action, const std::string& path) {
  throw std::runtime_error(fmt::format("cannot {} {}: {}", action, path, std::strerror(errno)));
}

// False at the end of the file.
bool read_at(int fd, int64_t offset, void* out, int64_t bytes) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t n = pread(fd, to, static_cast<size_t>(bytes), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::runtime_error(std::strerror(errno));
    if (n == 0) return false;
    to += n;
    offset += n;
    bytes -= n;
  }
  return true;
}

int64_t length_of(const std::array<unsigned char, 8>& bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value > static_cast<uint64_t>(kMostStoredBytes) ? kMostStoredBytes : static_cast<int64_t>(value);
}

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump();
}

StoredTensor read_entry(const std::string& name, const Field& field) {
  MapField map(field, {"dtype", "shape", "data_offsets"});
  StoredTensor tensor;
  tensor.name = name;
  const Field dtype = map.required("dtype");
  tensor.dtype = dtype.text();
  if (stored_element_bytes(tensor.dtype) == 0)
    dtype.fail("the type " + in_quotes(tensor.dtype) + " is not one that can be read");
  for (const Field& size : map.required("shape").items())
    tensor.shape.push_back(size.integer<int64_t>(0, kMostStoredBytes));
  const Field offsets = map.required("data_offsets");
  const std::vector<Field> range = offsets.items();
  if (range.size() != 2) offsets.fail("must be [FIRST, END]");
  tensor.first_byte = range[0].integer<int64_t>(0, kMostStoredBytes);
  tensor.bytes = range[1].integer<int64_t>(tensor.first_byte, kMostStoredBytes) - tensor.first_byte;
  if (const int64_t needed = stored_bytes(tensor.dtype, tensor.shape); needed != tensor.bytes)
    offsets.fail(fmt::format("hold {} bytes, but shape and type need {}", tensor.bytes,
                             needed < 0 ? "more than any file has" : std::to_string(needed)));
  return tensor;
}

}  // namespace

int64_t stored_element_bytes(const std::string& dtype) {
  // Nothing that is destroyed: writes that a disk holds up may ask while the process ends.
  static constexpr std::pair<std::string_view, int64_t> kBytes[] = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4},
      {"I16", 2}, {"I8", 1},  {"U64", 8}, {"U32", 4},  {"U16", 2},     {"U8", 1},      {"BOOL", 1}};
  for (const auto& [name, bytes] : kBytes)
    if (name == dtype) return bytes;
  return 0;
}

int64_t stored_bytes(const std::string& dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = stored_element_bytes(dtype);
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes) || bytes > kMostStoredBytes) return -1;
  }
  return bytes;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw InputError({path, 0}, fmt::format("cannot be opened: {}", std::strerror(errno)));
  try {
    struct stat status {};
    if (fstat(fd_, &status) != 0) fail_to("look at", path);
    if (!S_ISREG(status.st_mode)) throw InputError({path, 0}, "is not a regular file");
    const auto size = static_cast<int64_t>(status.st_size);
    std::array<unsigned char, kLengthBytes> length_bytes{};
    if (size < kLengthBytes || !read_at(fd_, 0, length_bytes.data(), kLengthBytes))
      refuse(path, fmt::format("has {} bytes, fewer than any safetensors file", size));
    const int64_t length = length_of(length_bytes);
    if (length > size - kLengthBytes || length > kMostHeaderBytes)
      refuse(path, fmt::format("says that its header has {} bytes, the file has {}", length, size));
    std::string header(static_cast<size_t>(length), '\0');
    if (!read_at(fd_, kLengthBytes, header.data(), length)) refuse(path, "became shorter while it was read");
    if (header.empty() || header.front() != '{') refuse(path, "has a header that is not a JSON map");
    require_text(header, path);

    const Document document = parse_json(header, path);
    for (const auto& [name, entry] : Field(document).entries()) {
      if (name == "__metadata__") {
        for (const auto& [key, value] : entry.entries()) metadata_[key] = value.text_or_empty();
      } else {
        tensors_.push_back(read_entry(name, entry));
      }
    }
    std::sort(tensors_.begin(), tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
      return std::pair(a.first_byte, a.first_byte + a.bytes) <
             std::pair(b.first_byte, b.first_byte + b.bytes);
    });
    const int64_t data = kLengthBytes + length;
    int64_t end = 0;
    for (StoredTensor& tensor : tensors_) {
      if (tensor.first_byte != end)
        refuse(path,
               fmt::format("has tensors that {}: {} begins at byte {} of the data, the one before it ends "
                           "at {}",
                           tensor.first_byte < end ? "overlap" : "leave a hole", in_quotes(tensor.name),
                           tensor.first_byte, end));
      end += tensor.bytes;
      by_name_[tensor.name] = static_cast<size_t>(&tensor - tensors_.data());
      tensor.first_byte += data;
    }
    if (end != size - data)
      refuse(path, fmt::format("has {} bytes of data where its tensors need {}", size - data, end));
  } catch (...) {
    close(fd_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() {
  if (fd_ >= 0) close(fd_);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      tensors_(std::move(other.tensors_)),
      by_name_(std::move(other.by_name_)),
      metadata_(std::move(other.metadata_)) {}

const StoredTensor* SafetensorsFile::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsFile::read(const StoredTensor& tensor, int64_t first, int64_t count, void* out) const {
  if (first < 0 || count < 0 || first > tensor.bytes || count > tensor.bytes - first)
    throw std::logic_error(fmt::format("{}: bytes outside of {}", path_, tensor.name));
  bool whole = false;
  try {
    whole = read_at(fd_, tensor.first_byte + first, out, count);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("cannot read {}: {}", path_, error.what()));
  }
  if (!whole) throw std::runtime_error(fmt::format("cannot read {}: it became shorter", path_));
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors,
                                     const std::map<std::string, std::string>& metadata,
                                     BlockChecksums* checksums, const std::atomic<bool>* stop)
    : path_(path), temporary_(fmt::format("{}.tmp.{}", path, getpid())), checksums_(checksums) {
  // Wide types first, so that each begins at a multiple of its size.
  std::stable_sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return stored_element_bytes(a.dtype) > stored_element_bytes(b.dtype);
  });
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata)
      header += fmt::format("{}{}:{}", header.back() == '{' ? "" : ",", json_string(key), json_string(value));
    header += "}";
  }
  int64_t end = 0;
  for (StoredTensor& tensor : tensors) {
    tensor.bytes = stored_bytes(tensor.dtype, tensor.shape);
    if (stored_element_bytes(tensor.dtype) == 0 || tensor.bytes < 0)
      throw std::logic_error(fmt::format("{}: {} cannot be stored", path, tensor.name));
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[", header.size() == 1 ? "" : ",",
                          json_string(tensor.name), tensor.dtype);
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      header += fmt::format("{}{}", i == 0 ? "" : ",", tensor.shape[i]);
    header += fmt::format("],\"data_offsets\":[{},{}]}}", end, end + tensor.bytes);
    tensor.first_byte = end;
    end += tensor.bytes;
  }
  header += "}";
  while (header.size() % kTensorAlignment != 0) header += ' ';
  const auto data = kLengthBytes + static_cast<int64_t>(header.size());
  std::set<std::string> names;
  for (StoredTensor& tensor : tensors) {
    tensor.first_byte += data;
    if (!names.insert(tensor.name).second)
      throw std::logic_error(fmt::format("{}: two tensors named {}", path, tensor.name));
  }
  tensors_ = std::move(tensors);
  file_bytes_ = data + end;

  std::array<unsigned char, kLengthBytes> length{};
  for (size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<unsigned char>(header.size() >> (8 * i) & 0xff);
  try {
    file_ = std::make_unique<SequentialFile>(temporary_, file_bytes_, stop);
    append(length.data(), kLengthBytes);
    append(header.data(), static_cast<int64_t>(header.size()));
  } catch (...) {
    unlink(temporary_.c_str());
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!file_) return;
  file_.reset();
  unlink(temporary_.c_str());
}

void SafetensorsWriter::append(const void* data, int64_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const int64_t part = std::min(bytes, kAppendBytes);
    if (checksums_ != nullptr) checksums_->add(from, part);
    file_->append(from, part);
    from += part;
    bytes -= part;
  }
}

void SafetensorsWriter::write(const std::string& name, const void* data, int64_t bytes) {
  if (next_ == tensors_.size() || tensors_[next_].name != name || tensors_[next_].bytes != bytes)
    throw std::logic_error(
        fmt::format("{}: {} is not to be written now, or not with {} bytes", path_, name, bytes));
  append(data, bytes);
  ++next_;
}

void SafetensorsWriter::finish() {
  if (next_ != tensors_.size())
    throw std::logic_error(fmt::format("{}: {} was never written", path_, tensors_[next_].name));
  file_->finish();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_to("write", path_);
  file_.reset();
}

}  // namespace sailor
