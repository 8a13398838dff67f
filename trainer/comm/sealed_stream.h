// Internal to the socket plane: what goes over a connection when it is encrypted (CommOptions::encrypt), as
// frames in both directions:
//
//     length of the payload (4 bytes, little-endian), payload, tag (16 bytes)
//
// ChaCha20-Poly1305 (RFC 8439) with a key per connection and direction (handshake.h). The number of the frame
// is its nonce, its length is authenticated: a frame that was changed, repeated, left out, moved, or taken
// from another connection is noticed before any byte of it is used. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sailor {

using StreamKey = std::array<unsigned char, 32>;
constexpr std::size_t kMostFramePayload = 64 << 10;

class SealedSender {
 public:
  explicit SealedSender(const StreamKey& key);
  // Makes the next frame. Requires 0 < bytes <= kMostFramePayload, and left() to be empty.
  void seal(const char* data, std::size_t bytes);
  // What of the frame has not been sent.
  std::span<const char> left() const { return std::span(frame_).subspan(sent_); }
  void sent(std::size_t bytes) { sent_ += bytes; }

 private:
  StreamKey key_;
  uint64_t frames_ = 0;
  std::vector<char> frame_;
  std::size_t sent_ = 0;
};

class SealedReceiver {
 public:
  explicit SealedReceiver(const StreamKey& key);
  // Where the next bytes of the connection belong, if take() has returned 0; never empty then.
  std::span<char> room();
  void received(std::size_t bytes) { end_ += bytes; }
  // Decrypts up to `most` bytes to `to`. Returns their number: 0 until a whole frame is here; nothing if it
  // is not authentic, after which the object must not be used.
  std::optional<std::size_t> take(char* to, std::size_t most);

 private:
  bool open(char* to, const char* frame, std::size_t payload);

  StreamKey key_;
  uint64_t frames_ = 0;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // received, and not decrypted
  std::vector<char> payload_;        // of the last frame,
  std::size_t taken_ = 0;            // of which this was taken
};

}  // namespace sailor
