// `sailor generate MODEL`: text from a trained model. The tokens come from sailor-sample: libtorch and
// SentencePiece cannot be in one process.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "planner/cli/program.h"
#include "planner/process/program_path.h"
#include "planner/process/scratch_directory.h"
#include "planner/process/subprocess.h"
#include "planner/spec/document.h"
#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/text_file.h"
#include "trainer/data/tokenize/chat_template.h"
#include "trainer/data/tokenize/huggingface/tokenizer_json.h"
#include "trainer/data/tokenize/json_lines.h"
#include "trainer/data/tokenize/record.h"
#include "trainer/data/tokenize/tokenizer.h"

namespace {

namespace fs = std::filesystem;
using namespace sailor;

struct Arguments {
  std::string source, base, tokenizer, prompt, prompts, text_key = "prompt", precision = "fp32",
                                                        chat_template;
  bool bytes = false, json = false, chat = false;
  double temperature = 0.8, top_p = 1;
  int64_t top_k = 0, tokens = 200, seed = 1;
  int samples = 1;
};

// The tokenizer's file; empty for bytes.
std::string tokenizer_file(const Arguments& arguments) {
  if (arguments.bytes) return "";
  std::string file = arguments.tokenizer;
  for (const std::string& directory : {arguments.source, arguments.base}) {
    for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
      const std::string path = directory + "/" + name;
      if (file.empty() && !directory.empty() && fs::exists(path)) file = path;
    }
  }
  if (file.empty())
    throw InputError(
        fmt::format("{} has no tokenizer.json or tokenizer.model: name the tokenizer that the "
                    "model was trained with (--tokenizer FILE, or --bytes)",
                    arguments.source));
  return file;
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& file) {
  if (file.empty()) return byte_tokenizer();
  return file.ends_with(".json") ? load_tokenizer_json(file) : load_sentencepiece(file);
}

// `eos_token_id` of a model directory, a number or several, and what ends documents in training.
std::vector<int64_t> end_tokens(const Arguments& arguments, const Tokenizer& tokenizer) {
  std::vector<int64_t> ends;
  if (tokenizer.end_of_document() >= 0) ends.push_back(tokenizer.end_of_document());
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::string path = arguments.source + "/" + name;
    if (!fs::exists(path)) continue;
    const Document document = parse_json(read_text_file(path), path);
    const DocumentNode* const node = document.root.find("eos_token_id");
    if (node == nullptr || node->kind == DocumentNode::Kind::null) continue;
    const Field field(document, *node);
    const std::vector<Field> all = field.is_sequence() ? field.items() : std::vector<Field>{field};
    for (const Field& one : all) ends.push_back(one.integer<int64_t>(0, INT32_MAX));
  }
  return ends;
}

