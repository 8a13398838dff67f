#include "trainer/comm/sealed_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

namespace sailor {
namespace {

StreamKey key_of(unsigned char byte) {
  StreamKey key;
  key.fill(byte);
  return key;
}

std::string random_text(std::size_t bytes, std::mt19937& random) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::string frame_of(SealedSender& sender, const std::string& payload) {
  sender.seal(payload.data(), payload.size());
  std::string frame(sender.left().begin(), sender.left().end());
  sender.sent(frame.size());
  return frame;
}

void put(SealedReceiver& receiver, const std::string& bytes) {
  const std::span<char> room = receiver.room();
  ASSERT_GE(room.size(), bytes.size());
  std::memcpy(room.data(), bytes.data(), bytes.size());
  receiver.received(bytes.size());
}

// Nothing if a frame is not authentic.
std::optional<std::string> opened(SealedReceiver& receiver, const std::string& bytes) {
  put(receiver, bytes);
  std::string text(kMostFramePayload, '\0');
  const auto taken = receiver.take(text.data(), text.size());
  if (!taken) return std::nullopt;
  text.resize(*taken);
  return text;
}

// Bytes arrive in any pieces, and are taken in others.
TEST(SealedStream, BytesArriveInOrderHoweverTheyAreDivided) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    const std::string text = random_text(random() % 300'000, random);
    SealedSender sender(key_of(1));
    SealedReceiver receiver(key_of(1));
    std::string wire;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t bytes = std::min<std::size_t>(1 + random() % kMostFramePayload, text.size() - at);
      wire += frame_of(sender, text.substr(at, bytes));
      at += bytes;
    }
    std::string got;
    std::size_t at = 0;
    while (got.size() < text.size()) {
      char buffer[100'000];
      const auto taken =
          receiver.take(buffer, std::min(1 + random() % sizeof buffer, text.size() - got.size()));
      ASSERT_TRUE(taken);
      got.append(buffer, *taken);
      if (*taken > 0) continue;
      const std::span<char> room = receiver.room();
      ASSERT_FALSE(room.empty());
      const std::size_t bytes = std::min({room.size(), 1 + random() % 50'000, wire.size() - at});
      ASSERT_GT(bytes, 0u) << "all was received";
      std::memcpy(room.data(), wire.data() + at, bytes);
      receiver.received(bytes);
      at += bytes;
    }
    EXPECT_EQ(got, text);
    EXPECT_EQ(at, wire.size());
  }
}

TEST(SealedStream, HidesWhatIsSent) {
  SealedSender sender(key_of(1));
  const std::string text(1000, 'a');
  const std::string first = frame_of(sender, text), second = frame_of(sender, text);
  EXPECT_EQ(first.find("aaaa"), std::string::npos);
  EXPECT_NE(first, second) << "equal payloads look different";
}

TEST(SealedStream, EveryChangedByteIsNoticed) {
  std::mt19937 random(3);
  SealedSender sender(key_of(1));
  const std::string frame = frame_of(sender, random_text(60, random));
  for (std::size_t i = 0; i < frame.size(); ++i) {
    std::string changed = frame;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    SealedReceiver receiver(key_of(1));
    // A frame that seems to be longer waits for the rest, and is refused with it.
    const auto text = opened(receiver, changed);
    if (text && text->empty()) {
      put(receiver, std::string(2000, 'x'));
      char buffer[200];
      EXPECT_FALSE(receiver.take(buffer, sizeof buffer)) << "byte " << i;
    } else {
      EXPECT_FALSE(text) << "byte " << i;
    }
  }
}

TEST(SealedStream, FramesOfOtherPlacesAreRefused) {
  SealedSender sender(key_of(1)), other(key_of(2));
  const std::string first = frame_of(sender, "first"), second = frame_of(sender, "second");
  SealedReceiver repeated(key_of(1));
  EXPECT_EQ(opened(repeated, first), "first");
  EXPECT_FALSE(opened(repeated, first)) << "repeated";
  SealedReceiver without_first(key_of(1));
  EXPECT_FALSE(opened(without_first, second)) << "one was left out";
  SealedReceiver of_another_stream(key_of(1));
  EXPECT_FALSE(opened(of_another_stream, frame_of(other, "first"))) << "from another stream";
}

TEST(SealedStream, AbsurdLengthsAreRefused) {
  for (const std::string& length : {std::string("\0\0\0\0", 4), std::string("\xff\xff\xff\xff", 4)}) {
    SealedReceiver receiver(key_of(1));
    EXPECT_FALSE(opened(receiver, length + "data"));
  }
}

}  // namespace
}  // namespace sailor
