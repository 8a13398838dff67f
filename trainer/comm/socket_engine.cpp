#include "trainer/comm/socket_engine.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

// Waits until one of `polled` is ready or `until` has come, a minute at most. Finer than poll(), because an
// emulated link may hold a message for less than a millisecond.
void poll_until(std::vector<pollfd>& polled, Clock::time_point until) {
  const auto now = Clock::now();
  const auto left = until <= now ? std::chrono::nanoseconds(0)
                                 : std::min<std::chrono::nanoseconds>(until - now, std::chrono::minutes(1));
  const timespec timeout{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
  ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
}

}  // namespace

bool SocketChannel::may_send() const {
  if (sends.empty()) return false;
  const LinkPacer::Passage& passage = sends.front().passage;
  return passage.through && (passage.leaves == Clock::time_point{} || passage.leaves <= Clock::now());
}

std::span<const char> SocketChannel::out() {
  Piece& piece = sends.front();
  if (!sealed) return {piece.data, piece.left};
  if (sealed->out.left().empty()) {
    const std::size_t bytes = std::min(piece.left, kMostFramePayload);
    sealed->out.seal(piece.data, bytes);
    piece.data += bytes;
    piece.left -= bytes;
  }
  return sealed->out.left();
}

bool SocketChannel::went_out(std::size_t bytes) {
  Piece& piece = sends.front();
  if (sealed) {
    sealed->out.sent(bytes);
    return piece.left == 0 && sealed->out.left().empty();
  }
  piece.data += bytes;
  piece.left -= bytes;
  return piece.left == 0;
}

Clock::time_point SocketChannel::next_due() const {
  auto due = Clock::time_point::max();
  if (sends.empty()) return due;
  if (sends.front().passage.through && !may_send()) due = sends.front().passage.leaves;
  const auto next =
      std::find_if(sends.begin(), sends.end(), [](const Piece& p) { return !p.passage.through; });
  return next == sends.end() ? due : std::min(due, next->passage.at);
}

void SocketChannel::take_turns(LinkPacer& links) {
  const auto now = Clock::now();
  Clock::time_point link_free{};
  for (Piece& piece : sends) {
    LinkPacer::Passage& passage = piece.passage;
    if (!passage.through) passage.at = std::max(passage.at, link_free);
    while (!passage.through) {
      if (passage.at > now) return;
      links.take_turn(passage);
    }
    link_free = passage.at;
  }
}

SocketEngine::SocketEngine() : helper_([this] { help(); }) {}

SocketEngine::~SocketEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    helper_needed_.notify_all();
  }
  wake_helper_.wake();
  helper_.join();
}

void SocketEngine::add(const std::shared_ptr<SocketMesh>& mesh) {
  const std::lock_guard lock(mutex_);
  meshes_.insert(mesh);
}

void SocketEngine::remove(const std::shared_ptr<SocketMesh>& mesh) {
  const std::lock_guard lock(mutex_);
  meshes_.erase(mesh);
  mesh->channels.clear();  // closes
  if (mesh->failure.empty()) mesh->failure = "destroyed";
}

std::shared_ptr<SocketBatch> SocketEngine::post(SocketMesh& mesh, std::span<const Transfer> transfers,
                                                const char* operation, bool overlapped) {
  auto batch = std::make_shared<SocketBatch>();
  batch->operation = operation;
  batch->overlapped = overlapped;
  const std::lock_guard lock(mutex_);
  if (!mesh.failure.empty()) throw_failure(mesh, operation);
  for (const Transfer& transfer : transfers) {
    const std::size_t bytes = transfer.count * element_size(transfer.type);
    if (bytes == 0) continue;
    SocketChannel& channel = mesh.channels.at(transfer.peer);
    auto& queue = transfer.kind == Transfer::Kind::send ? channel.sends : channel.receives;
    queue.push_back({static_cast<char*>(transfer.data), bytes, batch});
    if (mesh.links && transfer.kind == Transfer::Kind::send)
      queue.back().passage = {.from = mesh.own_rank,
                              .to = mesh.ranks[static_cast<std::size_t>(transfer.peer)],
                              .bytes = bytes,
                              .at = Clock::now(),
                              .through = false};
    ++batch->remaining;
  }
  // Most messages fit into the kernel's buffers and leave right here.
  for (const Transfer& transfer : transfers) {
    if (mesh.failure.empty()) advance(mesh, transfer.peer, false);
  }
  if (overlapped && batch->remaining > 0) {
    helper_needed_.notify_all();
    if (helper_polling_) wake_helper_.wake();  // its set of connections has grown
  }
  return batch;
}

