#include "trainer/record/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <filesystem>
#include <stdexcept>

namespace sailor {
namespace {

template <class T>
void put(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

uint32_t masked(uint32_t crc) {
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

// Protocol buffers: a key is field << 3 | wire type.
enum Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | wire);
}
void put_bytes(std::string& out, int field, const std::string& value) {
  put_key(out, field, Wire::bytes);
  put_varint(out, value.size());
  out += value;
}

// Event: wall_time = 1 (double), step = 2 (int64), file_version = 3 (string), summary = 5 (Summary),
// session_log = 7 (SessionLog).
std::string event(double wall_time_s, int64_t step) {
  std::string out;
  put_key(out, 1, Wire::fixed64);
  put(out, wall_time_s);
  put_key(out, 2, Wire::varint);
  put_varint(out, static_cast<uint64_t>(step));
  return out;
}

std::string host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
      entries[i] = crc;
    }
    return entries;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

EventFile::EventFile(const std::string& directory, double wall_time_s) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);  // errors are reported below, with the file
  const std::string name = fmt::format("{}/events.out.tfevents.{:010}.{}.{}", directory,
                                       static_cast<int64_t>(wall_time_s), host(), getpid());
  path_ = name;
  for (int i = 1; std::filesystem::exists(path_, error); ++i) path_ = fmt::format("{}.{}", name, i);
  out_.open(path_, std::ios::binary | std::ios::trunc);
  std::string first = event(wall_time_s, 0);
  put_bytes(first, 3, "brain.Event:2");
  record(first);
}

void EventFile::write(int64_t step, double wall_time_s,
                      const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {  // Summary.Value: tag = 1 (string), simple_value = 2 (float)
    std::string value;
    put_bytes(value, 1, tag);
    put_key(value, 2, Wire::fixed32);
    put(value, static_cast<float>(number));
    put_bytes(summary, 1, value);
  }
  std::string out = event(wall_time_s, step);
  put_bytes(out, 5, summary);
  record(out);
}

void EventFile::begin_session(int64_t step, double wall_time_s) {
  std::string log;  // SessionLog: status = 1 (enum), of which 1 is START
  put_key(log, 1, Wire::varint);
  put_varint(log, 1);
  std::string out = event(wall_time_s, step);
  put_bytes(out, 7, log);
  record(out);
}

void EventFile::record(const std::string& event) {
  std::string out;
  put(out, static_cast<uint64_t>(event.size()));
  put(out, masked(crc32c(out)));
  out += event;
  put(out, masked(crc32c(event)));
  out_.write(out.data(), static_cast<std::streamsize>(out.size()));
  out_.flush();
  if (!out_) throw std::runtime_error(fmt::format("cannot write {}", path_));
}

}  // namespace sailor
