#include "trainer/data/mds/token_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sailor {
namespace {

// Numbers of types in arrays that have their type with them.
std::optional<TokenElement> element_of_code(int code) {
  using enum TokenElement;
  switch (code) {
    case 8:
      return u8;
    case 9:
      return i8;
    case 16:
      return u16;
    case 17:
      return i16;
    case 32:
      return u32;
    case 33:
      return i32;
    case 64:
      return u64;
    case 65:
      return i64;
    default:
      return std::nullopt;
  }
}

// The bytes that the library uses for each number of a shape.
int64_t shape_width(int64_t largest) {
  return largest < (1 << 8) ? 1 : largest < (1 << 16) ? 2 : 4;
}

}  // namespace

MdsTokens::MdsTokens(const MdsShard& shard, const MdsTokenColumn& column, const std::string& key)
    : file_(shard, key) {
  choose_column(column);
  count_tokens();
}

const std::string& MdsTokens::format() const {
  static const std::string name = "mosaicml";
  return name;
}

void MdsTokens::choose_column(const MdsTokenColumn& column) {
  const MdsShard& shard = file_.shard();
  const auto has = [&](const char* name) {
    return std::any_of(shard.columns.begin(), shard.columns.end(),
                       [&](const MdsColumn& c) { return c.name == name; });
  };
  std::string hint = "name the column of tokens in data.column";
  if (has("text")) hint += ", or convert texts with `sailor tokenize`";
  const std::string standard = has("input_ids") ? "input_ids" : "tokens";
  column_ = shard.column(column.name.empty() ? standard : column.name, hint);
  const auto& [name, encoding, size] = shard.columns[column_];
  if (encoding == "bytes") {
    element_ = column.bytes_element;
    return;
  }
  std::string type = encoding;
  array_ = type == "ndarray" || type.starts_with("ndarray:");
  if (array_) {
    type.erase(0, std::min<std::size_t>(type.size(), 8));
    fixed_shape_ = type.find(':') != std::string::npos;
    element_ = token_element(type.substr(0, type.find(':')));
    if (element_ || type.empty()) return;
  }
  throw InputError(shard.where,
                   fmt::format("column {} has the encoding {}, which holds no tokens (known: ndarray of "
                               "integers, bytes); {}",
                               name, encoding, hint));
}

void MdsTokens::fail_sample(int64_t sample, const std::string& what) const {
  file_.fail(fmt::format("sample {}, column {}: {}", sample, file_.shard().columns[column_].name, what));
}

MdsTokens::Values MdsTokens::array(int64_t sample, MdsFile::Bytes bytes) const {
  Values values{element_.value_or(TokenElement::u8), bytes};
  if (!element_ && !bytes.empty()) {
    const auto element = element_of_code(bytes[0]);
    if (!element) fail_sample(sample, fmt::format("values of type code {} are no tokens", bytes[0]));
    values.element = *element;
    bytes = bytes.subspan(1);
  }
  if (fixed_shape_) return values;
  const std::size_t width = bytes.empty() ? 0 : std::size_t{1} << (bytes[0] & 3);
  values.axes = bytes.empty() ? 0 : bytes[0] >> 2;
  const std::size_t shape = 1 + static_cast<std::size_t>(values.axes) * width;
  if (bytes.size() < shape) fail_sample(sample, "is too short for an array");
  values.bytes = bytes.subspan(shape);
  unsigned __int128 product = 1;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(values.axes); ++axis) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + 1 + axis * width, width);
    product = std::min<unsigned __int128>(product * length, UINT64_MAX);
  }
  if (product * bytes_of(values.element) != values.bytes.size())
    fail_sample(sample, fmt::format("its {} bytes do not have the array's shape", values.bytes.size()));
  return values;
}

