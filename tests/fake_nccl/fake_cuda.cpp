#include "tests/fake_nccl/fake_cuda.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fake_nccl/fault_script.h"

namespace sailor::fake {
namespace {

thread_local int device = 0;
thread_local cudaError_t last_error = cudaSuccess;

constexpr std::size_t kDeviceBytes = std::size_t{1} << 30;
std::atomic<std::size_t> free_bytes{kDeviceBytes};

std::mutex contexts_mutex;
std::set<int> contexts;

// As the runtime since CUDA 12: what uses a device creates its context, and so does cudaSetDevice.
void need_context(const char* call, int on_device) {
  const std::lock_guard lock(contexts_mutex);
  if (contexts.insert(on_device).second && on_device == 0)
    report_violation(std::string(call) + " created a context on device 0, which no rank has");
}

// What the script makes of the call; cudaSuccess: it is to do its work.
cudaError_t scripted(const char* call, int on_device = device) {
  const auto fault = script().next(call, on_device);
  if (!fault) return cudaSuccess;
  if (fault->kind == Fault::Kind::hang) {
    script().hang({});
    return cudaSuccess;
  }
  return last_error = static_cast<cudaError_t>(fault->code);
}

struct StreamState {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> kernels;
  bool closed = false;

  void run() {
    while (true) {
      std::function<void()> kernel;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return closed || !kernels.empty(); });
        if (kernels.empty()) return;
        kernel = std::move(kernels.front());
        kernels.pop_front();
      }
      kernel();
    }
  }
};
struct Stream {
  std::shared_ptr<StreamState> state = std::make_shared<StreamState>();
};

struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0, reached = 0;
  std::chrono::steady_clock::time_point at;  // when it was reached last
};
struct Event {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

void enqueue_on(StreamState& state, std::function<void()> kernel) {
  const std::lock_guard lock(state.mutex);
  state.kernels.push_back(std::move(kernel));
  state.changed.notify_all();
}
// Of what is enqueued so far.
std::future<void> end_of(StreamState& state) {
  const auto reached = std::make_shared<std::promise<void>>();
  enqueue_on(state, [reached] { reached->set_value(); });
  return reached->get_future();
}

Stream& of(cudaStream_t stream) {
  return *reinterpret_cast<Stream*>(stream);
}
Event& of(cudaEvent_t event) {
  return *reinterpret_cast<Event*>(event);
}

std::mutex streams_mutex;
std::multimap<int, std::weak_ptr<StreamState>> streams;  // by device
std::multiset<int> loading;
constexpr std::chrono::seconds kLongestLoad{30};

cudaError_t get_device(int* result) {
  if (const auto error = scripted("cudaGetDevice")) return error;
  *result = device;
  return cudaSuccess;
}

cudaError_t set_device(int wanted) {
  if (const auto error = scripted("cudaSetDevice", wanted)) return error;
  need_context("cudaSetDevice", wanted);
  device = wanted;
  return cudaSuccess;
}

cudaError_t stream_create(cudaStream_t* result, unsigned) {
  if (const auto error = scripted("cudaStreamCreateWithFlags")) return error;
  need_context("cudaStreamCreateWithFlags", device);
  auto* const stream = new Stream;
  std::thread([state = stream->state] { state->run(); }).detach();
  const std::lock_guard lock(streams_mutex);
  streams.emplace(device, stream->state);
  *result = reinterpret_cast<cudaStream_t>(stream);
  return cudaSuccess;
}

// As the real one: what is enqueued is still done.
cudaError_t stream_destroy(cudaStream_t stream) {
  need_context("cudaStreamDestroy", device);
  const std::unique_ptr<Stream> gone(&of(stream));
  const std::lock_guard lock(gone->state->mutex);
  gone->state->closed = true;
  gone->state->changed.notify_all();
  return cudaSuccess;
}

cudaError_t event_create(cudaEvent_t* result, unsigned) {
  if (const auto error = scripted("cudaEventCreateWithFlags")) return error;
  need_context("cudaEventCreateWithFlags", device);
  *result = reinterpret_cast<cudaEvent_t>(new Event);
  return cudaSuccess;
}

cudaError_t event_destroy(cudaEvent_t event) {
  need_context("cudaEventDestroy", device);
  delete &of(event);
  return cudaSuccess;
}

cudaError_t event_record(cudaEvent_t event, cudaStream_t stream) {
  if (const auto error = scripted("cudaEventRecord")) return error;
  need_context("cudaEventRecord", device);
  const auto state = of(event).state;
  uint64_t number = 0;
  {
    const std::lock_guard lock(state->mutex);
    number = ++state->recorded;
  }
  enqueue(stream, [state, number] {
    const std::lock_guard lock(state->mutex);
    state->reached = std::max(state->reached, number);
    state->at = std::chrono::steady_clock::now();
    state->changed.notify_all();
  });
  return cudaSuccess;
}

cudaError_t event_query(cudaEvent_t event) {
  if (const auto error = scripted("cudaEventQuery")) return error;
  need_context("cudaEventQuery", device);
  EventState& state = *of(event).state;
  const std::lock_guard lock(state.mutex);
  return last_error = state.reached >= state.recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t stream_wait_event(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const auto error = scripted("cudaStreamWaitEvent")) return error;
  need_context("cudaStreamWaitEvent", device);
  const auto state = of(event).state;
  uint64_t number = 0;
  {
    const std::lock_guard lock(state->mutex);
    number = state->recorded;
  }
  enqueue(stream, [state, number] {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->reached >= number; });
  });
  return cudaSuccess;
}

