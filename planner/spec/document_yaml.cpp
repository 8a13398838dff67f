// YAML by the event interface of yaml-cpp: its node interface resolves aliases into a graph, drops duplicate
// keys and knows no limits.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

#include "planner/spec/document.h"
#include "planner/spec/document_builder.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

class YamlEvents : public YAML::EventHandler {
 public:
  explicit YamlEvents(Document& document) : builder_(document) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) builder_.fail(line(mark), "a key is missing before \":\"");
    builder_.null(line(mark));
    value_done(anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) builder_.fail(line(mark), "an alias cannot be a key");
    auto it = anchors_.find(anchor);
    if (it == anchors_.end()) builder_.fail(line(mark), "this alias is inside its own anchor");
    builder_.copy(it->second, line(mark));
    value_done(0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    bool quoted_scalar = tag == "!";
    if (!quoted_scalar) refuse_tag(mark, tag);
    if (expects_key()) {
      builder_.key(value, line(mark));
      maps_.back() = true;
      return;
    }
    builder_.scalar(value, quoted_scalar, line(mark));
    value_done(anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(DocumentNode::Kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(DocumentNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  static int line(const YAML::Mark& mark) { return mark.line + 1; }

  bool expects_key() const { return builder_.in_map() && !maps_.back(); }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?")
      builder_.fail(line(mark), "YAML tags such as " + in_quotes(tag) + " are not used here");
  }

  void begin(DocumentNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_tag(mark, tag);
    if (expects_key()) builder_.fail(line(mark), "a key must be plain text");
    builder_.begin(kind, line(mark));
    maps_.push_back(false);
    open_anchors_.push_back(anchor);
  }

  void end() {
    builder_.end();
    maps_.pop_back();
    YAML::anchor_t anchor = open_anchors_.back();
    open_anchors_.pop_back();
    value_done(anchor);
  }

  void value_done(YAML::anchor_t anchor) {
    if (!maps_.empty()) maps_.back() = false;
    if (anchor == 0) return;
    builder_.count_copy(builder_.last(), builder_.last().line);
    anchors_[anchor] = builder_.last();
  }

  DocumentBuilder builder_;
  std::vector<bool> maps_;  // per open collection: a key has been read and its value is next
  std::vector<YAML::anchor_t> open_anchors_;
  std::map<YAML::anchor_t, DocumentNode> anchors_;
};

// Discards everything: for looking whether a second document follows.
class NoEvents : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}

  int line = 0;
};

}  // namespace

Document parse_yaml(std::string_view text, const std::string& file_name) {
  Document document;
  document.format = Document::Format::yaml;
  document.file = file_name;
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    YamlEvents events(document);
    if (!parser.HandleNextDocument(events) || document.root.kind == DocumentNode::Kind::null) {
      throw InputError({file_name, 1}, "the file is empty");
    }
    NoEvents rest;
    if (parser.HandleNextDocument(rest)) {
      throw InputError({file_name, rest.line}, "a second YAML document starts here, only one is allowed");
    }
  } catch (const YAML::Exception& error) {
    int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    const bool in_braces = error.msg.find("map flow") != std::string::npos;
    throw InputError({file_name, line},
                     "not valid YAML: " + one_line(error.msg) +
                         (in_braces ? "; within { }, quote text that contains one of [ ] { } ," : ""));
  }
  return document;
}

}  // namespace sailor
