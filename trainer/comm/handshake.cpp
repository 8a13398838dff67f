#include "trainer/comm/handshake.h"

#include <sodium.h>

#include <cstring>
#include <stdexcept>

namespace sailor {
namespace {

constexpr char kMagic[8] = {'S', 'A', 'I', 'L', 'O', 'R', '\x01', '\n'};

void require_sodium() {
  if (sodium_init() < 0) throw std::runtime_error("libsodium cannot start: no source of random numbers");
}

template <class T>
void append(std::string& out, T value) {  // little-endian, as every machine we run on
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(const char*& at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

std::string text_of(const Nonce& nonce) {
  return {nonce.begin(), nonce.end()};
}

Proof prove(const JobSecret& secret, const std::string& role, const std::string& bytes) {
  Proof proof;
  const std::string message = role + bytes;
  crypto_generichash(proof.data(), proof.size(), reinterpret_cast<const unsigned char*>(message.data()),
                     message.size(), secret.data(), secret.size());
  return proof;
}

bool same(const Proof& proof, const char* bytes) {
  return sodium_memcmp(proof.data(), bytes, proof.size()) == 0;
}

}  // namespace

JobSecret make_job_secret() {
  require_sodium();
  JobSecret secret;
  randombytes_buf(secret.data(), secret.size());
  return secret;
}

Nonce make_nonce() {
  require_sodium();
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::string make_challenge(const Nonce& acceptor) {
  return std::string(kMagic, sizeof kMagic) + text_of(acceptor);
}

std::optional<Nonce> read_challenge(const std::string& bytes) {
  if (bytes.size() != kChallengeBytes || bytes.compare(0, sizeof kMagic, kMagic, sizeof kMagic) != 0)
    return std::nullopt;
  Nonce nonce;
  std::memcpy(nonce.data(), bytes.data() + sizeof kMagic, nonce.size());
  return nonce;
}

std::string make_hello(const JobSecret& secret, const Introduction& who, const Nonce& acceptor,
                       const Nonce& connector) {
  if (who.scope.size() > kMaxNameBytes || who.communicator.size() > kMaxNameBytes) {
    throw std::logic_error("communicator " + who.communicator + ": name too long");
  }
  std::string hello(kMagic, sizeof kMagic);
  append(hello, static_cast<uint32_t>(who.from));
  append(hello, static_cast<uint32_t>(who.to));
  append(hello, static_cast<uint16_t>(who.scope.size()));
  append(hello, static_cast<uint16_t>(who.communicator.size()));
  hello += text_of(connector) + who.scope + who.communicator;
  const Proof proof = prove(secret, "hello", text_of(acceptor) + hello);
  return hello + std::string(proof.begin(), proof.end());
}

std::optional<std::size_t> hello_size(const std::string& head) {
  if (head.compare(0, sizeof kMagic, kMagic, sizeof kMagic) != 0) return std::nullopt;
  const char* at = head.data() + sizeof kMagic + 8;
  const std::size_t scope = take<uint16_t>(at);
  const std::size_t name = take<uint16_t>(at);
  if (scope > kMaxNameBytes || name > kMaxNameBytes) return std::nullopt;
  return kHelloHeadBytes + scope + name + sizeof(Proof);
}

std::optional<ReceivedHello> read_hello(const JobSecret& secret, const std::string& bytes,
                                        const Nonce& acceptor) {
  const std::size_t signed_bytes = bytes.size() - sizeof(Proof);
  const Proof proof = prove(secret, "hello", text_of(acceptor) + bytes.substr(0, signed_bytes));
  if (!same(proof, bytes.data() + signed_bytes)) return std::nullopt;
  ReceivedHello hello;
  const char* at = bytes.data() + sizeof kMagic;
  hello.who.from = static_cast<int>(take<uint32_t>(at));
  hello.who.to = static_cast<int>(take<uint32_t>(at));
  const std::size_t scope = take<uint16_t>(at);
  const std::size_t name = take<uint16_t>(at);
  hello.connector = take<Nonce>(at);
  hello.who.scope.assign(at, scope);
  hello.who.communicator.assign(at + scope, name);
  return hello;
}

std::string make_welcome(const JobSecret& secret, const Nonce& acceptor, const Nonce& connector) {
  const Proof proof = prove(secret, "welcome", text_of(connector) + text_of(acceptor));
  return {proof.begin(), proof.end()};
}

bool check_welcome(const JobSecret& secret, const std::string& bytes, const Nonce& acceptor,
                   const Nonce& connector) {
  return bytes.size() == kWelcomeBytes &&
         same(prove(secret, "welcome", text_of(connector) + text_of(acceptor)), bytes.data());
}

StreamKeys derive_keys(const JobSecret& secret, const Nonce& acceptor, const Nonce& connector) {
  const std::string both = text_of(connector) + text_of(acceptor);
  return {prove(secret, "to acceptor", both), prove(secret, "to connector", both)};
}

}  // namespace sailor
