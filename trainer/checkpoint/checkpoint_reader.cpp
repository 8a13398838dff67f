#include "trainer/checkpoint/checkpoint_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <stdexcept>
#include <utility>

#include "trainer/checkpoint/block_checksums.h"
#include "trainer/checkpoint/safetensors.h"

namespace sailor {
namespace {

constexpr std::size_t kCachedFiles = 32;
constexpr int64_t kBlocksAtOnce = 8;                                  // read while earlier ones are checked
constexpr int64_t kAheadBytes = int64_t{96} << 20;                    // maximum read-ahead
constexpr int64_t kAtOnce = 2 * kBlocksAtOnce * kChecksumBlockBytes;  // read by verify()

}  // namespace

CheckpointReader::CheckpointReader(std::string path, CheckpointManifest manifest)
    : path_(std::move(path)), manifest_(std::move(manifest)) {
  for (std::size_t i = 0; i < manifest_.tensors.size(); ++i) by_name_[manifest_.tensors[i].name] = i;
  places_.resize(manifest_.tensors.size());
  for (std::size_t f = 0; f < manifest_.files.size(); ++f) {
    for (const CheckpointPiece& piece : manifest_.files[f].pieces)
      places_[piece.tensor].push_back({f, piece});
  }
  for (std::vector<Place>& places : places_)
    std::sort(places.begin(), places.end(),
              [](const Place& a, const Place& b) { return a.piece.first < b.piece.first; });
  descriptors_.assign(manifest_.files.size(), -1);
}

CheckpointReader::~CheckpointReader() {
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) close(descriptor);
  }
}

const CheckpointTensor* CheckpointReader::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &manifest_.tensors[found->second];
}

int64_t CheckpointReader::block_bytes(std::size_t file, int64_t block) const {
  return std::min(kChecksumBlockBytes, manifest_.files[file].bytes - block * kChecksumBlockBytes);
}

int CheckpointReader::descriptor_of(std::size_t file) {
  int& descriptor = descriptors_[file];
  if (descriptor >= 0) return descriptor;
  const std::string name = path_ + "/" + manifest_.files[file].name;
  descriptor = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    throw CheckpointDamaged(fmt::format("{} cannot be opened: {}", name, std::strerror(errno)));
  return descriptor;
}

void CheckpointReader::announce(const Range& range) {
  if (range.bytes > 0) announced_.push_back(range);
  bytes_announced_ += range.bytes;
}

void CheckpointReader::announce(const CheckpointTensor* tensor, int64_t first, int64_t count) {
  for (const Range& range : ranges_of(tensor, first, count)) announce(range);
}

// Blocks are read completely, so complete ones are announced; this is only a hint to the disk.
void CheckpointReader::work_ahead() {
  while (!announced_.empty() && ahead_ < kAheadBytes) {
    Range& next = announced_.front();
    const int64_t part = std::min(next.bytes, kBlocksAtOnce * kChecksumBlockBytes);
    const int64_t begin = next.first / kChecksumBlockBytes * kChecksumBlockBytes;
    const int64_t end =
        (next.first + part + kChecksumBlockBytes - 1) / kChecksumBlockBytes * kChecksumBlockBytes;
    posix_fadvise(descriptor_of(next.file), begin, end - begin, POSIX_FADV_WILLNEED);
    ahead_ += part;
    next.first += part;
    next.bytes -= part;
    if (next.bytes == 0) announced_.pop_front();
  }
}

