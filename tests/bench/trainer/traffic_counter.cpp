#include "tests/bench/trainer/traffic_counter.h"

#include <ATen/SequenceNumber.h>

#include <algorithm>
#include <memory>

namespace sailor::bench {
namespace {

thread_local TrafficCounter* counter_of_thread = nullptr;

void collect(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      if (tensor.defined()) tensors.push_back(tensor);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) collect(element, tensors);
  }
}
template <class Values>
std::vector<at::Tensor> tensors_of(const Values& values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) collect(value, tensors);
  return tensors;
}

// What a pass over a tensor moves: an expanded one is read once.
int64_t moved_bytes(const at::Tensor& tensor) {
  return std::min<int64_t>(tensor.numel() * static_cast<int64_t>(tensor.element_size()),
                           static_cast<int64_t>(tensor.storage().nbytes()));
}

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl();
}

bool starts_with_any(const std::string& name, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const char* part) { return name.rfind(part, 0) == 0; });
}

int64_t operator_bytes(const std::string& name, const std::vector<at::Tensor>& inputs,
                       const std::vector<at::Tensor>& outputs) {
  if (outputs.empty() || starts_with_any(name, {"aten::empty", "aten::new_empty", "aten::detach", "detach"}))
    return 0;
  const bool in_place = name.back() == '_';
  int64_t bytes = 0;
  for (const at::Tensor& output : outputs) {
    const bool is_view = std::any_of(inputs.begin(), inputs.end(),
                                     [&](const at::Tensor& input) { return same_memory(input, output); });
    if (is_view && !in_place && name.find("out") == std::string::npos) return 0;
    bytes += moved_bytes(output);
  }
  const bool overwrites = starts_with_any(name, {"aten::copy_", "aten::fill_", "aten::zero_"});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!(i == 0 && overwrites)) bytes += moved_bytes(inputs[i]);
  }
  return bytes;
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  counter_of_thread->begin(function);
  return nullptr;
}
void on_end(const at::RecordFunction& function, at::ObserverContext*) {
  counter_of_thread->end(function);
}

}  // namespace

TrafficCounter::TrafficCounter()
    : handle_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(&on_begin, &on_end)
              .needsInputs(true)
              .needsOutputs(true)
              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {
  counter_of_thread = this;
  kernels::recorder_of_thread = this;
}

TrafficCounter::~TrafficCounter() {
  at::removeCallback(handle_);
  kernels::recorder_of_thread = nullptr;
  counter_of_thread = nullptr;
}

Traffic TrafficCounter::take() {
  by_name_.clear();
  return std::exchange(sum_, {});
}

void TrafficCounter::add(const std::string& name, int64_t bytes, int launches) {
  if (bytes == 0) return;
  for (Traffic* traffic : {&sum_, &by_name_[name]}) {
    traffic->bytes += bytes;
    traffic->launches += launches;
  }
}

TrafficCounter::Fused* TrafficCounter::fused_of(int64_t sequence_number) {
  const auto found = std::find_if(fused_.begin(), fused_.end(), [&](const Fused& fused) {
    return sequence_number >= static_cast<int64_t>(fused.first) &&
           sequence_number < static_cast<int64_t>(fused.end);
  });
  return found == fused_.end() ? nullptr : &*found;
}

void TrafficCounter::begin(const char* kernel, int64_t bytes, int launches) {
  kernels_.push_back(kernel);
  if (inside_++ > 0) return;
  add(kernel, bytes, launches);
  first_of_fused_ = at::sequence_number::peek();
  bytes_of_fused_ = 2 * bytes;
}

void TrafficCounter::end() {
  const std::string kernel = kernels_.back();
  kernels_.pop_back();
  if (--inside_ == 0 && (kernel == "attention" || kernel == "merge"))
    fused_.push_back({first_of_fused_, at::sequence_number::peek(), bytes_of_fused_, 3});
}

void TrafficCounter::begin(const at::RecordFunction& function) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    if (Fused* const fused = fused_of(function.seqNr())) {
      if (!std::exchange(fused->counted, true)) add("attention backward", fused->bytes, fused->launches);
      ++inside_;
    }
    return;
  }
  operators_.push_back({function.name(), tensors_of(function.inputs())});  // which are gone when it ends
}

void TrafficCounter::end(const at::RecordFunction& function) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    if (fused_of(function.seqNr())) --inside_;
    return;
  }
  const Operator ended = std::move(operators_.back());
  operators_.pop_back();
  bool counts = ended.has_children;
  // Processors clear the result of a sum first.
  const bool of_sum = !operators_.empty() && operators_.back().name == "aten::sum";
  if (inside_ == 0 && !ended.has_children && !of_sum) {
    const int64_t bytes = operator_bytes(ended.name, ended.inputs, tensors_of(function.outputs()));
    add(ended.name, bytes, 1);
    counts = bytes > 0;
  }
  if (counts && !operators_.empty()) operators_.back().has_children = true;
}

}  // namespace sailor::bench
