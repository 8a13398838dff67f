#include "planner/report/trace_events.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace sailor {

void TraceEvents::name_process(int process, const std::string& text) {
  name("process", process, 0, text, process);
}

void TraceEvents::name_thread(int process, int thread, const std::string& text) {
  name("thread", process, thread, text, thread);
}

void TraceEvents::name(const char* what, int process, int thread, const std::string& name, int order) {
  append(fmt::format(R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":{}}}}})", what, process,
                     thread, nlohmann::json(name).dump(-1, ' ', true)));
  append(fmt::format(R"({{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                     what, process, thread, order));
}

// The format counts in microseconds.
void TraceEvents::span(int process, int thread, const std::string& name, const char* category, double start_s,
                       double end_s) {
  append(fmt::format(R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})",
                     name, category, process, thread, start_s * 1e6, (end_s - start_s) * 1e6));
}

void TraceEvents::append(const std::string& event) {
  out_ += first_ ? "\n" : ",\n";
  first_ = false;
  out_ += event;
}

}  // namespace sailor
