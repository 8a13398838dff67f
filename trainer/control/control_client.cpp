#include "trainer/control/control_client.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <zmq.hpp>

namespace sailor {
namespace {

using Clock = std::chrono::steady_clock;

Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

}  // namespace

struct ControlClient::State {
  Callbacks callbacks;
  zmq::context_t context{1};
  zmq::socket_t dealer{context, zmq::socket_type::dealer};
  int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::mutex mutex;
  std::condition_variable drained;
  std::deque<std::string> queue;  // guarded by mutex
  int64_t last_number = 0;        // of messages; used by the thread only
  bool closing = false;           // guarded by mutex
  Clock::time_point lease_end;    // of the thread
  bool called_back = false;       // of the thread
  std::thread thread;

  ~State() {
    if (wake >= 0) close(wake);
  }

  void wake_up() {
    const uint64_t one = 1;
    // The counter can only be full when a wake-up is pending already.
    [[maybe_unused]] const ssize_t written = write(wake, &one, sizeof one);
  }

  // The controller rejects duplicate numbers.
  bool send_numbered(const std::string& json) {
    const std::string text = fmt::format("{} {}", last_number + 1, json);
    if (!dealer.send(zmq::buffer(text), zmq::send_flags::dontwait)) return false;
    ++last_number;
    return true;
  }

  // Returns false if the thread must end.
  bool send_queued() {
    std::unique_lock lock(mutex);
    while (!queue.empty()) {
      if (!send_numbered(queue.front())) break;
      queue.pop_front();
    }
    if (queue.empty()) drained.notify_all();
    return !(closing && queue.empty());
  }

  void receive() {
    zmq::message_t frame;
    while (dealer.recv(frame, zmq::recv_flags::dontwait)) {
      const ControlMessage message = parse_control_message(frame.to_string());
      if (const Lease* lease = std::get_if<Lease>(&message)) {
        lease_end = Clock::now() + seconds(lease->seconds);
        // Not sent if the queue is full: the controller should then see silence.
        send_numbered(to_json(Alive{lease->generation, callbacks.in_step_s ? callbacks.in_step_s() : 0}));
      }
      if (callbacks.message) callbacks.message(message);
      if (const Stop* stop = std::get_if<Stop>(&message); stop && !called_back) {
        called_back = true;
        if (callbacks.stop) callbacks.stop(*stop);
      }
    }
  }

  void run() {
    zmq::pollitem_t items[] = {{dealer.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, wake, ZMQ_POLLIN, 0}};
    std::optional<Clock::time_point> close_by;
    while (true) {
      if (!send_queued()) return;
      {
        std::lock_guard lock(mutex);
        if (closing && !close_by) close_by = Clock::now() + seconds(2);
      }
      if (close_by && Clock::now() > *close_by) return;
      try {
        zmq::poll(items, 2, std::chrono::milliseconds(100));
      } catch (const zmq::error_t& e) {
        if (e.num() != EINTR) throw;
        continue;
      }
      if (items[1].revents) {
        uint64_t count;
        while (read(wake, &count, sizeof count) > 0) {
        }
      }
      if (items[0].revents) receive();
      if (!called_back && Clock::now() > lease_end) {
        called_back = true;
        if (callbacks.lease_expired) callbacks.lease_expired();
      }
    }
  }
};

ControlClient::ControlClient(const ControlEndpoint& endpoint, const std::string& address, Callbacks callbacks)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.callbacks = std::move(callbacks);
  s.lease_end = Clock::now() + seconds(endpoint.lease_s);
  try {
    s.dealer.set(zmq::sockopt::linger, 2000);
    s.dealer.set(zmq::sockopt::curve_serverkey, endpoint.server_public_key);
    s.dealer.set(zmq::sockopt::curve_publickey, endpoint.client.public_key);
    s.dealer.set(zmq::sockopt::curve_secretkey, endpoint.client.secret_key);
    s.dealer.connect(fmt::format("tcp://{}:{}", address, endpoint.port));
  } catch (const zmq::error_t& e) {
    throw std::runtime_error(
        fmt::format("control channel: cannot connect to {}:{}: {}", address, endpoint.port, e.what()));
  }
  s.thread = std::thread([state = state_.get()] { state->run(); });
}

ControlClient::~ControlClient() {
  {
    std::lock_guard lock(state_->mutex);
    state_->closing = true;
  }
  state_->wake_up();
  state_->thread.join();
}

void ControlClient::send(const ControlMessage& message) {
  {
    std::lock_guard lock(state_->mutex);
    state_->queue.push_back(to_json(message));
  }
  state_->wake_up();
}

bool ControlClient::flush(double timeout_s) {
  std::unique_lock lock(state_->mutex);
  return state_->drained.wait_for(lock, seconds(timeout_s), [this] { return state_->queue.empty(); });
}

}  // namespace sailor
