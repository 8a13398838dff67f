#include "trainer/comm/socket_plane.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "trainer/comm/handshake.h"
#include "trainer/comm/socket_engine.h"
#include "trainer/comm/socket_listener.h"

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

// A TCP connection in the making; every step gives up at the deadline or when `cancel` becomes readable.
// Throws std::runtime_error with the reason.
class Connecting {
 public:
  Connecting(const Endpoint& to, Clock::time_point deadline, int cancel_fd)
      : deadline_(deadline), cancel_fd_(cancel_fd) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int rc = ::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &found);
    if (rc != 0) throw std::runtime_error(fmt::format("host {} is unknown: {}", to.host, ::gai_strerror(rc)));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
    fd_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_.valid()) throw std::runtime_error(fmt::format("socket: {}", std::strerror(errno)));
    if (::connect(fd_.get(), addresses->ai_addr, addresses->ai_addrlen) == 0) return;
    if (errno != EINPROGRESS) fail_with(errno, to);
    wait_for(POLLOUT);
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) fail_with(error, to);
  }

  std::string read(std::size_t bytes) {
    std::string data(bytes, '\0');
    std::size_t have = 0;
    while (have < bytes) {
      wait_for(POLLIN);
      const auto got = ::recv(fd_.get(), data.data() + have, bytes - have, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0)
        throw std::runtime_error("refused the handshake (another job's rank, or another secret?)");
      have += static_cast<std::size_t>(got);
    }
    return data;
  }

  void write(const std::string& data) {
    std::size_t done = 0;
    while (done < data.size()) {
      wait_for(POLLOUT);
      const auto sent = ::send(fd_.get(), data.data() + done, data.size() - done, MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (sent < 0) throw std::runtime_error(fmt::format("handshake: {}", std::strerror(errno)));
      done += static_cast<std::size_t>(sent);
    }
  }

  FileDescriptor release() { return std::move(fd_); }

 private:
  [[noreturn]] static void fail_with(int error, const Endpoint& to) {
    throw std::runtime_error(
        fmt::format("cannot connect to {}:{}: {}", to.host, to.port, std::strerror(error)));
  }

  void wait_for(short events) {
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      if (left <= 0) throw std::runtime_error("did not join in time");
      pollfd polled[2] = {{fd_.get(), events, 0}, {cancel_fd_, POLLIN, 0}};
      ::poll(polled, 2, static_cast<int>(std::min<int64_t>(left, 60'000)));
      if (polled[1].revents) throw std::runtime_error("aborted");
      if (polled[0].revents) return;
    }
  }

  FileDescriptor fd_;
  Clock::time_point deadline_;
  int cancel_fd_;
};

void tune(const FileDescriptor& fd) {
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(fd.get(), level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);  // a host that lost power says nothing: notice within half a minute
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

class SocketWork : public Work {
 public:
  SocketWork(SocketEngine* engine, std::shared_ptr<SocketMesh> mesh, std::shared_ptr<SocketBatch> batch)
      : engine_(engine), mesh_(std::move(mesh)), batch_(std::move(batch)) {}
  ~SocketWork() override {
    if (batch_) engine_->abandon(*mesh_, *batch_);
  }
  void wait() override {
    if (!batch_) return;
    const std::shared_ptr<SocketBatch> batch = std::move(batch_);
    engine_->wait(*mesh_, *batch);
  }
  bool done() override { return !batch_ || engine_->complete(*batch_); }

 private:
  SocketEngine* engine_;
  std::shared_ptr<SocketMesh> mesh_;
  std::shared_ptr<SocketBatch> batch_;
};

class SocketCommunicator : public MeshCommunicator {
 public:
  SocketCommunicator(SocketEngine* engine, std::shared_ptr<SocketMesh> mesh, int rank)
      : MeshCommunicator(mesh->name, rank, mesh->ranks), engine_(engine), mesh_(std::move(mesh)) {
    engine_->add(mesh_);
  }
  ~SocketCommunicator() override { engine_->remove(mesh_); }

  void abort() noexcept override { engine_->abort(*mesh_); }

 protected:
  std::unique_ptr<Work> post(std::span<const Transfer> transfers, const char* operation,
                             bool overlapped) override {
    return std::make_unique<SocketWork>(engine_, mesh_,
                                        engine_->post(*mesh_, transfers, operation, overlapped));
  }

 private:
  SocketEngine* engine_;
  std::shared_ptr<SocketMesh> mesh_;
};

}  // namespace

struct SocketFactory::Impl {
  int rank;
  std::vector<Endpoint> endpoints;
  JobSecret secret;
  Listener& listener;
  CommOptions options;
  std::string scope;
  std::atomic<bool> aborted{false};
  WakeUp cancel;  // readable forever once aborted
  SocketEngine engine;

  void connect(SocketChannel& channel, const std::string& name, int from, int to, int to_rank,
               Clock::time_point deadline) {
    Connecting connection(endpoints.at(to_rank), deadline, cancel.fd());
    const auto challenge = read_challenge(connection.read(kChallengeBytes));
    if (!challenge) throw std::runtime_error("is not a rank: it does not speak our protocol");
    const Nonce nonce = make_nonce();
    connection.write(make_hello(secret, {scope, name, from, to}, *challenge, nonce));
    if (!check_welcome(secret, connection.read(kWelcomeBytes), *challenge, nonce)) {
      throw std::runtime_error("does not know the job's secret");
    }
    channel.fd = connection.release();
    const StreamKeys keys = derive_keys(secret, *challenge, nonce);
    if (options.encrypt) channel.seal(keys.to_acceptor, keys.to_connector);
  }
  void accept(SocketChannel& channel, const Introduction& who, Clock::time_point deadline) {
    Listener::State::Accepted accepted = listener.state().take(who, deadline, aborted);
    if (!accepted.fd.valid()) throw std::runtime_error("did not join in time");
    channel.fd = std::move(accepted.fd);
    if (options.encrypt) channel.seal(accepted.keys.to_connector, accepted.keys.to_acceptor);
  }
};

SocketFactory::SocketFactory(int rank, std::vector<Endpoint> endpoints, const JobSecret& secret,
                             Listener& listener, CommOptions options, std::string scope)
    : impl_(new Impl{rank, std::move(endpoints), secret, listener, options, std::move(scope), {}, {}, {}}) {}

SocketFactory::~SocketFactory() {
  impl_->listener.state().retire(impl_->scope);
}

int SocketFactory::rank() const {
  return impl_->rank;
}
int SocketFactory::size() const {
  return static_cast<int>(impl_->endpoints.size());
}

std::unique_ptr<Communicator> SocketFactory::make(const std::string& name, const std::vector<int>& ranks,
                                                  CommUse use) {
  const auto self = std::find(ranks.begin(), ranks.end(), impl_->rank);
  if (self == ranks.end()) {
    throw std::logic_error(fmt::format("communicator {}: rank {} is not a member", name, impl_->rank));
  }
  const int me = static_cast<int>(self - ranks.begin());
  const auto deadline = Clock::now() + impl_->options.deadline;

  auto mesh = std::make_shared<SocketMesh>();
  mesh->name = name;
  mesh->ranks = ranks;
  mesh->deadline = impl_->options.deadline;
  mesh->links = use == CommUse::layer_messages ? nullptr : impl_->options.links;
  mesh->own_rank = impl_->rank;
  mesh->channels.resize(ranks.size());
  for (const int rank : ranks) mesh->hosts.push_back(impl_->endpoints.at(rank).host);
  const auto fail = [&](int peer, const std::string& reason) {
    if (impl_->aborted) throw CommError("create", name, -1, "", "aborted");
    throw CommError("create", name, ranks[peer], mesh->hosts[peer], reason);
  };

  // Everybody connects to the ranks before it; accepting is the listener's own thread, so this cannot
  // deadlock.
  for (int peer = 0; peer < me; ++peer) {
    try {
      impl_->connect(mesh->channels[peer], name, me, peer, ranks[peer], deadline);
    } catch (const std::runtime_error& error) {
      fail(peer, error.what());
    }
  }
  for (int peer = me + 1; peer < static_cast<int>(ranks.size()); ++peer) {
    try {
      impl_->accept(mesh->channels[peer], {impl_->scope, name, peer, me}, deadline);
    } catch (const std::runtime_error& error) {
      fail(peer, error.what());
    }
  }
  for (const SocketChannel& channel : mesh->channels) {
    if (channel.fd.valid()) tune(channel.fd);
  }
  auto communicator = std::make_unique<SocketCommunicator>(&impl_->engine, mesh, me);
  if (impl_->aborted) fail(me, "aborted");
  return communicator;
}

void SocketFactory::abort() noexcept {
  impl_->aborted = true;
  impl_->cancel.wake();
  impl_->listener.state().nudge();
  impl_->engine.abort_all();
}

}  // namespace sailor
