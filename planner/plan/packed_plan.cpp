#include "planner/plan/packed_plan.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "planner/plan/plan_json.h"
#include "planner/spec/error.h"

namespace sailor {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
// Far above any real text; limits the memory that a damaged or hostile text can make us allocate.
constexpr size_t kMaxTextBytes = size_t{64} << 20;

std::string to_base64(const std::string& bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string from_base64(const std::string& text, const std::string& what, const std::string& source) {
  std::array<int, 256> value;
  value.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    value[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int>(i);
  if (text.empty() || text.size() % 4 != 0)
    throw InputError({source}, what + " is truncated; submit the job again");
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    size_t padding = 0;
    uint32_t group = 0;
    for (size_t k = 0; k < 4; ++k) {
      char c = text[i + k];
      bool last = i + 4 == text.size();
      if (c == '=' && last && k >= 2) {
        ++padding;
        group <<= 6;
        continue;
      }
      int digit = value[static_cast<unsigned char>(c)];
      if (digit < 0 || padding > 0) {
        throw InputError({source}, what + " is damaged (not base64); submit the job again");
      }
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t k = 0; k + padding < 3; ++k) bytes += static_cast<char>(group >> (16 - 8 * k) & 255);
  }
  return bytes;
}

}  // namespace

std::string pack_text(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string compressed(size, '\0');
  int status = compress2(reinterpret_cast<Bytef*>(compressed.data()), &size,
                         reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_COMPRESSION);
  if (status != Z_OK)
    throw std::runtime_error(fmt::format("cannot compress {} bytes (zlib {})", text.size(), status));
  compressed.resize(size);
  return to_base64(compressed);
}

std::string unpack_text(const std::string& packed, const std::string& what, const std::string& source) {
  std::string compressed = from_base64(packed, what, source);
  std::string text;
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::runtime_error("cannot start zlib");
  stream.next_in = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_in = static_cast<uInt>(compressed.size());
  int status = Z_OK;
  std::array<char, 16384> buffer;
  while (status == Z_OK && text.size() <= kMaxTextBytes) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || stream.avail_in != 0) {
    throw InputError({source}, what + " is damaged (does not decompress); submit the job again");
  }
  return text;
}

std::string pack_plan(const Plan& plan) {
  return pack_text(to_json(plan, -1));
}

Plan unpack_plan(const std::string& packed, const std::string& source) {
  return parse_plan(unpack_text(packed, "packed plan", source), source);
}

}  // namespace sailor