std::string as_message(const std::string& text) {
  return nlohmann::json{{"messages", {{{"role", "user"}, {"content", text}}}}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// What is continued. With --chat a line of the file may be a conversation.
std::vector<std::string> read_prompts(const Arguments& arguments, const std::string& tokenizer) {
  std::optional<ChatTemplate> chat;
  if (arguments.chat) {
    chat = ChatTemplate::load(tokenizer, {.file = arguments.chat_template});
    if (!chat)
      throw InputError(fmt::format("--chat: there is no chat template{}; name one with --chat-template",
                                   tokenizer.empty() ? "" : " next to " + tokenizer));
  }
  if (arguments.prompts.empty())
    return {chat ? chat->prompt(as_message(arguments.prompt), Where{"--prompt", 0}) : arguments.prompt};
  if (!std::ifstream(arguments.prompts)) throw InputError({arguments.prompts, 0}, "cannot be read");
  JsonLines lines(arguments.prompts, fmt::format("{{\"{}\": \"a text\"}}", arguments.text_key));
  std::vector<std::string> prompts;
  for (DataRecord record; lines.next(record);) {
    const bool conversation = chat && record.fields.contains("messages");
    const std::string text =
        conversation ? record.json : text_of_record(record.fields, arguments.text_key, record.where);
    prompts.push_back(chat ? chat->prompt(conversation ? text : as_message(text), record.where) : text);
  }
  if (prompts.empty()) throw InputError({arguments.prompts, 0}, "has no lines");
  return prompts;
}

// The text of one sample, which is printed while it grows.
class Sample {
 public:
  Sample(const Tokenizer& tokenizer, std::string prompt, std::vector<int> tokens)
      : tokenizer_(tokenizer), prompt_(std::move(prompt)), tokens_(std::move(tokens)) {
    before_ = tokenizer_.decode(tokens_).size();
  }
  // Returns the text that this token completes.
  std::string add(int token) {
    tokens_.push_back(token);
    const std::string text = tokenizer_.decode(tokens_);
    if (text.ends_with("\xef\xbf\xbd") || text.size() < before_ + text_.size()) return "";
    return more(text);
  }
  std::string end() { return more(tokenizer_.decode(tokens_)); }
  const std::string& prompt() const { return prompt_; }
  const std::string& text() const { return text_; }

 private:
  std::string more(const std::string& whole) {
    const std::string rest = whole.substr(std::min(whole.size(), before_ + text_.size()));
    text_ += rest;
    return rest;
  }

  const Tokenizer& tokenizer_;
  const std::string prompt_;
  std::vector<int> tokens_;
  std::size_t before_ = 0;  // bytes of the prompt as decoded
  std::string text_;
};

class Printer {
 public:
  Printer(const Tokenizer& tokenizer, const std::vector<std::string>& prompts,
          const std::vector<std::vector<int>>& tokens, const Arguments& arguments)
      : tokenizer_(tokenizer),
        prompts_(prompts),
        tokens_(tokens),
        samples_(arguments.samples),
        json_(arguments.json),
        shows_prompt_(!arguments.chat) {}

  void add(std::string_view output) {
    rest_ += output;
    for (std::size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1))
      line(rest_.substr(0, end));
  }

 private:
  void line(const std::string& line) {
    const std::size_t space = line.find(' ');
    const auto index = static_cast<std::size_t>(std::stoul(line));
    if (!now_) {
      const std::size_t prompt = index / static_cast<std::size_t>(samples_);
      now_.emplace(tokenizer_, prompts_[prompt], tokens_[prompt]);
      if (!json_) std::cout << (index > 0 ? "----------\n" : "") << (shows_prompt_ ? now_->prompt() : "");
    }
    const bool ends = line.compare(space + 1, std::string::npos, "end") == 0;
    const std::string text = ends ? now_->end() : now_->add(std::stoi(line.substr(space + 1)));
    if (!json_) std::cout << text << (ends ? "\n" : "") << std::flush;
    if (!ends) return;
    if (json_)
      std::cout << nlohmann::json{{"prompt", now_->prompt()}, {"text", now_->text()}}.dump(
                       -1, ' ', false, nlohmann::json::error_handler_t::replace)
                << std::endl;
    now_.reset();
  }

  const Tokenizer& tokenizer_;
  const std::vector<std::string>& prompts_;
  const std::vector<std::vector<int>>& tokens_;
  const int samples_;
  const bool json_, shows_prompt_;
  std::string rest_;
  std::optional<Sample> now_;
};

int run(const Arguments& arguments) {
  if (!fs::is_directory(arguments.source)) throw InputError({arguments.source, 0}, "is not a directory");
  const std::string vocabulary = tokenizer_file(arguments);
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(vocabulary);
  const std::vector<std::string> prompts = read_prompts(arguments, vocabulary);
  const ScratchDirectory scratch;
  const std::string file = scratch.path() + "/prompts";
  std::vector<std::vector<int>> tokens;
  {
    std::ofstream out(file);
    for (const std::string& prompt : prompts) {
      std::vector<int>& of_prompt = tokens.emplace_back();
      if (arguments.chat) {
        tokenizer->encode_inner(prompt, of_prompt);
      } else {
        tokenizer->encode(prompt, of_prompt);
      }
      if (of_prompt.empty() && tokenizer->end_of_document() >= 0)
        of_prompt.push_back(tokenizer->end_of_document());  // as a text begins in training
      out << fmt::format("{}\n", fmt::join(of_prompt, " "));
    }
  }
  std::vector<std::string> program = {program_path("sailor-sample"),
                                      arguments.source,
                                      "--prompts",
                                      file,
                                      "--precision",
                                      arguments.precision,
                                      "--temperature",
                                      fmt::format("{}", arguments.temperature),
                                      "--top-k",
                                      fmt::format("{}", arguments.top_k),
                                      "--top-p",
                                      fmt::format("{}", arguments.top_p),
                                      "--seed",
                                      fmt::format("{}", arguments.seed),
                                      "--tokens",
                                      fmt::format("{}", arguments.tokens),
                                      "--samples",
                                      fmt::format("{}", arguments.samples)};
  if (!arguments.base.empty()) program.insert(program.end(), {"--base", arguments.base});
  for (const int64_t token : end_tokens(arguments, *tokenizer))
    program.insert(program.end(), {"--end-with", fmt::format("{}", token)});
  Printer printer(*tokenizer, prompts, tokens, arguments);
  return exit_code_of(run_with_output(program, [&](std::string_view piece) { printer.add(piece); }));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Continues a text with a trained model, on the CPUs of this machine", "sailor generate"};
  app.add_option(
         "MODEL", arguments.source,
         "a Hugging Face model directory, or a job's checkpoint.directory (its newest checkpoint) or one "
         "of its step-N directories")
      ->required();
  auto* tokenizer = app.add_option("--tokenizer", arguments.tokenizer,
                                   "tokenizer.json or SentencePiece model (default: the one in MODEL)");
  app.add_flag("--bytes", arguments.bytes, "tokens are bytes")->excludes(tokenizer);
  auto* prompt = app.add_option("--prompt", arguments.prompt, "text to continue (default: none)");
  app.add_option("--prompts", arguments.prompts, "JSONL file, a prompt in every line")->excludes(prompt);
  app.add_option("--text-key", arguments.text_key, "key of the prompt in these lines (default: prompt)");
  auto* chat =
      app.add_flag("--chat", arguments.chat,
                   "prompts are user messages, or conversations in lines with `messages`, which the model's "
                   "chat template renders");
  app.add_option("--chat-template", arguments.chat_template,
                 "file of the chat template (default: the one next to the tokenizer)")
      ->needs(chat);
  app.add_option("--base", arguments.base,
                 "directory of the base model of adapters, if it is no longer where training found it");
  app.add_option("--tokens", arguments.tokens, "maximum tokens of a text (default: 200)")
      ->check(cli::within(1, 1e9));
  app.add_option("--samples", arguments.samples, "texts for each prompt (default: 1)")
      ->check(cli::within(1, 1e6));
  app.add_option("--temperature", arguments.temperature,
                 "logits are divided by it; 0: always the most likely token (default: 0.8)")
      ->check(cli::within(0, 100));
  app.add_option("--top-k", arguments.top_k, "only the k most likely tokens (default: all)")
      ->check(cli::within(1, 1e9));
  app.add_option("--top-p", arguments.top_p,
                 "only the most likely tokens that together have this probability (default: 1)")
      ->check(cli::within(1e-9, 1));
  app.add_option("--seed", arguments.seed, "of the first text; the next one has the next seed (default: 1)")
      ->check(cli::within(0, 1e18));
  app.add_option("--precision", arguments.precision, "fp32, fp64, bf16 or fp16 (default: fp32)");
  app.add_flag("--json", arguments.json, "a line of JSON for every text: prompt and text");
  return cli::run_program(app, argc, argv, [&] { return run(arguments); });
}
