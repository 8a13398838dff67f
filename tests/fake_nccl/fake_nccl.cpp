#include "tests/fake_nccl/fake_nccl.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "tests/fake_nccl/fake_cuda.h"
#include "tests/fake_nccl/fake_room.h"
#include "tests/fake_nccl/fault_script.h"

using sailor::fake::Room;
using sailor::fake::Task;

// What NCCL's header leaves open. Never deleted, so that a use after the end is found out.
struct ncclComm {
  std::shared_ptr<Room> room;
  Room::Member member;
  int device = 0;
  std::chrono::steady_clock::time_point created = std::chrono::steady_clock::now();
  std::atomic<bool> aborting{false};
  std::mutex mutex;  // guards the rest
  bool joined = false, finalizing = false, ended = false;
  std::optional<std::vector<Task>> launching;
};

namespace sailor::fake {
namespace {

constexpr ncclResult_t kProceed = ncclNumResults;

std::mutex registry_mutex;
auto* const rooms = new std::map<std::string, std::shared_ptr<Room>>;
auto* const communicators = new std::vector<std::unique_ptr<ncclComm>>;
std::vector<Created> created;
std::atomic<int> living{0}, launches{0};
std::atomic<int> ids{0};

// Kernels that run on each device.
std::mutex kernels_mutex;
std::condition_variable kernel_ended;
std::map<int, int> kernels;

void run_kernel(ncclComm& communicator, uint64_t number, const std::vector<Task>& tasks) {
  {
    const std::lock_guard lock(kernels_mutex);
    ++kernels[communicator.device];
  }
  communicator.room->run(communicator.member, number, tasks);
  const std::lock_guard lock(kernels_mutex);
  --kernels[communicator.device];
  kernel_ended.notify_all();
}

struct GroupState {
  int depth = 0;
  std::vector<std::pair<ncclComm_t, Task>> tasks;
};
thread_local GroupState group;

// What the script makes of the call; kProceed: it is to do its work.
ncclResult_t scripted(const char* call, ncclComm_t communicator) {
  const auto fault = script().next(call, current_device());
  if (!fault) return kProceed;
  if (fault->kind == Fault::Kind::hang) {
    script().hang([&] { return communicator && communicator->aborting; });
    return ncclInternalError;
  }
  return static_cast<ncclResult_t>(fault->code);
}

// Whether a call may use the communicator.
bool usable(const char* call, ncclComm_t communicator) {
  const std::lock_guard lock(communicator->mutex);
  if (communicator->ended) {
    report_violation(std::string(call) + " on a communicator that has ended");
    return false;
  }
  if (communicator->device != current_device()) {
    report_violation(std::string(call) + " on a thread whose device is not the communicator's");
    return false;
  }
  return true;
}

ncclResult_t get_version(int* version) {
  if (const auto result = scripted("ncclGetVersion", nullptr); result != kProceed) return result;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  if (const auto result = scripted("ncclGetUniqueId", nullptr); result != kProceed) return result;
  std::snprintf(id->internal, sizeof id->internal, "room %d", ids++);
  return ncclSuccess;
}

ncclResult_t comm_init(ncclComm_t* result, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  *result = nullptr;
  if (const auto scripted_result = scripted("ncclCommInitRankConfig", nullptr); scripted_result != kProceed)
    return scripted_result;
  if (config->blocking != 0 || rank < 0 || rank >= size || current_device() == 0) return ncclInvalidArgument;
  const std::lock_guard lock(registry_mutex);
  std::shared_ptr<Room>& room = (*rooms)[id.internal];
  if (!room) room = std::make_shared<Room>(size);
  auto& communicator = *communicators->emplace_back(std::make_unique<ncclComm>());
  communicator.room = room;
  communicator.member.rank = rank;
  communicator.device = current_device();
  room->join(rank);
  created.push_back({current_device(), size, config->maxCTAs == NCCL_CONFIG_UNDEF_INT ? 0 : config->maxCTAs});
  ++living;
  *result = &communicator;
  return ncclInProgress;
}

// Launches what was in progress as soon as its connections are there. Requires the communicator's mutex.
void advance(ncclComm& communicator) {
  if (!communicator.joined) communicator.joined = communicator.room->complete();
  if (!communicator.joined || !communicator.launching) return;
  Room& room = *communicator.room;
  const int rank = communicator.member.rank;
  // As the real one, whose connections need memory.
  if (loads_code(communicator.device) && !room.connected(rank, *communicator.launching)) return;
  if (!room.connect(rank, *communicator.launching)) return;
  const std::vector<Task> tasks = std::move(*communicator.launching);
  communicator.launching.reset();
  const uint64_t number = communicator.room->enqueue_one(communicator.member);
  enqueue(tasks.front().stream, [&communicator, number, tasks] { run_kernel(communicator, number, tasks); });
}

ncclResult_t comm_get_async_error(ncclComm_t communicator, ncclResult_t* state) {
  if (const auto result = scripted("ncclCommGetAsyncError", communicator); result != kProceed) return result;
  if (!usable("ncclCommGetAsyncError", communicator)) return ncclInvalidArgument;
  if (const auto fault = script().next("asynchronous error", current_device());
      fault && std::chrono::steady_clock::now() > communicator->created + fault->delay) {
    *state = static_cast<ncclResult_t>(fault->code);
    return ncclSuccess;
  }
  const std::lock_guard lock(communicator->mutex);
  if (!communicator->joined) communicator->joined = communicator->room->complete();
  const bool busy = !communicator->joined || communicator->launching ||
                    (communicator->finalizing && !communicator->room->idle(communicator->member));
  *state = busy ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

void end(ncclComm& communicator) {
  const std::lock_guard lock(communicator.mutex);
  if (!communicator.ended) --living;
  communicator.ended = true;
}

ncclResult_t comm_finalize(ncclComm_t communicator) {
  if (const auto result = scripted("ncclCommFinalize", communicator); result != kProceed) return result;
  if (!usable("ncclCommFinalize", communicator)) return ncclInvalidArgument;
  const std::lock_guard lock(communicator->mutex);
  communicator->finalizing = true;
  return ncclInProgress;
}

ncclResult_t comm_destroy(ncclComm_t communicator) {
  if (const auto result = scripted("ncclCommDestroy", nullptr); result != kProceed) return result;
  if (!usable("ncclCommDestroy", communicator)) return ncclInvalidArgument;
  if (!communicator->room->idle(communicator->member))
    report_violation("ncclCommDestroy with work under way");
  end(*communicator);
  return ncclSuccess;
}

ncclResult_t comm_abort(ncclComm_t communicator) {
  if (!usable("ncclCommAbort", communicator)) return ncclInvalidArgument;
  communicator->aborting = true;  // a call that hangs comes out also where the abort itself does not
  if (const auto result = scripted("ncclCommAbort", nullptr); result != kProceed) return result;
  end(*communicator);
  communicator->room->abort(communicator->member);
  // As the real one, which frees device memory: that waits for the kernels of other communicators, too.
  std::unique_lock lock(kernels_mutex);
  kernel_ended.wait(lock, [&] { return kernels[communicator->device] == 0; });
  return ncclSuccess;
}

ncclResult_t launch(ncclComm_t communicator, std::vector<Task> tasks) {
  const std::lock_guard lock(communicator->mutex);
  if (communicator->ended) return ncclInvalidUsage;
  if (communicator->launching || !communicator->joined)
    report_violation("a call on a communicator that has one in progress");
  communicator->launching = std::move(tasks);
  ++launches;
  // As the real one: with blocking=0 every launch has its own thread, and is in progress when the call
  // returns.
  std::thread([communicator] {
    while (true) {
      {
        const std::lock_guard lock_of_thread(communicator->mutex);
        if (communicator->ended) return;
        advance(*communicator);
        if (!communicator->launching) return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }).detach();
  return ncclInProgress;
}

ncclResult_t group_start() {
  if (const auto result = scripted("ncclGroupStart", nullptr); result != kProceed) return result;
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t group_end() {
  if (group.depth == 0) report_violation("ncclGroupEnd without ncclGroupStart");
  const ncclComm_t one = group.tasks.empty() ? nullptr : group.tasks.front().first;
  const auto scripted_result = scripted("ncclGroupEnd", one);
  if (--group.depth > 0) return ncclSuccess;
  const auto tasks = std::exchange(group.tasks, {});
  if (scripted_result != kProceed) return scripted_result;
  std::map<ncclComm_t, std::vector<Task>> by_communicator;
  for (const auto& [communicator, task] : tasks) by_communicator[communicator].push_back(task);
  ncclResult_t all = ncclSuccess;
  for (const auto& [communicator, own] : by_communicator) {
    const ncclResult_t result = launch(communicator, own);
    if (result != ncclSuccess) all = result;
  }
  return all;
}

ncclResult_t call(const char* name, ncclComm_t communicator, const Task& task) {
  if (const auto result = scripted(name, communicator); result != kProceed) return result;
  if (!usable(name, communicator)) return ncclInvalidArgument;
  if (group.depth == 0) return launch(communicator, {task});
  group.tasks.emplace_back(communicator, task);
  return ncclSuccess;
}

ncclResult_t all_reduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                        ncclComm_t communicator, cudaStream_t stream) {
  return call("ncclAllReduce", communicator, {Task::Kind::all_reduce, in, out, count, type, op, -1, stream});
}
ncclResult_t reduce_scatter(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                            ncclComm_t communicator, cudaStream_t stream) {
  return call("ncclReduceScatter", communicator,
              {Task::Kind::reduce_scatter, in, out, count, type, op, -1, stream});
}
ncclResult_t all_gather(const void* in, void* out, size_t count, ncclDataType_t type, ncclComm_t communicator,
                        cudaStream_t stream) {
  return call("ncclAllGather", communicator,
              {Task::Kind::all_gather, in, out, count, type, ncclSum, -1, stream});
}
ncclResult_t reduce(const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                    ncclComm_t communicator, cudaStream_t stream) {
  return call("ncclReduce", communicator, {Task::Kind::reduce, in, out, count, type, op, root, stream});
}
ncclResult_t broadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                       ncclComm_t communicator, cudaStream_t stream) {
  return call("ncclBroadcast", communicator,
              {Task::Kind::broadcast, in, out, count, type, ncclSum, root, stream});
}
ncclResult_t send(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                  cudaStream_t stream) {
  return call("ncclSend", communicator, {Task::Kind::send, in, nullptr, count, type, ncclSum, peer, stream});
}
ncclResult_t recv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                  cudaStream_t stream) {
  return call("ncclRecv", communicator, {Task::Kind::recv, nullptr, out, count, type, ncclSum, peer, stream});
}

const char* get_error_string(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "internal error";
  }
}

const char* get_last_error(ncclComm_t) {
  return "scripted";
}

}  // namespace

const NcclLibrary& nccl() {
  static const NcclLibrary library = {.get_version = get_version,
                                      .get_unique_id = get_unique_id,
                                      .comm_init = comm_init,
                                      .comm_get_async_error = comm_get_async_error,
                                      .comm_finalize = comm_finalize,
                                      .comm_destroy = comm_destroy,
                                      .comm_abort = comm_abort,
                                      .group_start = group_start,
                                      .group_end = group_end,
                                      .all_reduce = all_reduce,
                                      .reduce_scatter = reduce_scatter,
                                      .all_gather = all_gather,
                                      .reduce = reduce,
                                      .broadcast = broadcast,
                                      .send = send,
                                      .recv = recv,
                                      .get_error_string = get_error_string,
                                      .get_last_error = get_last_error};
  return library;
}

DeviceLibraries libraries() {
  return {nccl(), cuda()};
}

int take_launches() {
  return launches.exchange(0);
}

std::vector<Created> take_created() {
  const std::lock_guard lock(registry_mutex);
  return std::exchange(created, {});
}

int living_communicators() {
  return living;
}

}  // namespace sailor::fake
