// Somebody who has no business with a training job: knocks at its ports without a key, sends garbage and
// messages larger than any, and sends again what was recorded of a real connection. Prints what came back.
//
//     stranger keyless ADDRESS          control messages over ZeroMQ, without a key and with one of its own
//     stranger garbage ADDRESS SECONDS  random bytes in many connections
//     stranger oversized ADDRESS        the beginnings of the largest messages that the protocols can
//                                       announce
//     stranger record ADDRESS FILE SECONDS
//                                       what others send there over the loopback device (needs root)
//     stranger replay ADDRESS FILE      the recorded connections again, byte for byte
// ADDRESS is HOST:PORT, IPv4. Each prints one line: bytes or messages that it got of the port, `none` or more
// than the protocol's greeting.
#include <arpa/inet.h>
#include <linux/filter.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "planner/process/file_descriptor.h"

namespace {

using sailor::FileDescriptor;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

sockaddr_in parse(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const size_t colon = text.find(':');
  if (colon == std::string::npos || inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1)
    throw std::runtime_error(text + ": not HOST:PORT");
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(text.substr(colon + 1))));
  return address;
}

FileDescriptor connect_to(const sockaddr_in& address) {
  FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("connect");
  return fd;
}

// As much of the bytes as the other side takes; whether that is all of them.
bool send_all(const FileDescriptor& fd, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = send(fd.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

// Bytes that arrive until the other side closes or is silent for a second.
size_t received(const FileDescriptor& fd) {
  size_t bytes = 0;
  char buffer[4096];
  pollfd waiting{fd.get(), POLLIN, 0};
  while (poll(&waiting, 1, 1000) > 0) {
    const ssize_t n = recv(fd.get(), buffer, sizeof buffer, 0);
    if (n <= 0) break;
    bytes += static_cast<size_t>(n);
  }
  return bytes;
}

// A greeting tells nothing of the job: 40 bytes of a rank, 64 of ZeroMQ and at most one more command, in
// which the server says that it goes no further.
void report(size_t most_bytes) {
  constexpr size_t kGreeting = 256;
  std::printf("%s, at most %zu bytes per connection\n", most_bytes > kGreeting ? "got an answer" : "none",
              most_bytes);
}

int keyless(const std::string& address) {
  zmq::context_t context(1);
  size_t messages = 0;
  for (const bool with_key : {false, true}) {
    zmq::socket_t dealer(context, zmq::socket_type::dealer);
    dealer.set(zmq::sockopt::linger, 0);
    if (with_key) {
      char server[41], server_secret[41], own[41], secret[41];
      zmq_curve_keypair(server, server_secret);
      zmq_curve_keypair(own, secret);
      dealer.set(zmq::sockopt::curve_serverkey, std::string(server));
      dealer.set(zmq::sockopt::curve_publickey, std::string(own));
      dealer.set(zmq::sockopt::curve_secretkey, std::string(secret));
    }
    dealer.connect("tcp://" + address);
    for (const char* text : {R"(1 {"type":"hello","role":"rank","rank":0,"node":"a1","host":"h","pid":1})",
                             R"(2 {"type":"stop","exit_code":1,"text":"go"})", "3 x"})
      dealer.send(zmq::buffer(std::string(text)), zmq::send_flags::dontwait);
    dealer.set(zmq::sockopt::rcvtimeo, 3000);
    zmq::message_t message;
    while (dealer.recv(message)) ++messages;
  }
  std::printf("%s\n", messages > 0 ? "got an answer" : "none");
  return messages > 0;
}

int garbage(const sockaddr_in& address, double seconds) {
  std::mt19937 random(7);
  std::vector<FileDescriptor> left_open;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  size_t most = 0, connections = 0;
  while (Clock::now() < end) {
    FileDescriptor fd = connect_to(address);
    std::string bytes(random() % 4 == 0 ? 60000 : random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (random() % 4 == 0) bytes = "GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes;
    if (random() % 4 == 0)
      bytes = std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x03", 11) + bytes;  // as ZeroMQ begins
    send_all(fd, bytes);
    if (++connections % 20 == 0) most = std::max(most, received(fd));
    if (left_open.size() < 100) left_open.push_back(std::move(fd));
  }
  std::printf("%zu connections; ", connections);
  report(most);
  return 0;
}

int oversized(const sockaddr_in& address) {
  const std::string flood(size_t{64} << 20, '\xff');
  size_t most = 0;
  // A rank's hello with the longest names that its head can announce.
  const std::string rank_hello = std::string("SAILOR\x01\n", 8) + flood;
  // ZeroMQ's greeting (CURVE, as a client), then a command, and a message, of 2^63 - 1 bytes.
  std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\x00", 12);
  greeting += std::string("CURVE") + std::string(15, '\0') + std::string(1, '\0') + std::string(31, '\0');
  const std::string size("\x7f\xff\xff\xff\xff\xff\xff\xff", 8);
  for (const std::string& bytes :
       {rank_hello, greeting + "\x06" + size + flood, greeting + "\x02" + size + flood}) {
    const FileDescriptor fd = connect_to(address);
    send_all(fd, bytes);
    most = std::max(most, received(fd));
  }
  report(most);
  return 0;
}

// Lets only TCP packets to `port` into the buffer of a packet socket, which the traffic of a training job
// would overflow: a connection whose first data is lost is not recorded.
void keep_only(const FileDescriptor& fd, uint16_t port) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(iphdr, protocol)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 4),
      BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),  // length of the IP header
      BPF_STMT(BPF_LD | BPF_H | BPF_IND, offsetof(tcphdr, dest)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
      BPF_STMT(BPF_RET | BPF_K, 0),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  if (setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) fail("filter");
}

// Payload by connection, in the order of arrival; each packet is seen twice on the loopback device, so
// sequence numbers say what is new. SIGTERM ends it before its time.
int record(const sockaddr_in& address, const std::string& file, double seconds) {
  const FileDescriptor fd(socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP)));
  if (!fd.valid()) fail("packet socket");
  keep_only(fd, ntohs(address.sin_port));
  sockaddr_ll device{};
  device.sll_family = AF_PACKET;
  device.sll_protocol = htons(ETH_P_IP);
  device.sll_ifindex = static_cast<int>(if_nametoindex("lo"));
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&device), sizeof device) != 0) fail("bind to lo");
  struct Stream {
    uint32_t next = 0;
    std::string bytes{};
  };
  std::map<int, Stream> streams;  // by source port; those whose beginning was seen
  std::vector<char> packet(1 << 17);
  static volatile std::sig_atomic_t stopped = 0;
  std::signal(SIGTERM, [](int) { stopped = 1; });
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < end && !stopped) {
    pollfd waiting{fd.get(), POLLIN, 0};
    if (poll(&waiting, 1, 100) <= 0) continue;
    const ssize_t got = recv(fd.get(), packet.data(), packet.size(), 0);
    iphdr ip{};
    tcphdr tcp{};
    if (got < static_cast<ssize_t>(sizeof ip)) continue;
    std::memcpy(&ip, packet.data(), sizeof ip);
    const size_t tcp_at = ip.ihl * 4u;
    const size_t length = std::min<size_t>(static_cast<size_t>(got), ntohs(ip.tot_len));
    if (ip.protocol != IPPROTO_TCP || tcp_at + sizeof tcp > length) continue;
    std::memcpy(&tcp, packet.data() + tcp_at, sizeof tcp);
    const size_t data_at = tcp_at + tcp.doff * 4u;
    if (tcp.dest != address.sin_port || ip.daddr != address.sin_addr.s_addr || data_at > length) continue;
    const int source = ntohs(tcp.source);
    if (tcp.syn) streams[source] = {ntohl(tcp.seq) + 1};
    auto stream = streams.find(source);
    if (stream == streams.end() || data_at == length || ntohl(tcp.seq) != stream->second.next) continue;
    if (stream->second.bytes.size() > (1 << 20)) continue;
    stream->second.bytes.append(packet.data() + data_at, length - data_at);
    stream->second.next += static_cast<uint32_t>(length - data_at);
  }
  std::ofstream out(file, std::ios::binary);
  size_t connections = 0;
  for (const auto& [source, stream] : streams) {
    if (stream.bytes.empty()) continue;
    out << stream.bytes.size() << '\n' << stream.bytes;
    ++connections;
  }
  std::printf("%zu connections\n", connections);
  return connections == 0;
}

