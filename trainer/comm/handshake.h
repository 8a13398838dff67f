// How two ranks authenticate at the start of a TCP connection. The acceptor speaks first:
//
//     acceptor   challenge: magic, 32 random bytes
//     connector  hello: magic, source, destination, scope, communicator, 32 random bytes, proof over all
//                of it and the challenge
//     acceptor   welcome: proof over both random numbers
//
// A proof is a BLAKE2b of these bytes keyed with the job's secret, compared in constant time. Nothing from a
// peer is used before its proof was checked, except the lengths, which are bounded. Pure except for the
// random numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "trainer/comm/sealed_stream.h"
#include "trainer/comm/socket_plane.h"

namespace sailor {

using Nonce = std::array<unsigned char, 32>;
using Proof = std::array<unsigned char, 32>;

// The purpose of a connection.
struct Introduction {
  std::string scope;
  std::string communicator;
  int from = 0;  // ranks within the communicator
  int to = 0;

  auto operator<=>(const Introduction&) const = default;
};

constexpr std::size_t kChallengeBytes = 8 + 32;
constexpr std::size_t kHelloHeadBytes = 8 + 4 + 4 + 2 + 2 + 32;
constexpr std::size_t kMaxNameBytes = 512;
constexpr std::size_t kWelcomeBytes = 32;

Nonce make_nonce();
std::string make_challenge(const Nonce& acceptor);
std::optional<Nonce> read_challenge(const std::string& bytes);

std::string make_hello(const JobSecret& secret, const Introduction& who, const Nonce& acceptor,
                       const Nonce& connector);
// Size of the whole hello according to its head; nullopt if the head is invalid. Requires kHelloHeadBytes
// bytes.
std::optional<std::size_t> hello_size(const std::string& head);
struct ReceivedHello {
  Introduction who;
  Nonce connector;
};
// nullopt unless the proof is right. Requires hello_size() bytes.
std::optional<ReceivedHello> read_hello(const JobSecret& secret, const std::string& bytes,
                                        const Nonce& acceptor);

std::string make_welcome(const JobSecret& secret, const Nonce& acceptor, const Nonce& connector);
bool check_welcome(const JobSecret& secret, const std::string& bytes, const Nonce& acceptor,
                   const Nonce& connector);

// What both sides of a connection know after the handshake, and nobody else.
struct StreamKeys {
  StreamKey to_acceptor, to_connector;
};
StreamKeys derive_keys(const JobSecret& secret, const Nonce& acceptor, const Nonce& connector);

}  // namespace sailor
