#include "trainer/comm/socket_listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kHandshakeTime = std::chrono::seconds(10);
constexpr auto kPatience = std::chrono::seconds(1);  // with a connection, while others wait for its place
constexpr std::size_t kMaxStrangers = 256;

}  // namespace

WakeUp::WakeUp() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!fd_.valid()) throw std::runtime_error(fmt::format("eventfd: {}", std::strerror(errno)));
}

void WakeUp::wake() noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

void WakeUp::drain() noexcept {
  uint64_t count;
  [[maybe_unused]] const auto got = ::read(fd_.get(), &count, sizeof count);
}

struct Listener::State::Stranger {
  FileDescriptor fd;
  in_addr_t source;
  Nonce nonce;
  Clock::time_point accepted = Clock::now();
  std::string received{};
  std::size_t wanted = kHelloHeadBytes;
};

Listener::State::State(const std::string& address)
    : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in bound{};
  bound.sin_family = AF_INET;
  bound.sin_addr.s_addr = htonl(INADDR_ANY);
  if (!address.empty() && ::inet_pton(AF_INET, address.c_str(), &bound.sin_addr) != 1) {
    throw std::runtime_error("listener: not an IPv4 address: " + address);
  }
  socklen_t length = sizeof bound;
  auto* generic = reinterpret_cast<sockaddr*>(&bound);
  if (!listening_.valid() || ::bind(listening_.get(), generic, length) != 0 ||
      ::listen(listening_.get(), 1024) != 0 || ::getsockname(listening_.get(), generic, &length) != 0) {
    throw std::runtime_error(fmt::format("listener: cannot listen on {}: {}",
                                         address.empty() ? "any address" : address, std::strerror(errno)));
  }
  port = ntohs(bound.sin_port);
}

Listener::State::~State() {
  stopping_ = true;
  stop_.wake();
  if (thread_.joinable()) thread_.join();
}

void Listener::State::start(const JobSecret& secret) {
  if (thread_.joinable()) throw std::logic_error("Listener::start: called twice");
  secret_ = secret;
  make_nonce();  // libsodium starts here, in a thread that can throw
  thread_ = std::thread([this] { run(); });
}

void Listener::State::run() {
  std::vector<pollfd> polled;
  while (!stopping_) {
    polled.clear();
    polled.push_back({stop_.fd(), POLLIN, 0});
    polled.push_back({listening_.get(), static_cast<short>(has_place() ? POLLIN : 0), 0});
    for (const Stranger& stranger : strangers_) polled.push_back({stranger.fd.get(), POLLIN, 0});
    const int timeout_ms = strangers_.empty() ? -1 : 500;
    if (::poll(polled.data(), polled.size(), timeout_ms) < 0 && errno != EINTR) return;

    std::size_t index = 2;
    for (auto it = strangers_.begin(); it != strangers_.end(); ++index) {
      const bool readable = polled[index].revents != 0;
      const bool keep = (!readable || advance(*it)) && Clock::now() < it->accepted + kHandshakeTime;
      it = keep ? std::next(it) : strangers_.erase(it);
    }
    if (polled[1].revents & POLLIN) admit();
  }
}

bool Listener::State::has_place() const {
  return strangers_.size() < kMaxStrangers || replaceable() != strangers_.end();
}

std::list<Listener::State::Stranger>::const_iterator Listener::State::replaceable() const {
  std::map<in_addr_t, std::size_t> by_source;
  for (const Stranger& stranger : strangers_) ++by_source[stranger.source];
  const auto most = std::max_element(by_source.begin(), by_source.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto oldest = std::find_if(strangers_.begin(), strangers_.end(),
                                   [&](const Stranger& stranger) { return stranger.source == most->first; });
  const bool had_time = oldest != strangers_.end() && Clock::now() >= oldest->accepted + kPatience;
  return had_time ? oldest : strangers_.end();
}

void Listener::State::admit() {
  while (has_place()) {
    sockaddr_in source{};
    socklen_t length = sizeof source;
    FileDescriptor fd(::accept4(listening_.get(), reinterpret_cast<sockaddr*>(&source), &length,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      // Out of descriptors: let handshakes end rather than spin on a queue that stays readable.
      if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return;
    }
    if (strangers_.size() >= kMaxStrangers) strangers_.erase(replaceable());
    Stranger stranger{.fd = std::move(fd), .source = source.sin_addr.s_addr, .nonce = make_nonce()};
    const std::string challenge = make_challenge(stranger.nonce);
    const auto sent = ::send(stranger.fd.get(), challenge.data(), challenge.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(challenge.size())) strangers_.push_back(std::move(stranger));
  }
}

bool Listener::State::advance(Stranger& stranger) {
  char buffer[2048];
  while (stranger.received.size() < stranger.wanted) {
    const std::size_t missing = std::min(sizeof buffer, stranger.wanted - stranger.received.size());
    const auto got = ::recv(stranger.fd.get(), buffer, missing, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    stranger.received.append(buffer, static_cast<std::size_t>(got));
    if (stranger.received.size() == kHelloHeadBytes) {
      const auto size = hello_size(stranger.received);
      if (!size) return false;
      stranger.wanted = *size;
    }
  }
  const auto hello = read_hello(secret_, stranger.received, stranger.nonce);
  if (!hello) return false;
  const std::string welcome = make_welcome(secret_, stranger.nonce, hello->connector);
  if (::send(stranger.fd.get(), welcome.data(), welcome.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(welcome.size())) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (!retired_.count(hello->who.scope))
    ready_.try_emplace(
        hello->who, Accepted{std::move(stranger.fd), derive_keys(secret_, stranger.nonce, hello->connector)});
  arrived_.notify_all();
  return false;
}

Listener::State::Accepted Listener::State::take(const Introduction& who, Clock::time_point deadline,
                                                const std::atomic<bool>& cancelled) {
  std::unique_lock lock(mutex_);
  arrived_.wait_until(lock, deadline, [&] { return cancelled || ready_.count(who); });
  const auto it = ready_.find(who);
  if (cancelled || it == ready_.end()) return {};
  Accepted accepted = std::move(it->second);
  ready_.erase(it);
  return accepted;
}

void Listener::State::nudge() {
  const std::lock_guard lock(mutex_);
  arrived_.notify_all();
}

void Listener::State::retire(const std::string& scope) {
  const std::lock_guard lock(mutex_);
  retired_.insert(scope);
  std::erase_if(ready_, [&](const auto& entry) { return entry.first.scope == scope; });
}

Listener::Listener(const std::string& address) : state_(std::make_unique<State>(address)) {}
Listener::~Listener() = default;
uint16_t Listener::port() const {
  return state_->port;
}
void Listener::start(const JobSecret& secret) {
  state_->start(secret);
}

}  // namespace sailor
