#include "trainer/control/control_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <zmq.hpp>

#include "planner/process/seconds_since.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kZapDomain = "sailor";
constexpr const char* kMonitor = "inproc://connections";
constexpr int64_t kMostMessageBytes = int64_t{16} << 20;
// Shares of a lease's duration: the time after which a connection ends whose other side acknowledges nothing,
// and the time that a peer without a connection may not answer, in which others can tell how it ended.
constexpr double kUnacknowledged = 0.3, kClosed = 0.25;
constexpr double kMost_ms = 3600e3;  // of the former: ZeroMQ takes an int

std::string z85(const zmq::message_t& key) {
  if (key.size() != 32) return {};
  char text[41];
  return zmq_z85_encode(text, static_cast<const uint8_t*>(key.data()), 32) ? text : std::string();
}

}  // namespace

struct ControlServer::State {
  Options options;
  ControlEndpoint endpoint;
  int generation = 1;
  zmq::context_t context{1};
  zmq::socket_t gate{context, zmq::socket_type::rep};  // ZeroMQ's authentication requests for client keys
  zmq::socket_t router{context, zmq::socket_type::router};
  zmq::socket_t monitor{context, zmq::socket_type::pair};  // ZeroMQ's reports of ended connections
  struct Peer {
    Clock::time_point heard;
    std::optional<Clock::time_point> unanswered;  // time of the first unanswered lease
    double in_step_s = 0;                         // in the current generation
    int generation = 0;
    bool connected = true;
  };
  std::map<std::string, Peer> peers;
  std::map<int, std::string> of_descriptor;    // peers, by the descriptor of their connection
  std::map<std::string, int64_t> last_number;  // of messages, by connection
  std::set<std::string> banned;
  std::vector<Dropped> dropped;
  Clock::time_point next_lease = Clock::now();

  // Answers one authentication request (ZeroMQ RFC 27).
  void answer_gate() {
    std::vector<zmq::message_t> frames;
    do {
      frames.emplace_back();
      if (!gate.recv(frames.back(), zmq::recv_flags::dontwait)) return;
    } while (frames.back().more());
    if (frames.size() < 2) return;
    const bool welcome = frames.size() == 7 && frames[5].to_string_view() == "CURVE" &&
                         z85(frames[6]) == endpoint.client.public_key;
    const std::string reply[] = {
        "1.0", frames[1].to_string(), welcome ? "200" : "400", welcome ? "OK" : "unknown client key", "", ""};
    for (int i = 0; i < 6; ++i)
      gate.send(zmq::buffer(reply[i]), i < 5 ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }

  void send(const std::string& peer, const std::string& text) {
    // A full queue means that the peer does not read: its lease expires, as intended.
    if (router.send(zmq::buffer(peer), zmq::send_flags::sndmore | zmq::send_flags::dontwait))
      router.send(zmq::buffer(text), zmq::send_flags::dontwait);
  }

  // "NUMBER JSON": numbers increase, so that replays are detected.
  ControlMessage read(const std::string& peer, const std::string& text) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) throw std::runtime_error("a message without a number");
    int64_t& last = last_number[peer];
    if (number <= last)
      throw std::runtime_error(fmt::format("message {} after message {}: a replay", number, last));
    last = number;
    return parse_control_message(std::string(end, text.data() + text.size()));
  }

  // Marks peers whose connections have ended. An event is its number (2 B), then the descriptor (4 B).
  void receive_ends() {
    zmq::message_t event, address;
    while (monitor.recv(event, zmq::recv_flags::dontwait) && monitor.recv(address)) {
      int32_t descriptor = -1;
      std::memcpy(&descriptor, event.data<char>() + sizeof(uint16_t), sizeof descriptor);
      const auto of = of_descriptor.extract(descriptor);
      if (of.empty()) continue;
      if (const auto peer = peers.find(of.mapped()); peer != peers.end()) peer->second.connected = false;
    }
  }

  void hear(const std::string& peer, int descriptor, ControlMessage message, std::vector<Received>& out) {
    const bool hello = std::holds_alternative<Hello>(message);
    if (!hello && !peers.contains(peer)) return;
    if (hello && peers.contains(peer)) throw std::runtime_error("a second hello");
    Peer& known = peers[peer];
    known.heard = Clock::now();
    if (hello) {
      known.unanswered = Clock::now();
      receive_ends();  // of connections that had the descriptor before
      of_descriptor[descriptor] = peer;
      send(peer, to_json(Lease{generation, options.lease_s}));
    } else if (const Alive* alive = std::get_if<Alive>(&message)) {
      known.unanswered.reset();
      known.in_step_s = alive->in_step_s;
      known.generation = alive->generation;
      return;
    }
    out.push_back({peer, std::move(message)});
  }

  void receive_into(std::vector<Received>& out) {
    zmq::message_t frame;
    while (router.recv(frame, zmq::recv_flags::dontwait)) {
      const std::string peer = frame.to_string();
      std::vector<std::string> parts;
      while (frame.more() && router.recv(frame)) parts.push_back(frame.to_string());
      if (banned.contains(peer)) continue;
      try {
        if (parts.size() != 1) throw std::runtime_error(fmt::format("a message of {} parts", parts.size()));
        hear(peer, frame.get(ZMQ_SRCFD), read(peer, parts.front()), out);
      } catch (const std::exception& e) {
        dropped.push_back({peer, e.what()});
        drop(peer);
      }
    }
  }

  void drop(const std::string& peer) {
    banned.insert(peer);
    peers.erase(peer);
    last_number.erase(peer);
  }
};

