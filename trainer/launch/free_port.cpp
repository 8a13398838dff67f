#include "trainer/launch/free_port.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "planner/process/file_descriptor.h"

namespace sailor {
namespace {

using Found = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Found find(const char* address, int family, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(address, std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

// 0, or the error of bind(). As programs do: connections that have ended do not count.
int bind_error(const Found& to) {
  const FileDescriptor socket(::socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return bind(socket.get(), to->ai_addr, to->ai_addrlen) == 0 ? 0 : errno;
}

}  // namespace

int free_port(const std::string& address, int port) {
  constexpr int kMost = 32;
  const Found own = find(address.c_str(), AF_UNSPEC, 0, 0);
  if (!own || bind_error(own) != 0) return port;
  for (int next = port; next < port + kMost; ++next) {
    const Found all = find(nullptr, own->ai_family, next, AI_PASSIVE);
    if (all && bind_error(all) == 0) return next;
  }
  return port;
}

}  // namespace sailor
