// JSON by the event (SAX) interface of nlohmann::json, over an iterator that counts lines.
#include <iterator>
#include <nlohmann/json.hpp>

#include "planner/spec/document.h"
#include "planner/spec/document_builder.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

// Counts line breaks among the characters that the lexer has consumed, and among those before the last one.
// The lexer reads one character beyond a number; counting only before the last character still gives the line
// of the token.
struct LineCounter {
  int consumed = 0;
  int before_last = 0;

  int line() const { return 1 + before_last; }
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, LineCounter* counter) : at_(at), counter_(counter) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    counter_->before_last = counter_->consumed;
    if (*at_ == '\n') ++counter_->consumed;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  LineCounter* counter_;
};

class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonEvents(Document& document, const LineCounter& counter) : builder_(document), counter_(counter) {}

  bool null() override {
    builder_.null(counter_.line());
    return true;
  }
  bool boolean(bool value) override { return plain(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return plain(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return plain(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return plain(text); }
  bool string(string_t& text) override {
    builder_.scalar(std::move(text), true, counter_.line());
    return true;
  }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(std::size_t) override { return begin(DocumentNode::Kind::map); }
  bool start_array(std::size_t) override { return begin(DocumentNode::Kind::sequence); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& text) override {
    builder_.key(std::move(text), counter_.line());
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: WHAT": the place is known better
    // here.
    std::string what = error.what();
    if (size_t place = what.find(" column "); place != std::string::npos) {
      if (size_t colon = what.find(": ", place); colon != std::string::npos) what.erase(0, colon + 2);
    } else if (size_t bracket = what.find("] "); bracket != std::string::npos) {
      what.erase(0, bracket + 2);
    }
    builder_.fail(counter_.line(), "not valid JSON: " + one_line(what));
  }

 private:
  bool plain(std::string text) {
    builder_.scalar(std::move(text), false, counter_.line());
    return true;
  }
  bool begin(DocumentNode::Kind kind) {
    builder_.begin(kind, counter_.line());
    return true;
  }
  bool end() {
    builder_.end();
    return true;
  }

  DocumentBuilder builder_;
  const LineCounter& counter_;
};

}  // namespace

Document parse_json(std::string_view text, const std::string& file_name) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw InputError({file_name, 1}, "the file is empty");
  }
  Document document;
  document.format = Document::Format::json;
  document.file = file_name;
  LineCounter counter;
  JsonEvents events(document, counter);
  nlohmann::json::sax_parse(CountingIterator(text.data(), &counter),
                            CountingIterator(text.data() + text.size(), &counter), &events);
  return document;
}

}  // namespace sailor