int replay(const sockaddr_in& address, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  size_t most = 0, connections = 0;
  for (size_t size; in >> size; ++connections) {
    in.get();
    std::string bytes(size, '\0');
    in.read(bytes.data(), static_cast<std::streamsize>(size));
    const FileDescriptor fd = connect_to(address);
    // In pieces, as the other side would have answered in between.
    for (size_t at = 0; at < bytes.size() && send_all(fd, bytes.substr(at, 400)); at += 400) usleep(5000);
    most = std::max(most, received(fd));
  }
  std::printf("%zu connections; ", connections);
  report(most);
  return connections == 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 2) throw std::runtime_error("what, and which address?");
  if (words[0] == "keyless") return keyless(words[1]);
  const sockaddr_in address = parse(words[1]);
  if (words[0] == "oversized") return oversized(address);
  if (words.size() < 3) throw std::runtime_error("an argument is missing");
  if (words[0] == "garbage") return garbage(address, std::stod(words[2]));
  if (words[0] == "replay") return replay(address, words[2]);
  if (words[0] == "record" && words.size() > 3) return record(address, words[2], std::stod(words[3]));
  throw std::runtime_error(words[0] + ": nothing that a stranger does");
} catch (const std::exception& error) {
  std::fprintf(stderr, "stranger: %s\n", error.what());
  return 2;
}