void CheckpointReader::fetch(std::size_t file, int64_t begin, int64_t bytes, char* out) {
  const std::string name = path_ + "/" + manifest_.files[file].name;
  const int descriptor = descriptor_of(file);
  for (int64_t done = 0; done < bytes;) {
    const ssize_t n = pread(descriptor, out + done, static_cast<size_t>(bytes - done), begin + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw CheckpointDamaged(fmt::format("{} cannot be read: {}", name, std::strerror(errno)));
    if (n == 0) throw CheckpointDamaged(fmt::format("{} is shorter than what was written", name));
    done += n;
  }
  bytes_read_ += bytes;
}

void CheckpointReader::check_block(std::size_t file, int64_t block, const char* bytes) const {
  const CheckpointFile& entry = manifest_.files[file];
  const int64_t begin = block * kChecksumBlockBytes, count = block_bytes(file, block);
  const auto at = static_cast<std::size_t>(block * kChecksumDigits);
  if (entry.checksums.compare(at, kChecksumDigits, checksum_of(bytes, count)) != 0)
    throw CheckpointDamaged(fmt::format("{}/{} is not what was written: bytes {} to {} have another checksum",
                                        path_, entry.name, begin, begin + count));
}

const std::vector<char>& CheckpointReader::cached_block(std::size_t file, int64_t block) {
  if (cache_.size() >= kCachedFiles && !cache_.contains(file)) cache_.clear();
  CachedBlock& cached = cache_[file];
  if (cached.block != block) {
    cached.block = -1;
    cached.bytes.resize(static_cast<std::size_t>(block_bytes(file, block)));
    fetch(file, block * kChecksumBlockBytes, block_bytes(file, block), cached.bytes.data());
    check_block(file, block, cached.bytes.data());
    cached.block = block;
  }
  return cached.bytes;
}

void CheckpointReader::read_bytes(std::size_t file, int64_t first, int64_t count, char* out) {
  std::future<void> checking;  // of the blocks before, while the next ones are read
  const auto check_before = [&checking] {
    if (checking.valid()) checking.get();
  };
  while (count > 0) {
    work_ahead();
    const int64_t block = first / kChecksumBlockBytes, within = first % kChecksumBlockBytes;
    int64_t blocks = 0, part = 0;  // that are wanted as a whole
    for (; within == 0 && blocks < kBlocksAtOnce && part < count; ++blocks) {
      const int64_t bytes = block_bytes(file, block + blocks);
      if (part + bytes > count) break;
      part += bytes;
    }
    if (blocks > 0) {
      fetch(file, first, part, out);
      check_before();
      checking = std::async(part < count ? std::launch::async : std::launch::deferred,
                            [this, file, block, blocks, out] {
                              for (int64_t i = 0; i < blocks; ++i)
                                check_block(file, block + i, out + i * kChecksumBlockBytes);
                            });
    } else {
      part = std::min(count, block_bytes(file, block) - within);
      std::memcpy(out, cached_block(file, block).data() + within, static_cast<std::size_t>(part));
    }
    ahead_ -= std::min(ahead_, part);
    first += part;
    out += part;
    count -= part;
  }
  check_before();
}

std::vector<CheckpointReader::Range> CheckpointReader::ranges_of(const CheckpointTensor* tensor,
                                                                 int64_t first, int64_t count) const {
  std::vector<Range> ranges;
  if (count == 0) return ranges;
  if (tensor == nullptr || first < 0 || count < 0 || first > tensor->elements() - count)
    throw std::logic_error(path_ + ": elements outside of a tensor");
  const std::vector<Place>& places = places_[static_cast<std::size_t>(tensor - manifest_.tensors.data())];
  const int64_t element = stored_element_bytes(tensor->dtype);
  auto place = std::upper_bound(places.begin(), places.end(), first,
                                [](int64_t at, const Place& p) { return at < p.piece.first; });
  --place;  // parse_manifest() ensures that every element exists
  for (; count > 0; ++place) {
    const int64_t skipped = first - place->piece.first;
    const int64_t part = std::min(count, place->piece.count - skipped);
    ranges.push_back({place->file, place->piece.byte + skipped * element, part * element});
    first += part;
    count -= part;
  }
  return ranges;
}

void CheckpointReader::read(const CheckpointTensor* tensor, int64_t first, int64_t count, void* out) {
  auto* to = static_cast<char*>(out);
  for (const Range& range : ranges_of(tensor, first, count)) {
    read_bytes(range.file, range.first, range.bytes, to);
    to += range.bytes;
    bytes_delivered_ += range.bytes;
  }
}

void CheckpointReader::verify(const std::function<void(int64_t done_bytes)>& progress) {
  std::vector<char> buffer(static_cast<std::size_t>(kAtOnce));
  int64_t done_bytes = 0;
  for (std::size_t file = 0; file < manifest_.files.size(); ++file)
    announce({file, 0, manifest_.files[file].bytes});
  for (std::size_t file = 0; file < manifest_.files.size(); ++file) {
    const int64_t bytes = manifest_.files[file].bytes;
    for (int64_t first = 0; first < bytes; first += kAtOnce) {
      const int64_t part = std::min(kAtOnce, bytes - first);
      read_bytes(file, first, part, buffer.data());
      done_bytes += part;
      if (progress) progress(done_bytes);
    }
  }
}

}  // namespace sailor
