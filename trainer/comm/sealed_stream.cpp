#include "trainer/comm/sealed_stream.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace sailor {
namespace {

constexpr std::size_t kHeadBytes = 4;
constexpr std::size_t kFrameTagBytes = crypto_aead_chacha20poly1305_ietf_ABYTES;
constexpr std::size_t kMostFrame = kHeadBytes + kMostFramePayload + kFrameTagBytes;

using FrameNonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

FrameNonce nonce_of(uint64_t frame) {
  FrameNonce nonce{};
  std::memcpy(nonce.data() + nonce.size() - sizeof frame, &frame, sizeof frame);
  return nonce;
}

const unsigned char* octets(const char* data) {
  return reinterpret_cast<const unsigned char*>(data);
}
unsigned char* octets(char* data) {
  return reinterpret_cast<unsigned char*>(data);
}

}  // namespace

SealedSender::SealedSender(const StreamKey& key) : key_(key) {}

void SealedSender::seal(const char* data, std::size_t bytes) {
  const auto length = static_cast<uint32_t>(bytes);
  frame_.resize(kHeadBytes + bytes + kFrameTagBytes);
  std::memcpy(frame_.data(), &length, sizeof length);  // little-endian, as every machine we run on
  crypto_aead_chacha20poly1305_ietf_encrypt(octets(frame_.data() + kHeadBytes), nullptr, octets(data), bytes,
                                            octets(frame_.data()), kHeadBytes, nullptr,
                                            nonce_of(frames_++).data(), key_.data());
  sent_ = 0;
}

SealedReceiver::SealedReceiver(const StreamKey& key) : key_(key) {}

std::span<char> SealedReceiver::room() {
  buffer_.resize(kMostFrame);
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return std::span(buffer_).subspan(end_);
}

bool SealedReceiver::open(char* to, const char* frame, std::size_t payload) {
  return crypto_aead_chacha20poly1305_ietf_decrypt(octets(to), nullptr, nullptr, octets(frame + kHeadBytes),
                                                   payload + kFrameTagBytes, octets(frame), kHeadBytes,
                                                   nonce_of(frames_++).data(), key_.data()) == 0;
}

std::optional<std::size_t> SealedReceiver::take(char* to, std::size_t most) {
  if (taken_ == payload_.size()) {
    if (end_ - begin_ < kHeadBytes) return 0;
    const char* frame = buffer_.data() + begin_;
    uint32_t payload = 0;
    std::memcpy(&payload, frame, sizeof payload);
    if (payload == 0 || payload > kMostFramePayload) return std::nullopt;
    if (end_ - begin_ < kHeadBytes + payload + kFrameTagBytes) return 0;
    begin_ += kHeadBytes + payload + kFrameTagBytes;
    if (payload <= most) {
      if (!open(to, frame, payload)) return std::nullopt;
      return payload;
    }
    payload_.resize(payload);
    taken_ = 0;
    if (!open(payload_.data(), frame, payload)) return std::nullopt;
  }
  const std::size_t bytes = std::min(most, payload_.size() - taken_);
  std::memcpy(to, payload_.data() + taken_, bytes);
  taken_ += bytes;
  return bytes;
}

}  // namespace sailor
