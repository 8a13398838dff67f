#include "trainer/launch/free_port.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "planner/process/file_descriptor.h"

namespace sailor {
namespace {

// Listens at a port that the kernel chooses.
struct Listener {
  FileDescriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port = 0;

  Listener() {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof own;
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&own), length), 0);
    EXPECT_EQ(listen(socket.get(), 1), 0);
    EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length), 0);
    port = ntohs(own.sin_port);
  }
};

TEST(FreePort, PortsAtWhichSomethingListensArePassed) {
  const Listener listener;
  const int port = free_port("127.0.0.1", listener.port);
  EXPECT_GT(port, listener.port);
  EXPECT_LT(port, listener.port + 32);
}

TEST(FreePort, AFreeOneStays) {
  int port = 0;
  {
    const Listener listener;
    port = listener.port;
  }
  EXPECT_EQ(free_port("127.0.0.1", port), port);
}

TEST(FreePort, OfAnotherNodeNothingIsKnown) {
  const Listener listener;
  EXPECT_EQ(free_port("198.51.100.1", listener.port), listener.port);
  EXPECT_EQ(free_port("no.such.host.invalid", listener.port), listener.port);
}

}  // namespace
}  // namespace sailor
