// Internal to the socket plane: moves the bytes of all communicators of one rank.
//
// Every wait progresses all pending transfers of the rank, not only its own; while no thread waits, a helper
// thread does, so that a message posted before a computation is sent during it. All poll without the lock,
// and access queues and sockets only under it. Several threads may wait concurrently for different meshes; a
// thread that completes another one's transfer wakes it.
//
// Lock order: the engine's mutex is the only lock. Every public function takes it.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "planner/process/file_descriptor.h"
#include "trainer/comm/link_pacer.h"
#include "trainer/comm/mesh_communicator.h"
#include "trainer/comm/sealed_stream.h"
#include "trainer/comm/socket_listener.h"

namespace sailor {

// Transfers posted together.
struct SocketBatch {
  int remaining = 0;
  const char* operation = "";
  bool overlapped = false;  // possibly nobody waits: the helper progresses it
};

// The connection to one peer of one communicator.
struct SocketChannel {
  struct Piece {
    char* data;
    std::size_t left;
    std::shared_ptr<SocketBatch> batch;
    LinkPacer::Passage passage{};  // over an emulated link; otherwise through and due at once
  };
  struct Sealed {
    SealedSender out;
    SealedReceiver in;
  };
  FileDescriptor fd;  // invalid for oneself and after close
  std::deque<Piece> sends;
  std::deque<Piece> receives;
  std::unique_ptr<Sealed> sealed;  // if the connection is encrypted

  void seal(const StreamKey& out, const StreamKey& in) {
    sealed = std::make_unique<Sealed>(SealedSender(out), SealedReceiver(in));
  }
  // What is to be sent next. Requires may_send().
  std::span<const char> out();
  // So much of it was sent. Returns whether the first queued message has left.
  bool went_out(std::size_t bytes);
  bool pending() const { return !sends.empty() || !receives.empty(); }
  // May the first queued message leave now?
  bool may_send() const;
  // When an emulated link next has work: a turn or a message is due. The largest time = nothing.
  LinkPacer::Clock::time_point next_due() const;
  // Gives messages the turns that are due, one message after the other.
  void take_turns(LinkPacer& links);
};

// The state of one communicator inside the engine.
struct SocketMesh {
  std::string name;
  std::vector<int> ranks;          // of the job
  std::vector<std::string> hosts;  // by rank in the communicator
  std::vector<SocketChannel> channels;
  std::chrono::milliseconds deadline{};
  LinkPacer* links = nullptr;
  int own_rank = 0;      // of the job; for `links`
  std::string failure;   // empty = healthy
  int failed_peer = -1;  // rank in the communicator
};

class SocketEngine {
 public:
  SocketEngine();
  ~SocketEngine();

  void add(const std::shared_ptr<SocketMesh>& mesh);
  // Closes the mesh's connections; its pending transfers are dropped.
  void remove(const std::shared_ptr<SocketMesh>& mesh);

  // Throws CommError when the mesh has failed. With `overlapped`, the helper progresses what did not complete
  // at once.
  std::shared_ptr<SocketBatch> post(SocketMesh& mesh, std::span<const Transfer> transfers,
                                    const char* operation, bool overlapped);
  // Throws CommError, after which the mesh has failed and none of its buffers is accessed any more.
  void wait(SocketMesh& mesh, const SocketBatch& batch);
  bool complete(const SocketBatch& batch);
  // Fails the mesh if the batch is not complete.
  void abandon(SocketMesh& mesh, const SocketBatch& batch) noexcept;
  void abort(SocketMesh& mesh) noexcept;
  void abort_all() noexcept;

 private:
  struct Watched {
    std::shared_ptr<SocketMesh> mesh;
    int peer;
  };
  // The descriptors to poll: every channel with pending transfers. Returns when the first of the emulated
  // links has work; the largest time if none has.
  std::chrono::steady_clock::time_point collect(std::vector<pollfd>& polled,
                                                std::vector<Watched>& watched) const;
  void progress(const std::vector<pollfd>& polled, const std::vector<Watched>& watched);
  void advance(SocketMesh& mesh, int peer, bool hung_up);
  void advance_sends(SocketMesh& mesh, int peer);
  void advance_receives(SocketMesh& mesh, int peer);
  void arrived(SocketChannel& channel, std::size_t bytes);
  void fail(SocketMesh& mesh, int peer, const std::string& reason);
  [[noreturn]] void throw_failure(const SocketMesh& mesh, const char* operation) const;
  bool helper_has_work() const;
  void completed_one(SocketBatch& batch);
  void wake_waiters() noexcept;
  void help();

  std::mutex mutex_;
  std::set<std::shared_ptr<SocketMesh>> meshes_;
  std::vector<std::unique_ptr<WakeUp>> idle_wake_ups_;
  // Those of threads that are inside wait() and do the helper's work.
  std::vector<WakeUp*> waiting_;
  WakeUp wake_helper_;
  std::condition_variable helper_needed_;
  bool helper_polling_ = false;
  bool stopping_ = false;
  std::thread helper_;
};

}  // namespace sailor
