// A wire with a delay between two network namespaces, for kernels without netem: a TUN device in each, and
// this process between them, which hands every packet on when it has been under way for DELAY.
//
//     delay_relay DELAY_MS NETNS_A NETNS_B DEVICE      prints "ready", then runs until it is killed
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLargestPacket = 65536;

struct Packet {
  Clock::time_point due;
  std::vector<char> bytes;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

// A device of this name in a namespace that `ip netns add` made.
int open_device(const std::string& netns, const std::string& name) {
  const int space = open(("/run/netns/" + netns).c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail("network namespace " + netns);
  close(space);
  const int device = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (device < 0) fail("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  if (ioctl(device, TUNSETIFF, &request) != 0) fail("TUNSETIFF");
  return device;
}

void relay(int a, int b, Clock::duration delay) {
  const std::array<int, 2> devices{a, b};
  std::array<std::deque<Packet>, 2> under_way;  // by where they came from
  std::vector<char> buffer(kLargestPacket);
  while (true) {
    auto next = Clock::now() + std::chrono::seconds(1);
    for (size_t i = 0; i < 2; ++i) {
      std::deque<Packet>& queue = under_way[i];
      for (; !queue.empty() && queue.front().due <= Clock::now(); queue.pop_front()) {
        const std::vector<char>& bytes = queue.front().bytes;
        // A device that is down loses packets, as a wire does.
        [[maybe_unused]] const ssize_t written = write(devices[1 - i], bytes.data(), bytes.size());
      }
      if (!queue.empty()) next = std::min(next, queue.front().due);
    }
    const auto left =
        std::max<std::chrono::nanoseconds>(next - Clock::now(), std::chrono::nanoseconds(0)).count();
    const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    std::array<pollfd, 2> polled{{{a, POLLIN, 0}, {b, POLLIN, 0}}};
    ppoll(polled.data(), polled.size(), &timeout, nullptr);
    for (size_t i = 0; i < 2; ++i) {
      // A few at a time, so that what is due does not wait.
      for (int n = 0; n < 16; ++n) {
        const ssize_t got = read(devices[i], buffer.data(), buffer.size());
        if (got <= 0) break;
        under_way[i].push_back({Clock::now() + delay, {buffer.begin(), buffer.begin() + got}});
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: delay_relay DELAY_MS NETNS_A NETNS_B DEVICE\n");
    return 2;
  }
  try {
    const int a = open_device(argv[2], argv[4]), b = open_device(argv[3], argv[4]);
    // A wire does not wait for a processor. Without the right to it, other programs show.
    const sched_param first{.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &first);
    std::puts("ready");
    std::fflush(stdout);
    relay(a, b,
          std::chrono::duration_cast<Clock::duration>(
              std::chrono::duration<double, std::milli>(std::atof(argv[1]))));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "delay_relay: %s\n", e.what());
    return 1;
  }
}
