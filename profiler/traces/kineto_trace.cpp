#include "profiler/traces/kineto_trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "planner/spec/error.h"

namespace sailor {
namespace {

// A file that gzip has compressed, or has not. Throws std::runtime_error while it is read.
class GzipFile : public std::streambuf {
 public:
  explicit GzipFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose_r) {
    if (!file_) throw InputError({path, 0}, std::strerror(errno));
  }

 protected:
  int_type underflow() override {
    const int size = gzread(file_.get(), buffer_, sizeof buffer_);
    if (size < 0) {
      int error = 0;
      throw std::runtime_error(fmt::format("{}: {}", path_, gzerror(file_.get(), &error)));
    }
    setg(buffer_, buffer_, buffer_ + size);
    return size == 0 ? traits_type::eof() : traits_type::to_int_type(buffer_[0]);
  }

 private:
  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  char buffer_[1 << 16];
};

// One entry of "traceEvents", as far as it is of use.
struct Event {
  std::string phase, category, name;
  double begin_us = -1, duration_us = 0;
  int64_t thread = 0, id = -1, sequence = -1, correlation = -1;
};

bool starts_with(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

void keep(const Event& event, ProgramTrace& trace) {
  if (event.phase != "X" || event.begin_us < 0) return;
  const TraceSpan span{event.begin_us, event.begin_us + event.duration_us, event.thread};
  if (event.category == "cpu_op") {
    const bool backward = starts_with(event.name, "autograd::engine::evaluate_function: ");
    const bool accumulates = backward && event.name.find("AccumulateGrad") != std::string::npos;
    trace.operators.push_back({span, event.id, event.sequence, backward, accumulates});
  } else if (event.category == "python_function" && starts_with(event.name, "nn.Module: ")) {
    trace.modules.push_back({span, event.name.substr(std::strlen("nn.Module: "))});
  } else if (event.category == "kernel" || event.category == "gpu_memcpy" || event.category == "gpu_memset") {
    trace.kernels.push_back({span, event.id, event.correlation, starts_with(event.name, "nccl")});
  } else if (event.category == "cuda_runtime" || event.category == "cuda_driver") {
    trace.launches.push_back({span, event.correlation});
  } else if (starts_with(event.name, "Optimizer.step#")) {
    trace.optimizer_steps.push_back(span);
  }
}

// Reads a trace without keeping it: traces have hundreds of megabytes. An event is an object of the array
// "traceEvents"; its own keys are at depth 3 (document, array, event), those of its "args" at depth 4.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Reader(ProgramTrace& trace) : trace_(trace) {}
  bool has_events() const { return has_events_; }
  const std::string& error() const { return error_; }

  bool start_object(std::size_t) override {
    ++depth_;
    if (in_events_ && depth_ == 3) event_ = {};
    return true;
  }
  bool end_object() override {
    if (in_events_ && depth_ == 3) keep(event_, trace_);
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (depth_ == 2 && top_ == "traceEvents") in_events_ = has_events_ = true;
    return true;
  }
  bool end_array() override {
    if (depth_ == 2) in_events_ = false;
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) top_ = name;
    if (depth_ == 3) in_arguments_ = name == "args";
    key_ = name;
    return true;
  }
  bool string(string_t& text) override {
    if (in_events_ && depth_ == 3) {
      if (key_ == "ph") event_.phase = text;
      if (key_ == "cat") event_.category = text;
      if (key_ == "name") event_.name = text;
    } else if (top_ == "deviceProperties" && key_ == "name" && trace_.device.empty()) {
      trace_.device = text;
    }
    return true;
  }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value), value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value), static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    constexpr double kMost = 1e18;  // no id or thread is
    return number(value, std::abs(value) < kMost ? static_cast<int64_t>(value) : -1);
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error_ =
        fmt::format("no JSON at byte {}: this is no trace of torch.profiler, or an incomplete one", position);
    return false;
  }

 private:
  bool number(double value, int64_t whole) {
    if (!in_events_) return true;
    if (depth_ == 3) {
      if (key_ == "ts") event_.begin_us = value;
      if (key_ == "dur") event_.duration_us = value;
      if (key_ == "tid") event_.thread = whole;
    } else if (depth_ == 4 && in_arguments_) {
      if (key_ == "External id") event_.id = whole;
      if (key_ == "Sequence number") event_.sequence = whole;
      if (key_ == "correlation") event_.correlation = whole;
    }
    return true;
  }

  ProgramTrace& trace_;
  int depth_ = 0;
  bool in_events_ = false, has_events_ = false, in_arguments_ = false;
  std::string top_, key_, error_;
  Event event_;
};

}  // namespace

ProgramTrace read_kineto_trace(const std::string& path) {
  ProgramTrace trace;
  trace.file = path;
  trace.recorded_by = "torch.profiler";
  trace.module_names = "profile with with_stack=True, and without torch.compile";
  GzipFile file(path);
  std::istream in(&file);
  Reader reader(trace);
  if (!nlohmann::json::sax_parse(in, &reader)) throw InputError({path, 0}, reader.error());
  if (!reader.has_events())
    throw InputError({path, 0}, "no \"traceEvents\": this is no trace of torch.profiler");
  if (trace.operators.empty())
    throw InputError({path, 0}, "the trace has no operators: profile with ProfilerActivity.CPU, too");
  sort_by_begin(trace);
  return trace;
}

}  // namespace sailor