MdsTokens::Values MdsTokens::values(int64_t sample) const {
  const MdsFile::Bytes bytes = file_.value(sample, column_);
  const Values values = array_ ? array(sample, bytes) : Values{*element_, bytes};
  const std::size_t width = bytes_of(values.element);
  if (values.bytes.size() % width != 0)
    fail_sample(sample,
                fmt::format("{} bytes are not a multiple of {}-bit tokens{}", values.bytes.size(), 8 * width,
                            array_ ? "" : "; set data.token_encoding_type to the tokens' type"));
  return values;
}

int64_t MdsTokens::count_by_size(int64_t sample, int64_t other_bytes) const {
  const int64_t bytes = file_.sample_bytes(sample) - other_bytes;
  const auto width = static_cast<int64_t>(bytes_of(*element_));
  if (!array_ || fixed_shape_) return bytes % width == 0 && bytes >= 0 ? bytes / width : -1;
  for (const int64_t axis : {1, 2, 4}) {
    const int64_t count = (bytes - 1 - axis) / width;
    if (bytes > axis && (bytes - 1 - axis) % width == 0 && shape_width(count) == axis) return count;
  }
  return -1;
}

void MdsTokens::count_tokens() {
  const int64_t samples = file_.samples();
  int64_t other_bytes = 0, varying = 0;  // of a sample, besides the tokens' column
  for (std::size_t i = 0; i < file_.shard().columns.size(); ++i) {
    const int64_t bytes = file_.shard().columns[i].bytes;
    if (bytes == 0) other_bytes += 4;
    if (bytes == 0 && i != column_) ++varying;
    if (i != column_) other_bytes += bytes;
  }
  const bool by_size = element_ && varying == 0 && samples > 0 && values(0).axes == 1;
  ends_.reserve(static_cast<std::size_t>(samples));
  int64_t end = 0;
  bool equal = true;
  for (int64_t sample = 0; sample < samples; ++sample) {
    int64_t count = by_size ? count_by_size(sample, other_bytes) : -1;
    if (count < 0) count = values(sample).count();
    if (sample == 0) each_ = count;
    equal = equal && count == each_;
    end += count;
    ends_.push_back(static_cast<uint32_t>(end));
  }
  if (equal) ends_ = {};
}

int64_t MdsTokens::sample_start(int64_t sample) const {
  if (ends_.empty()) return sample * each_;
  return sample == 0 ? 0 : ends_[static_cast<std::size_t>(sample) - 1];
}

int64_t MdsTokens::sample_of(int64_t token) const {
  if (ends_.empty()) return each_ == 0 ? 0 : token / each_;
  return std::upper_bound(ends_.begin(), ends_.end(), static_cast<uint32_t>(token)) - ends_.begin();
}

void MdsTokens::read(int64_t first, int64_t count, int64_t* out) const {
  for (int64_t sample = sample_of(first); count > 0; ++sample) {
    const Values tokens = values(sample);
    const int64_t start = sample_start(sample), length = sample_start(sample + 1) - start;
    if (tokens.count() != length)
      fail_sample(sample, fmt::format("has {} tokens, {} by its size", tokens.count(), length));
    const int64_t skipped = std::max<int64_t>(0, first - start), run = std::min(count, length - skipped);
    copy_tokens(tokens.element,
                tokens.bytes.data() + static_cast<std::size_t>(skipped) * bytes_of(tokens.element), run, out);
    out += run;
    count -= run;
  }
}

std::vector<int64_t> MdsTokens::document_starts(int64_t first, int64_t end) const {
  std::vector<int64_t> starts;
  end = std::min(end, tokens());
  for (int64_t sample = first < end ? sample_of(first) : file_.samples(); sample < file_.samples();
       ++sample) {
    const int64_t start = sample_start(sample);
    if (start >= end) break;
    if (start >= first && start < sample_start(sample + 1)) starts.push_back(start);
  }
  return starts;
}

void MdsTokens::require_answers(const std::string& key) const {
  throw InputError(Where{path(), 0},
                   key +
                       ": marks no answers, which training.task: sft needs; write the examples with "
                       "`sailor tokenize --sft`");
}

}  // namespace sailor
