#include "trainer/data/tokenize/huggingface/post_processor.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "trainer/data/tokenize/huggingface/type_field.h"
#include "trainer/data/tokenize/huggingface/vocabulary.h"

namespace sailor {
namespace {

int read_id(const Field& field) {
  return field.integer<int>(0, Vocabulary::kMostTokens - 1);
}

// The template of a single text: special tokens, and once the text.
PostProcessor read_template(const MapField& map) {
  std::map<std::string, std::vector<int>> special;
  for (const auto& [name, field] : map.required("special_tokens").entries()) {
    const MapField token(field, {"id", "ids", "tokens"});
    for (const Field& id : token.required("ids").items()) special[name].push_back(read_id(id));
  }
  PostProcessor result;
  bool text_seen = false;
  const Field single = map.required("single");
  for (const Field& item : single.items()) {
    const MapField part(item, {"SpecialToken", "Sequence"});
    if (const auto sequence = part.optional("Sequence")) {
      const Field id = MapField(*sequence, {"id", "type_id"}).required("id");
      if (id.text() != "A" || text_seen) id.fail("a template of one text has it once, as \"A\"");
      text_seen = true;
      continue;
    }
    const Field id = MapField(part.required("SpecialToken"), {"id", "type_id"}).required("id");
    const auto found = special.find(id.text());
    if (found == special.end()) id.fail(fmt::format("\"{}\" is not in special_tokens", id.text()));
    std::vector<int>& side = text_seen ? result.after : result.before;
    side.insert(side.end(), found->second.begin(), found->second.end());
  }
  if (!text_seen) single.fail("lacks the text: {\"Sequence\": {\"id\": \"A\", ...}}");
  return result;
}

// A token with its number: ["</s>", 2].
int read_pair(const Field& field) {
  const std::vector<Field> items = field.items();
  if (items.size() != 2) field.fail_type("a token and its number");
  return read_id(items[1]);
}

}  // namespace

PostProcessor read_post_processor(const Field& field) {
  const Field type_field = type_of(field);
  const std::string type = type_field.text();
  if (type == "TemplateProcessing")
    return read_template(MapField(field, {"type", "single", "pair", "special_tokens"}));
  if (type == "ByteLevel") {  // about the positions of tokens in the text only
    const MapField map(field, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return {};
  }
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    const MapField map(field, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    return {{read_pair(map.required("cls"))}, {read_pair(map.required("sep"))}};
  }
  if (type == "Sequence") {
    const MapField map(field, {"type", "processors"});
    PostProcessor result;
    for (const Field& item : map.required("processors").items()) {
      const PostProcessor outer = read_post_processor(item);
      result.before.insert(result.before.begin(), outer.before.begin(), outer.before.end());
      result.after.insert(result.after.end(), outer.after.begin(), outer.after.end());
    }
    return result;
  }
  type_field.fail(
      fmt::format("\"{}\" is not supported (supported: TemplateProcessing, ByteLevel, "
                  "RobertaProcessing, BertProcessing, Sequence)",
                  type));
}

}  // namespace sailor
