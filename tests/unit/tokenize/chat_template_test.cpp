#include "trainer/data/tokenize/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/tokenize/directory_test.h"
#include "trainer/data/token_file.h"
#include "trainer/data/tokenize/tokenize.h"
#include "trainer/data/tokenize/tokenizer_config.h"

namespace sailor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kTurns =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls %}[{{ c.function.name "
    "}}]{% endfor %}</>"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
// Removes the reasoning of answers that another message follows, and opens it in the prompt.
const char* const kReasons =
    "{% for m in messages %}<{{ m.role }}>"
    "{% if m.role == 'assistant' and loop.last %}(think:{{ m.reasoning_content }}){% endif %}{{ m.content "
    "}}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>(think:{% endif %}";

class ChatTemplateTest : public DirectoryTest {
 protected:
  std::string tokenizer() const { return directory_ / "tokenizer.json"; }
  // The answers in the text of a conversation.
  std::vector<std::string> answers(const std::string& source, const std::string& record, bool last = false) {
    const auto chat = ChatTemplate::load("", {write("t.jinja", source), last});
    const ConversationText made = chat->render(record, {"c.jsonl", 7});
    std::vector<std::string> found;
    for (const ByteRange& range : made.answers)
      found.push_back(made.text.substr(range.begin, range.end - range.begin));
    return found;
  }
  std::string problem(const std::string& source, const std::string& record) {
    try {
      answers(source, record);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
};

const char* const kTwoAnswers =
    R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
  {"role": "user", "content": "q2"}, {"role": "assistant", "content": "b", "reasoning": "hm"}]})";

TEST_F(ChatTemplateTest, AnswersEndWithTheirTurn) {
  EXPECT_THAT(answers(kTurns, kTwoAnswers), ElementsAre("a</>", "b</>"));
  EXPECT_THAT(answers(kTurns, kTwoAnswers, true), ElementsAre("b</>"));
  EXPECT_THAT(
      answers(kTurns,
              R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": null,
    "tool_calls": [{"function": {"name": "f"}}]}, {"role": "tool", "content": "1"}, {"role": "assistant", "content": "a"},
    {"role": "user", "content": "not answered"}]})"),
      ElementsAre("[f]</>", "a</>"));
}

TEST_F(ChatTemplateTest, AnswersWhoseTextChangesAreFound) {
  EXPECT_THAT(answers(kReasons, kTwoAnswers), ElementsAre("a</>", "hm)b</>"));
  EXPECT_THAT(
      answers(kReasons,
              R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "(thi"},
    {"role": "user", "content": "q"}]})"),
      ElementsAre("(thi</>"))
      << "an answer that begins like the prompt";
  // A template that changes all but the last answer beyond recognition.
  const std::string shortens =
      "{% for m in messages %}<{{ m.role }}>{{ m.content if loop.last else m.content[:1] }}</>{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_THAT(
      problem(shortens,
              R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "long"},
    {"role": "user", "content": "q2"}]})"),
      HasSubstr("c.jsonl:7: cannot tell where the answer in message 2 is in the text of the chat template"));
}

TEST_F(ChatTemplateTest, GenerationBlocksAreTheAnswers) {
  const std::string marked =
      "{% for m in messages %}{% if m.role == 'assistant' %}<{% generation %}{{ m.content }}.{% "
      "endgeneration %}>"
      "{% else %}{{ m.content }}{% endif %}{% endfor %}";
  EXPECT_THAT(answers(marked, kTwoAnswers), ElementsAre("a.", "b."));
  EXPECT_THAT(answers(marked, kTwoAnswers, true), ElementsAre("b."));
  EXPECT_THAT(problem("{% generation %}{% endgeneration %}", kTwoAnswers),
              HasSubstr("c.jsonl:7: the generation blocks of the template enclose nothing"));
}

TEST_F(ChatTemplateTest, VariablesAreThoseOfTheRecordAndTheTokenizer) {
  write(
      "tokenizer_config.json",
      R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>", "pad_token": null, "x": 1})");
  write("chat_template.jinja",
        "{{ bos_token }}{{ pad_token is defined }}{{ tools is none }}{{ documents|length }}{{ mood }}"
        "{% for m in messages %}{{ m.content }}{% endfor %}{{ eos_token if not add_generation_prompt }}");
  const auto chat = ChatTemplate::load(tokenizer(), {});
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->render(R"({"documents": [1], "chat_template_kwargs": {"mood": "fine"}, "id": 3,
    "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})",
                         {"c.jsonl", 1})
                .text,
            "<s>FalseTrue1fineqa</s>");
}

