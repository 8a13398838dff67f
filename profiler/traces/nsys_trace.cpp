#include "profiler/traces/nsys_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <unordered_map>

#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

constexpr const char* kHowToExport =
    "export it with `nsys stats --report nvtx_gpu_proj_trace --format csv --output . FILE.nsys-rep`";

enum Column {
  name,
  begin_ns,
  length_ns,
  host_begin_ns,
  host_length_ns,
  style,
  process,
  thread,
  gpu_work,
  id,
  parent
};
constexpr std::array<const char*, 11> kColumns = {"Name",
                                                  "Projected Start (ns)",
                                                  "Projected Duration (ns)",
                                                  "Orig Start (ns)",
                                                  "Orig Duration (ns)",
                                                  "Style",
                                                  "PID",
                                                  "TID",
                                                  "NumGPUOps",
                                                  "RangeId",
                                                  "ParentId"};

// One range: where its work was on the GPU, and where it was itself.
struct Range {
  std::string name;
  TraceSpan on_gpu, on_host;
  int64_t process = 0, gpu_work = 0, id = 0, parent = -1;

  bool starts_with(const char* prefix) const { return name.rfind(prefix, 0) == 0; }
  // emit_nvtx() numbers all that it names: "aten::addmm, seq = 12, op_id = 345".
  std::optional<int64_t> number(const char* key) const {
    const std::string text = fmt::format(", {} = ", key);
    const size_t at = name.find(text);
    if (at == std::string::npos) return std::nullopt;
    const std::string rest = name.substr(at + text.size());
    const auto value = parse_number(rest.substr(0, rest.find_first_not_of("0123456789")));
    constexpr double kMost = 1e15;
    return value && *value < kMost ? std::optional(static_cast<int64_t>(*value)) : std::nullopt;
  }
};

// The cells of a record of a CSV file (RFC 4180: quoted cells may hold commas, quotes and line ends); false
// at its end. `line` is advanced.
bool read_record(std::istream& in, std::vector<std::string>& cells, int& line) {
  cells.assign(1, "");
  bool quoted = false, any = false;
  for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
    any = true;
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"')
        cells.back() += static_cast<char>(c);
      else if (in.peek() == '"')
        cells.back() += static_cast<char>(in.get());
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      cells.emplace_back();
    } else if (c == '\n') {
      return true;
    } else if (c != '\r') {
      cells.back() += static_cast<char>(c);
    }
  }
  return any;
}

class Report {
 public:
  explicit Report(const std::string& path) : path_(path), in_(path) {
    if (!in_) throw InputError({path, 0}, std::strerror(errno));
    find_columns();
  }

  std::vector<Range> ranges() {
    std::vector<Range> ranges;
    for (record_line_ = line_; read_record(in_, cells_, line_); record_line_ = line_) {
      if (cells_.size() == 1 && cells_.front().empty()) continue;
      if (cells_.size() < width_)
        throw InputError(
            {path_, record_line_},
            fmt::format("has {} cells, the header {}: the report is incomplete", cells_.size(), width_));
      if (cell(style) == "PushPop") ranges.push_back(range());
    }
    return ranges;
  }

 private:
  // Before the header, nsys may have printed what it does.
  void find_columns() {
    while (read_record(in_, cells_, line_)) {
      if (cells_.front() != kColumns[name]) continue;
      width_ = cells_.size();
      for (size_t column = 0; column < kColumns.size(); ++column) {
        const auto at = std::find(cells_.begin(), cells_.end(), kColumns[column]);
        if (at == cells_.end())
          throw InputError({path_, line_ - 1},
                           fmt::format("no column \"{}\": {}", kColumns[column], kHowToExport));
        at_[column] = static_cast<size_t>(at - cells_.begin());
      }
      return;
    }
    throw InputError({path_, 0}, fmt::format("no report of NVTX ranges of Nsight Systems: {}", kHowToExport));
  }

  const std::string& cell(Column column) const { return cells_[at_[column]]; }

  int64_t whole(Column column) const {
    constexpr double kMost = 9e18;
    const auto value = parse_number(cell(column));
    if (!value || *value < 0 || *value > kMost || *value != std::floor(*value))
      throw InputError({path_, record_line_}, fmt::format("{}: must be a whole number, is {}",
                                                          kColumns[column], in_quotes(cell(column))));
    return static_cast<int64_t>(*value);
  }
  TraceSpan span(Column begin, Column length, int64_t thread) const {
    constexpr double kUs = 1e-3;
    const double begin_us = kUs * static_cast<double>(whole(begin));
    return {begin_us, begin_us + kUs * static_cast<double>(whole(length)), thread};
  }
  Range range() const {
    Range range;
    range.name = cell(name);
    // The name of the domain comes first; PyTorch's is the default one, which has none.
    if (range.starts_with(":")) range.name.erase(0, 1);
    range.process = whole(process);
    range.on_host = span(host_begin_ns, host_length_ns, whole(thread));
    range.on_gpu = span(begin_ns, length_ns, 0);
    range.gpu_work = whole(gpu_work);
    range.id = whole(id);
    if (!cell(parent).empty()) range.parent = whole(parent);
    return range;
  }

