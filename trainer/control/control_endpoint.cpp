#include "trainer/control/control_endpoint.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace sailor {
namespace {

constexpr const char* kAddresses = "SAILOR_CONTROL_ADDRESSES";
constexpr const char* kPort = "SAILOR_CONTROL_PORT";
constexpr const char* kServerKey = "SAILOR_CONTROL_SERVER_KEY";
constexpr const char* kClientPublicKey = "SAILOR_CONTROL_CLIENT_PUBLIC";
constexpr const char* kLease = "SAILOR_CONTROL_LEASE_S";

std::string required_variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value)
    throw std::runtime_error(
        fmt::format("environment variable {} is not set: this program is started by sailor run", name));
  return value;
}

std::string address_text(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// The local address of a connection to the given address, or nothing if there is no answer in time.
std::optional<std::string> local_address_towards(const std::string& address, int port, int timeout_ms) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in remote{};
  remote.sin_family = AF_INET;
  remote.sin_port = htons(static_cast<uint16_t>(port));
  if (socket.get() < 0 || inet_pton(AF_INET, address.c_str(), &remote.sin_addr) != 1) return std::nullopt;
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&remote), sizeof remote) != 0) {
    if (errno != EINPROGRESS) return std::nullopt;
    pollfd ready{socket.get(), POLLOUT, 0};
    if (poll(&ready, 1, timeout_ms) != 1) return std::nullopt;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return std::nullopt;
  }
  sockaddr_in local{};
  socklen_t size = sizeof local;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &size) != 0) return std::nullopt;
  return address_text(local);
}

}  // namespace

CurveKeys make_curve_keys() {
  std::array<char, 41> public_key{}, secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
    throw std::runtime_error(fmt::format("control channel: cannot make keys: {}", zmq_strerror(zmq_errno())));
  return {public_key.data(), secret_key.data()};
}

std::map<std::string, std::string> ControlEndpoint::to_environment() const {
  return {{kAddresses, fmt::format("{}", fmt::join(addresses, ","))},
          {kPort, std::to_string(port)},
          {kServerKey, server_public_key},
          {kClientPublicKey, client.public_key},
          {kLease, fmt::format("{}", lease_s)}};
}

ControlEndpoint ControlEndpoint::from_environment(std::string client_secret_key) {
  ControlEndpoint endpoint;
  std::istringstream list(required_variable(kAddresses));
  for (std::string address; std::getline(list, address, ',');) endpoint.addresses.push_back(address);
  endpoint.port = std::atoi(required_variable(kPort).c_str());
  endpoint.server_public_key = required_variable(kServerKey);
  endpoint.client = {required_variable(kClientPublicKey), std::move(client_secret_key)};
  endpoint.lease_s = std::atof(required_variable(kLease).c_str());
  return endpoint;
}

std::vector<std::string> local_ipv4_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0)
    throw std::runtime_error(fmt::format("cannot list network interfaces: {}", std::strerror(errno)));
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> guard(first, freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* i = first; i; i = i->ifa_next) {
    const bool usable = i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP);
    if (!usable || (i->ifa_flags & IFF_LOOPBACK)) continue;
    addresses.push_back(address_text(*reinterpret_cast<const sockaddr_in*>(i->ifa_addr)));
  }
  if (addresses.empty()) addresses.push_back("127.0.0.1");
  return addresses;
}

ControlRoute find_control_route(const ControlEndpoint& endpoint, double timeout_s) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  do {
    for (const std::string& address : endpoint.addresses) {
      if (auto local = local_address_towards(address, endpoint.port, 1000)) return {address, *local};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (Clock::now() < deadline);
  throw std::runtime_error(fmt::format("the controller does not answer on port {} of {} within {:.0f} s",
                                       endpoint.port, fmt::join(endpoint.addresses, ", "), timeout_s));
}

}  // namespace sailor
