#include "trainer/comm/nccl/cuda_device.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace sailor {
namespace {

cudaStream_t cuda_stream(Stream stream) {
  return static_cast<cudaStream_t>(stream);
}

constexpr std::chrono::seconds kLongestHold{1};

// A host function in a stream, which ends when the gate is opened.
class Gate {
 public:
  // Requires that the device is current.
  static std::shared_ptr<Gate> in(const CudaLibrary& cuda, cudaStream_t stream) {
    const auto gate = std::make_shared<Gate>();
    auto of_stream = std::make_unique<std::shared_ptr<Gate>>(gate);
    check(cuda, cuda.launch_host_func(stream, pass, of_stream.get()), "cudaLaunchHostFunc");
    static_cast<void>(of_stream.release());  // pass() has it
    return gate;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }

 private:
  static void CUDART_CB pass(void* data) {
    const std::unique_ptr<std::shared_ptr<Gate>> gate(static_cast<std::shared_ptr<Gate>*>(data));
    Gate& g = **gate;
    std::unique_lock lock(g.mutex_);
    g.opened_.wait_for(lock, kLongestHold, [&g] { return g.open_; });
  }

  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

class CudaPoint : public StreamPoint {
 public:
  CudaPoint(const CudaLibrary& cuda, int index, cudaStream_t stream)
      : cuda_(cuda), index_(index), event_(cuda) {
    event_.record(stream);
  }
  void order(Stream after) override {
    use_device(cuda_, index_);
    if (after != nullptr) return CudaStream::wait_for(cuda_, cuda_stream(after), event_.get());
    check(cuda_, cuda_.event_synchronize(event_.get()), "cudaEventSynchronize");
  }

 private:
  const CudaLibrary& cuda_;
  const int index_;
  CudaEvent event_;
};

class CudaMark : public TimeMark {
 public:
  explicit CudaMark(const CudaLibrary& cuda) : event(cuda, CudaEvent::Times::yes) {}
  CudaEvent event;
};

cudaEvent_t event_of(const TimeMark& mark) {
  return dynamic_cast<const CudaMark&>(mark).event.get();
}

}  // namespace

CudaDevice::CudaDevice(int index, const CudaLibrary& cuda, Tensors tensors)
    : cuda_(cuda), index_(index), tensors_(tensors) {
  use_device(cuda_, index_);
  streams_.emplace(cuda_);
}

CudaDevice::~CudaDevice() = default;

Stream CudaDevice::compute() const {
  return tensors_ == Tensors::on_device ? streams_->compute.get() : nullptr;
}

void CudaDevice::order(Stream before, Stream after) {
  if (before == nullptr || before == after) return;  // the caller has computed it already
  if (after == nullptr) return wait(before);
  use_device(cuda_, index_);
  CudaEvent event(cuda_);
  event.record(cuda_stream(before));
  CudaStream::wait_for(cuda_, cuda_stream(after), event.get());
}

std::unique_ptr<StreamPoint> CudaDevice::point(Stream stream) {
  if (stream == nullptr) return nullptr;  // the caller has computed it already
  use_device(cuda_, index_);
  return std::make_unique<CudaPoint>(cuda_, index_, cuda_stream(stream));
}

void CudaDevice::wait(Stream stream) {
  if (stream == nullptr) return;
  use_device(cuda_, index_);
  check(cuda_, cuda_.stream_synchronize(cuda_stream(stream)), "cudaStreamSynchronize");
}

void CudaDevice::copy(void* to, const void* from, std::size_t bytes, Stream stream) {
  if (bytes == 0) return;
  if (stream == nullptr) return Device::copy(to, from, bytes, stream);
  use_device(cuda_, index_);
  check(cuda_, cuda_.memcpy_async(to, from, bytes, cudaMemcpyDefault, cuda_stream(stream)),
        "cudaMemcpyAsync");
}

std::shared_ptr<char> CudaDevice::host_memory(std::size_t bytes) {
  use_device(cuda_, index_);
  const auto buffer = std::make_shared<PinnedBuffer>(cuda_, bytes);
  return {buffer, static_cast<char*>(buffer->get())};
}

std::shared_ptr<char> CudaDevice::device_memory(std::size_t bytes) {
  use_device(cuda_, index_);
  const auto buffer = std::make_shared<DeviceBuffer>(cuda_, bytes);
  return {buffer, static_cast<char*>(buffer->get())};
}

std::shared_ptr<void> CudaDevice::hold(Stream stream) {
  if (stream == nullptr) return nullptr;
  use_device(cuda_, index_);
  const std::shared_ptr<Gate> gate = Gate::in(cuda_, cuda_stream(stream));
  return {gate.get(), [gate](void*) { gate->open(); }};
}

std::shared_ptr<TimeMark> CudaDevice::mark() {
  if (compute() == nullptr) return Device::mark();
  use_device(cuda_, index_);
  auto mark = std::make_shared<CudaMark>(cuda_);
  mark->event.record(cuda_stream(compute()));
  return mark;
}

double CudaDevice::seconds_between(const TimeMark& from, const TimeMark& to) {
  if (compute() == nullptr) return Device::seconds_between(from, to);
  use_device(cuda_, index_);
  check(cuda_, cuda_.event_synchronize(event_of(to)), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cuda_, cuda_.event_elapsed_time(&milliseconds, event_of(from), event_of(to)), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

CudaDevice::Memory CudaDevice::memory() {
  use_device(cuda_, index_);
  Memory memory;
  check(cuda_, cuda_.mem_get_info(&memory.free, &memory.total), "cudaMemGetInfo");
  return memory;
}

int64_t CudaDevice::used_bytes() {
  const Memory now = memory();
  return static_cast<int64_t>(now.total - now.free);
}

int64_t CudaDevice::total_bytes() {
  return static_cast<int64_t>(memory().total);
}

std::optional<std::string> CudaDevice::failure() try {
  static_cast<void>(memory());
  return std::nullopt;
} catch (const CudaError& error) {
  return error.what();
}

int cuda_device_count(const CudaLibrary& cuda) {
  int count = 0;
  const cudaError_t result = cuda.get_device_count(&count);
  if (result == cudaErrorNoDevice || result == cudaErrorInsufficientDriver) {
    static_cast<void>(cuda.get_last_error());
    return 0;
  }
  check(cuda, result, "cudaGetDeviceCount");
  return count;
}

std::string cuda_device_name(const CudaLibrary& cuda, int index) {
  const auto properties = std::make_unique<cudaDeviceProp>();
  check(cuda, cuda.get_device_properties(properties.get(), index), "cudaGetDeviceProperties");
  return properties->name;
}

std::optional<int> cuda_device_at(const CudaLibrary& cuda, const std::string& pci) {
  int index = 0;
  if (cuda.device_by_pci(&index, pci.c_str()) == cudaSuccess) return index;
  static_cast<void>(cuda.get_last_error());
  return std::nullopt;
}

}  // namespace sailor