  const std::string path_;
  std::ifstream in_;
  int line_ = 1, record_line_ = 1;
  size_t width_ = 0;
  std::array<size_t, kColumns.size()> at_{};
  std::vector<std::string> cells_;
};

constexpr const char* kModule = "nn.Module: ";
constexpr const char* kNode = "autograd::engine::evaluate_function: ";
constexpr const char* kStep = "Optimizer.step#";

// The ranges by their nesting.
class Ranges {
 public:
  explicit Ranges(std::vector<Range> all) : all_(std::move(all)) {
    for (size_t i = 0; i < all_.size(); ++i) index_[all_[i].id] = i;
    for (const Range& range : all_) {
      if (const Range* outer = parent(range)) {
        inner_work_[outer->id] += range.gpu_work;
        if (outer->starts_with(kNode) && !sequences_.contains(outer->id))
          if (const auto sequence = range.number("seq")) sequences_[outer->id] = *sequence;
      }
      if (range.starts_with(kModule))
        for (const Range* outer = parent(range); outer && holds_module_.insert(outer->id).second;)
          outer = parent(*outer);
    }
  }

  const std::vector<Range>& all() const { return all_; }
  const Range* parent(const Range& range) const {
    const auto at = index_.find(range.parent);
    // What encloses a range began before it, or is the same.
    return range.parent < 0 || at == index_.end() || &all_[at->second] == &range ? nullptr
                                                                                 : &all_[at->second];
  }
  // Not one that only names a part of the program, like "DistributedDataParallel.forward".
  bool is_operator(const Range& range) const {
    return range.number("op_id") && !range.starts_with(kStep) && !holds_module_.contains(range.id);
  }
  const Range* operator_around(const Range& range) const {
    int depth = 0;
    constexpr int kMostNested = 1000;
    for (const Range* at = &range; at != nullptr && depth < kMostNested; at = parent(*at), ++depth)
      if (is_operator(*at)) return at;
    return nullptr;
  }
  // Does a part of its work belong to none of the ranges in it?
  bool has_own_work(const Range& range) const {
    const auto inner = inner_work_.find(range.id);
    return inner == inner_work_.end() || inner->second < range.gpu_work;
  }
  int64_t sequence_of(const Range& range) const {
    const auto inner = sequences_.find(range.id);
    return range.number("seq").value_or(inner == sequences_.end() ? -1 : inner->second);
  }

 private:
  const std::vector<Range> all_;
  std::unordered_map<int64_t, size_t> index_;
  std::unordered_map<int64_t, int64_t> inner_work_, sequences_;
  std::set<int64_t> holds_module_;
};

bool communicates(const Range& range) {
  return range.starts_with("NCCL:") || range.starts_with("nccl");
}

void require_one_process(const std::vector<Range>& ranges, const std::string& path) {
  std::set<int64_t> processes;
  for (const Range& range : ranges)
    if (range.number("op_id")) processes.insert(range.process);
  if (processes.empty())
    throw InputError({path, 0},
                     "no ranges of PyTorch's operators: profile with `nsys profile --trace=cuda,nvtx "
                     "--pytorch=autograd-nvtx`, or in torch.autograd.profiler.emit_nvtx()");
  if (processes.size() > 1)
    throw InputError({path, 0},
                     fmt::format("has operators of {} processes: profile a single rank", processes.size()));
}

}  // namespace

bool is_nsys_report(const std::string& path) {
  for (const char* ending : {".nsys-rep", ".qdrep", ".sqlite"})
    if (path.ends_with(ending))
      throw InputError({path, 0}, fmt::format("the CSV report of it is needed: {}", kHowToExport));
  return path.ends_with(".csv");
}

ProgramTrace read_nsys_trace(const std::string& path) {
  std::vector<Range> read = Report(path).ranges();
  require_one_process(read, path);
  const Ranges ranges(std::move(read));
  ProgramTrace trace;
  trace.file = path;
  trace.recorded_by = "Nsight Systems";
  trace.module_names = "call sailor_steps.name_modules() before training, and profile without torch.compile";
  for (const Range& range : ranges.all()) {
    if (range.starts_with(kModule))
      trace.modules.push_back({range.on_host, range.name.substr(std::strlen(kModule))});
    if (range.starts_with(kStep)) trace.optimizer_steps.push_back(range.on_host);
    if (ranges.is_operator(range)) {
      const bool backward = range.starts_with(kNode);
      const bool accumulates = backward && range.name.find("AccumulateGrad") != std::string::npos;
      trace.operators.push_back({range.on_host, range.id, ranges.sequence_of(range), backward, accumulates});
    }
    const Range* of = ranges.operator_around(range);
    if (of != nullptr && range.gpu_work > 0 && ranges.has_own_work(range))
      trace.kernels.push_back({range.on_gpu, of->id, -1, communicates(range)});
  }
  sort_by_begin(trace);
  return trace;
}

}  // namespace sailor