ControlServer::ControlServer() : ControlServer(Options()) {}

ControlServer::ControlServer(Options options) try : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.options = std::move(options);
  const CurveKeys server = make_curve_keys();
  s.endpoint.server_public_key = server.public_key;
  s.endpoint.client = make_curve_keys();
  s.endpoint.lease_s = s.options.lease_s;
  s.gate.set(zmq::sockopt::linger, 0);
  s.gate.bind("inproc://zeromq.zap.01");
  s.router.set(zmq::sockopt::linger, 500);
  s.router.set(zmq::sockopt::maxmsgsize, kMostMessageBytes);
  s.router.set(zmq::sockopt::curve_server, true);
  s.router.set(zmq::sockopt::curve_secretkey, server.secret_key);
  s.router.set(zmq::sockopt::zap_domain, std::string(kZapDomain));
  s.router.set(zmq::sockopt::tcp_maxrt,
               static_cast<int>(std::min(1000 * kUnacknowledged * s.options.lease_s, kMost_ms)));
  if (zmq_socket_monitor(s.router.handle(), kMonitor, ZMQ_EVENT_DISCONNECTED) != 0) throw zmq::error_t();
  s.monitor.connect(kMonitor);
  s.router.bind(fmt::format("tcp://{}:*", s.options.bind_address));
  const std::string bound = s.router.get(zmq::sockopt::last_endpoint);
  s.endpoint.port = std::stoi(bound.substr(bound.rfind(':') + 1));
  s.endpoint.addresses = s.options.bind_address == "*" ? local_ipv4_addresses()
                                                       : std::vector<std::string>{s.options.bind_address};
} catch (const zmq::error_t& e) {
  throw std::runtime_error(fmt::format("control channel: cannot listen: {}", e.what()));
}

ControlServer::~ControlServer() = default;

const ControlEndpoint& ControlServer::endpoint() const {
  return state_->endpoint;
}
void ControlServer::set_generation(int generation) {
  state_->generation = generation;
}
int ControlServer::num_peers() const {
  return static_cast<int>(state_->peers.size());
}

std::vector<ControlServer::Received> ControlServer::poll(std::chrono::milliseconds timeout,
                                                         std::span<const int> wake_descriptors) {
  State& s = *state_;
  std::vector<zmq::pollitem_t> items = {{s.router.handle(), 0, ZMQ_POLLIN, 0},
                                        {s.gate.handle(), 0, ZMQ_POLLIN, 0},
                                        {s.monitor.handle(), 0, ZMQ_POLLIN, 0}};
  const size_t own = items.size();
  for (int fd : wake_descriptors) items.push_back({nullptr, fd, ZMQ_POLLIN, 0});
  std::vector<Received> received;
  const auto deadline = Clock::now() + timeout;
  bool woken = false;
  do {
    if (Clock::now() >= s.next_lease) {
      broadcast(Lease{s.generation, s.options.lease_s});
      for (auto& [peer, known] : s.peers) {
        if (!known.unanswered) known.unanswered = Clock::now();
      }
      s.next_lease = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(s.options.lease_period_s));
    }
    const auto until = std::min(deadline, s.next_lease);
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    try {
      zmq::poll(items, std::max(wait, std::chrono::milliseconds(0)));
    } catch (const zmq::error_t& e) {
      if (e.num() != EINTR) throw;
      continue;
    }
    if (items[1].revents) s.answer_gate();
    if (items[0].revents) s.receive_into(received);
    if (items[2].revents) s.receive_ends();
    for (size_t i = own; i < items.size(); ++i) woken = woken || items[i].revents;
  } while (received.empty() && !woken && Clock::now() < deadline);
  return received;
}

std::vector<std::string> ControlServer::silent_peers(double silence_s) const {
  std::vector<std::string> silent;
  for (const auto& [peer, known] : state_->peers) {
    const double limit_s =
        known.connected ? silence_s : std::min(silence_s, kClosed * state_->options.lease_s);
    if (known.unanswered && seconds_since(*known.unanswered) > limit_s) silent.push_back(peer);
  }
  return silent;
}

double ControlServer::in_step_s(const std::string& peer) const {
  auto it = state_->peers.find(peer);
  if (it == state_->peers.end() || it->second.generation != state_->generation) return 0;
  return it->second.in_step_s;
}

double ControlServer::silence_s(const std::string& peer) const {
  auto it = state_->peers.find(peer);
  return it == state_->peers.end() ? 0 : seconds_since(it->second.heard);
}

void ControlServer::broadcast(const ControlMessage& message) {
  const std::string text = to_json(message);
  for (const auto& [peer, known] : state_->peers) state_->send(peer, text);
}

void ControlServer::send(const std::string& peer, const ControlMessage& message) {
  if (state_->peers.contains(peer)) state_->send(peer, to_json(message));
}

void ControlServer::drop(const std::string& peer) {
  state_->drop(peer);
}

std::vector<ControlServer::Dropped> ControlServer::take_dropped() {
  return std::exchange(state_->dropped, {});
}

}  // namespace sailor