TEST_F(ChatTemplateTest, TheTemplateIsThatOfTheModel) {
  EXPECT_FALSE(ChatTemplate::load(tokenizer(), {}));
  write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_FALSE(ChatTemplate::load(tokenizer(), {}));
  const auto text = [&](const ChatTemplate::Options& options) {
    return ChatTemplate::load(tokenizer(), options)
        ->render(R"({"messages": [{"role": "assistant", "content": "x"}]})", {"c.jsonl", 1})
        .text;
  };
  write("tokenizer_config.json", R"({"chat_template": "one {{ messages[0].content }}"})");
  EXPECT_THAT(
      problem("{{ messages[0].content }}", R"({"messages": [{"role": "assistant", "content": "x"}]})"),
      HasSubstr("t.jinja:1: a list has no item 0"))
      << "the template needs a message before the answer";
  const std::string with_tail = "{% for m in messages %}{{ m.content }}{% endfor %}";
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "rag", "template": "{{"}, {"name": "default", "template": "two )" +
            with_tail + R"("}]})");
  EXPECT_EQ(text({}), "two x");
  write("chat_template.jinja", "three " + with_tail);
  EXPECT_EQ(text({}), "three x");
  EXPECT_EQ(text({write("own.jinja", "four " + with_tail), false}), "four x");
  std::filesystem::remove(directory_ / "chat_template.jinja");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": ""}]})");
  EXPECT_THROW(ChatTemplate::load(tokenizer(), {}), InputError);
  write("tokenizer_config.json", R"({"chat_template": "\n{{ x | urlize }}"})");
  try {
    ChatTemplate::load(tokenizer(), {});
    FAIL() << "an unknown filter was accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("tokenizer_config.json: chat_template:2: filter urlize is not supported"));
  }
}

TEST_F(ChatTemplateTest, WhatIsNoConversationIsNamed) {
  const auto refused = [&](const std::string& record) { return problem(kTurns, record); };
  EXPECT_THAT(refused("{}"), HasSubstr("c.jsonl:7: \"messages\" must be a list such as"));
  EXPECT_THAT(refused(R"({"messages": []})"), HasSubstr("\"messages\" must be a list such as"));
  EXPECT_THAT(refused(R"({"messages": [{"role": "user", "content": "q"}, "a"]})"),
              HasSubstr("message 2 must be an object such as"));
  EXPECT_THAT(refused(R"({"messages": [{"role": 1}]})"), HasSubstr("message 1 must be an object such as"));
  EXPECT_THAT(refused(R"({"messages": [{"role": "user", "content": "q"}]})"),
              HasSubstr("no message has the role assistant"));
  EXPECT_THAT(refused(R"({"messages": [{"role": "assistant", "content": "q"}], "tools": {}})"),
              HasSubstr("\"tools\" must be a list, is a dict"));
  EXPECT_THAT(
      refused(
          R"({"messages": [{"role": "assistant", "content": "q"}], "chat_template_kwargs": {"messages": 1}})"),
      HasSubstr("may not have the key messages"));
  EXPECT_THAT(problem("{{ raise_exception('no system messages') }}", kTwoAnswers),
              HasSubstr("c.jsonl:7: the chat template fails: "));
}

TEST_F(ChatTemplateTest, TokensOfAnswersAreMarked) {
  const std::string file = write(
      "c.jsonl",
      std::string(
          R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "ab"}, )") +
          R"({"role": "user", "content": "r"}]})" + "\n" + R"({"prompt": "p", "completion": "c"})" + "\n");
  const auto chat = ChatTemplate::load("", {write("t.jinja", kTurns), false});
  const auto bytes = byte_tokenizer();
  const TokenizeResult result =
      tokenize({.files = {file}, .directory = directory_, .validation = 0, .sft = true, .chat = &*chat},
               *bytes, [](int64_t, int64_t) {});
  const std::string first = "<user>q</><assistant>ab</><user>r</>";
  EXPECT_EQ(result.text_bytes, static_cast<int64_t>(first.size()) + 2);
  const TokenFile tokens = TokenFile::open(directory_ / "train.bin", "auto", "k");
  ASSERT_EQ(tokens.tokens(), static_cast<int64_t>(first.size()) + 2);
  std::vector<int64_t> values(first.size());
  tokens.read(0, static_cast<int64_t>(first.size()), values.data());
  EXPECT_EQ(std::string(values.begin(), values.end()), first);
  const auto begin = static_cast<int64_t>(first.find("ab")), size = static_cast<int64_t>(first.size());
  using Ranges = std::vector<TokenRange>;
  EXPECT_EQ(tokens.answers(0, 100), (Ranges{{begin, begin + 5}, {size + 1, size + 2}}));
  EXPECT_THAT(tokens.document_starts(0, 100), ElementsAre(0, size));
}

}  // namespace
}  // namespace sailor