void SocketEngine::wait(SocketMesh& mesh, const SocketBatch& batch) {
  std::unique_lock lock(mutex_);
  const auto deadline = Clock::now() + mesh.deadline;
  std::vector<pollfd> polled;
  std::vector<Watched> watched;
  if (idle_wake_ups_.empty()) idle_wake_ups_.push_back(std::make_unique<WakeUp>());
  std::unique_ptr<WakeUp> wake_up = std::move(idle_wake_ups_.back());
  idle_wake_ups_.pop_back();
  waiting_.push_back(wake_up.get());
  for (int peer = 0; peer < static_cast<int>(mesh.channels.size()) && mesh.failure.empty(); ++peer) {
    if (mesh.channels[peer].pending()) advance(mesh, peer, false);
  }
  while (mesh.failure.empty() && batch.remaining > 0) {
    if (Clock::now() >= deadline) {
      int blamed = -1;
      for (int peer = 0; peer < static_cast<int>(mesh.channels.size()); ++peer) {
        const auto mine = [&](const SocketChannel::Piece& piece) { return piece.batch.get() == &batch; };
        const SocketChannel& channel = mesh.channels[peer];
        if (blamed < 0 && (std::any_of(channel.receives.begin(), channel.receives.end(), mine) ||
                           std::any_of(channel.sends.begin(), channel.sends.end(), mine))) {
          blamed = peer;
        }
      }
      fail(mesh, blamed,
           fmt::format("no answer within {:.1f} s", std::chrono::duration<double>(mesh.deadline).count()));
      break;
    }
    polled.assign(1, {wake_up->fd(), POLLIN, 0});
    watched.assign(1, {});
    const auto due = collect(polled, watched);
    lock.unlock();
    poll_until(polled, std::min(due, deadline));
    lock.lock();
    if (polled[0].revents) wake_up->drain();
    progress(polled, watched);
  }
  std::erase(waiting_, wake_up.get());
  wake_up->drain();
  idle_wake_ups_.push_back(std::move(wake_up));
  if (waiting_.empty() && helper_has_work()) helper_needed_.notify_all();
  if (batch.remaining > 0) throw_failure(mesh, batch.operation);
}

bool SocketEngine::complete(const SocketBatch& batch) {
  const std::lock_guard lock(mutex_);
  return batch.remaining == 0;
}

// One transfer of it is done.
void SocketEngine::completed_one(SocketBatch& batch) {
  if (--batch.remaining == 0 && waiting_.size() > 1) wake_waiters();
}

void SocketEngine::wake_waiters() noexcept {
  for (WakeUp* waiter : waiting_) waiter->wake();
}

void SocketEngine::abandon(SocketMesh& mesh, const SocketBatch& batch) noexcept {
  const std::lock_guard lock(mutex_);
  if (batch.remaining > 0 && mesh.failure.empty()) fail(mesh, -1, "abandoned");
}

void SocketEngine::abort(SocketMesh& mesh) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (mesh.failure.empty()) fail(mesh, -1, "aborted");
    wake_waiters();
  }
}

void SocketEngine::abort_all() noexcept {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& mesh : meshes_) {
      if (mesh->failure.empty()) fail(*mesh, -1, "aborted");
    }
    wake_waiters();
  }
}

Clock::time_point SocketEngine::collect(std::vector<pollfd>& polled, std::vector<Watched>& watched) const {
  auto first_due = Clock::time_point::max();
  for (const auto& mesh : meshes_) {
    if (!mesh->failure.empty()) continue;
    for (int peer = 0; peer < static_cast<int>(mesh->channels.size()); ++peer) {
      const SocketChannel& channel = mesh->channels[peer];
      if (!channel.pending()) continue;
      if (mesh->links) first_due = std::min(first_due, channel.next_due());
      const int events = (channel.may_send() ? POLLOUT : 0) | (channel.sends.empty() ? 0 : POLLRDHUP) |
                         (channel.receives.empty() ? 0 : POLLIN);
      polled.push_back({channel.fd.get(), static_cast<short>(events), 0});
      watched.push_back({mesh, peer});
    }
  }
  return first_due;
}