cudaError_t event_synchronize(cudaEvent_t event) {
  if (const auto error = scripted("cudaEventSynchronize")) return error;
  need_context("cudaEventSynchronize", device);
  EventState& state = *of(event).state;
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&state, number = state.recorded] { return state.reached >= number; });
  return cudaSuccess;
}

cudaError_t event_elapsed_time(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const std::scoped_lock lock(of(from).state->mutex, of(to).state->mutex);
  *milliseconds = std::chrono::duration<float, std::milli>(of(to).state->at - of(from).state->at).count();
  return cudaSuccess;
}

cudaError_t device_malloc(void** result, std::size_t bytes) {
  if (const auto error = scripted("cudaMalloc")) return error;
  need_context("cudaMalloc", device);
  if (bytes > free_bytes) return last_error = cudaErrorMemoryAllocation;
  *result = std::malloc(bytes);
  return *result ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t device_free(void* data) {
  need_context("cudaFree", device);
  std::free(data);
  return cudaSuccess;
}

cudaError_t launch_host_func(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (const auto error = scripted("cudaLaunchHostFunc")) return error;
  need_context("cudaLaunchHostFunc", device);
  enqueue(stream, [=] { function(data); });
  return cudaSuccess;
}

cudaError_t stream_synchronize(cudaStream_t stream) {
  if (const auto error = scripted("cudaStreamSynchronize")) return error;
  need_context("cudaStreamSynchronize", device);
  end_of(*of(stream).state).wait();
  return cudaSuccess;
}

cudaError_t memcpy_async(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (const auto error = scripted("cudaMemcpyAsync")) return error;
  need_context("cudaMemcpyAsync", device);
  enqueue(stream, [=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}

cudaError_t mem_get_info(std::size_t* free, std::size_t* total) {
  if (const auto error = scripted("cudaMemGetInfo")) return error;
  need_context("cudaMemGetInfo", device);
  *total = kDeviceBytes;
  *free = free_bytes;
  return cudaSuccess;
}

cudaError_t get_device_count(int* count) {
  *count = 0;
  return cudaErrorNoDevice;
}

cudaError_t device_by_pci(int*, const char*) {
  return last_error = cudaErrorInvalidDevice;
}

cudaError_t get_device_properties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "no GPU");
  return cudaSuccess;
}

std::atomic<int> host_allocation_count = 0;

cudaError_t host_alloc(void** result, std::size_t bytes, unsigned) {
  if (const auto error = scripted("cudaHostAlloc")) return error;
  need_context("cudaHostAlloc", device);
  ++host_allocation_count;
  *result = std::malloc(bytes);
  return *result ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t free_host(void* data) {
  need_context("cudaFreeHost", device);
  std::free(data);
  return cudaSuccess;
}

cudaError_t get_last_error() {
  return std::exchange(last_error, cudaSuccess);
}

const char* get_error_string(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "scripted CUDA error";
}

}  // namespace

const CudaLibrary& cuda() {
  static const CudaLibrary library = {.get_device = get_device,
                                      .set_device = set_device,
                                      .stream_create = stream_create,
                                      .stream_destroy = stream_destroy,
                                      .stream_wait_event = stream_wait_event,
                                      .stream_synchronize = stream_synchronize,
                                      .event_create = event_create,
                                      .event_record = event_record,
                                      .event_query = event_query,
                                      .event_synchronize = event_synchronize,
                                      .event_destroy = event_destroy,
                                      .event_elapsed_time = event_elapsed_time,
                                      .memcpy_async = memcpy_async,
                                      .mem_get_info = mem_get_info,
                                      .get_device_count = get_device_count,
                                      .device_by_pci = device_by_pci,
                                      .get_device_properties = get_device_properties,
                                      .malloc = device_malloc,
                                      .free = device_free,
                                      .launch_host_func = launch_host_func,
                                      .host_alloc = host_alloc,
                                      .free_host = free_host,
                                      .get_last_error = get_last_error,
                                      .get_error_string = get_error_string};
  return library;
}

std::set<int> take_contexts() {
  const std::lock_guard lock(contexts_mutex);
  return std::exchange(contexts, {});
}

int host_allocations() {
  return host_allocation_count;
}

void set_free_bytes(std::size_t bytes) {
  free_bytes = bytes;
}

int current_device() {
  return device;
}

void load_code(int device) {
  std::vector<std::future<void>> ends;
  {
    const std::lock_guard lock(streams_mutex);
    loading.insert(device);
    std::erase_if(streams, [](const auto& stream) { return stream.second.expired(); });
    for (auto [stream, end] = streams.equal_range(device); stream != end; ++stream) {
      if (const auto state = stream->second.lock()) ends.push_back(end_of(*state));
    }
  }
  const auto until = std::chrono::steady_clock::now() + kLongestLoad;
  if (!std::all_of(ends.begin(), ends.end(), [&](const std::future<void>& end) {
        return end.wait_until(until) == std::future_status::ready;
      }))
    report_violation("code was loaded while the device waited for others, who may wait for this rank");
  const std::lock_guard lock(streams_mutex);
  loading.erase(loading.find(device));
}

bool loads_code(int device) {
  const std::lock_guard lock(streams_mutex);
  return loading.contains(device);
}

void enqueue(cudaStream_t stream, std::function<void()> kernel) {
  enqueue_on(*of(stream).state, std::move(kernel));
}

}  // namespace sailor::fake