void SocketEngine::progress(const std::vector<pollfd>& polled, const std::vector<Watched>& watched) {
  for (std::size_t i = 1; i < polled.size(); ++i) {
    SocketMesh& mesh = *watched[i].mesh;
    if (!mesh.failure.empty()) continue;  // failed or destroyed meanwhile
    if (polled[i].revents) {
      advance(mesh, watched[i].peer, (polled[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
    } else if (mesh.links) {
      advance_sends(mesh, watched[i].peer);  // perhaps due by now
    }
  }
}

void SocketEngine::advance(SocketMesh& mesh, int peer, bool hung_up) {
  advance_receives(mesh, peer);  // first: what a peer sent before it left still counts
  if (!mesh.failure.empty()) return;
  if (hung_up && !mesh.channels[peer].sends.empty())
    return fail(mesh, peer, "is gone (it closed the connection)");
  advance_sends(mesh, peer);
}

void SocketEngine::advance_sends(SocketMesh& mesh, int peer) {
  SocketChannel& channel = mesh.channels[peer];
  if (mesh.links) channel.take_turns(*mesh.links);
  while (channel.may_send()) {
    const std::span<const char> out = channel.out();
    const auto sent = ::send(channel.fd.get(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return fail(mesh, peer, fmt::format("is gone ({})", std::strerror(errno)));
    if (channel.went_out(static_cast<std::size_t>(sent))) {
      completed_one(*channel.sends.front().batch);
      channel.sends.pop_front();
    }
  }
}

void SocketEngine::advance_receives(SocketMesh& mesh, int peer) {
  SocketChannel& channel = mesh.channels[peer];
  while (!channel.receives.empty()) {
    SocketChannel::Piece& piece = channel.receives.front();
    const std::optional<std::size_t> opened =
        channel.sealed ? channel.sealed->in.take(piece.data, piece.left) : 0;
    if (!opened) return fail(mesh, peer, "sent data that was changed on the way");
    if (*opened > 0) {
      arrived(channel, *opened);
      continue;
    }
    const std::span<char> room =
        channel.sealed ? channel.sealed->in.room() : std::span(piece.data, piece.left);
    const auto got = ::recv(channel.fd.get(), room.data(), room.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got < 0) return fail(mesh, peer, fmt::format("is gone ({})", std::strerror(errno)));
    if (got == 0) return fail(mesh, peer, "is gone (it closed the connection)");
    if (channel.sealed)
      channel.sealed->in.received(static_cast<std::size_t>(got));
    else
      arrived(channel, static_cast<std::size_t>(got));
  }
}

// `bytes` were written to the first message that is being received.
void SocketEngine::arrived(SocketChannel& channel, std::size_t bytes) {
  SocketChannel::Piece& piece = channel.receives.front();
  piece.data += bytes;
  piece.left -= bytes;
  if (piece.left > 0) return;
  completed_one(*piece.batch);
  channel.receives.pop_front();
}

void SocketEngine::fail(SocketMesh& mesh, int peer, const std::string& reason) {
  mesh.failure = reason;
  mesh.failed_peer = peer;
  for (SocketChannel& channel : mesh.channels) {
    channel.sends.clear();
    channel.receives.clear();
    if (channel.fd.valid()) ::shutdown(channel.fd.get(), SHUT_RDWR);  // peers that wait for us learn it now
  }
  wake_waiters();
}

void SocketEngine::throw_failure(const SocketMesh& mesh, const char* operation) const {
  const int peer = mesh.failed_peer;
  throw CommError(operation, mesh.name, peer < 0 ? -1 : mesh.ranks[peer], peer < 0 ? "" : mesh.hosts[peer],
                  mesh.failure);
}

// Who posted the rest comes back to wait for it in no time: waking the helper would cost more.
bool SocketEngine::helper_has_work() const {
  const auto overlapped = [](const SocketChannel::Piece& piece) { return piece.batch->overlapped; };
  return std::any_of(meshes_.begin(), meshes_.end(), [&](const auto& mesh) {
    return mesh->failure.empty() &&
           std::any_of(mesh->channels.begin(), mesh->channels.end(), [&](const SocketChannel& channel) {
             return std::any_of(channel.sends.begin(), channel.sends.end(), overlapped) ||
                    std::any_of(channel.receives.begin(), channel.receives.end(), overlapped);
           });
  });
}

void SocketEngine::help() {
  std::vector<pollfd> polled;
  std::vector<Watched> watched;
  std::unique_lock lock(mutex_);
  while (true) {
    helper_needed_.wait(lock, [&] { return stopping_ || (waiting_.empty() && helper_has_work()); });
    if (stopping_) return;
    polled.assign(1, {wake_helper_.fd(), POLLIN, 0});
    watched.assign(1, {});
    const auto due = collect(polled, watched);
    helper_polling_ = true;
    lock.unlock();
    poll_until(polled, due);
    lock.lock();
    helper_polling_ = false;
    if (polled[0].revents) wake_helper_.drain();
    if (waiting_.empty()) progress(polled, watched);
    watched.clear();
  }
}

}  // namespace sailor
