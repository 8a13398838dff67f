// `sailor tokenize TEXT... -o DIRECTORY`: text files to token files for `data:` of a job spec.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <optional>

#include "planner/cli/program.h"
#include "planner/cli/progress_line.h"
#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "trainer/data/tokenize/huggingface/tokenizer_json.h"
#include "trainer/data/tokenize/text_reader.h"
#include "trainer/data/tokenize/tokenize.h"

namespace {

using namespace sailor;

struct Arguments {
  std::vector<std::string> files;
  std::string directory;
  std::string model;
  std::string end_of_document;
  std::string text_key = "text";
  std::string sample = "32MiB";
  int vocabulary = 32000;
  bool bytes = false;
  bool sft = false;
  std::string chat_template;
  std::string answers;
  double validation = 0.05;
  bool quiet = false;
};

// `kind` becomes a description.
std::unique_ptr<Tokenizer> make_tokenizer(const Arguments& arguments, double sample_bytes,
                                          std::string& kind) {
  if (arguments.bytes) return byte_tokenizer();
  std::string model = arguments.model;
  if (model.ends_with(".json")) {
    kind = "Hugging Face, " + model;
    return load_tokenizer_json(model, arguments.end_of_document);
  }
  if (!arguments.end_of_document.empty())
    throw InputError("--end-of-document is for a tokenizer.json as --model");
  if (model.empty()) {
    model = arguments.directory + "/tokenizer.model";
    if (!arguments.quiet)
      std::cerr << fmt::format("tokenize: learning {} pieces from at most {} of the text\n",
                               arguments.vocabulary, arguments.sample);
    train_sentencepiece(arguments.files, arguments.vocabulary, static_cast<int64_t>(sample_bytes), model,
                        arguments.text_key);
  }
  kind = "SentencePiece, " + model;
  return load_sentencepiece(model);
}

std::optional<ChatTemplate> load_chat_template(const Arguments& arguments) {
  const bool json = arguments.model.ends_with(".json");
  if (!arguments.sft && !(arguments.chat_template.empty() && arguments.answers.empty()))
    throw InputError("--chat-template and --answers are for --sft");
  if (!arguments.sft || (!json && arguments.chat_template.empty())) return {};
  if (!json && !arguments.bytes)
    throw InputError(
        "--chat-template needs a tokenizer.json as --model: SentencePiece has no special tokens in texts");
  return ChatTemplate::load(json ? arguments.model : "",
                            {arguments.chat_template, arguments.answers == "last"});
}

int run(const Arguments& arguments) {
  const std::optional<double> sample_bytes = parse_bytes(arguments.sample);
  if (!sample_bytes || *sample_bytes < 1)
    throw InputError(fmt::format("--sample: must be a size such as 32MiB, is \"{}\"", arguments.sample));
  // A file that cannot be read is told before the work begins.
  TextReader(arguments.files, {.text_key = arguments.text_key, .examples = arguments.sft});
  if (arguments.sft && !arguments.bytes && arguments.model.empty())
    throw InputError("--sft needs the tokenizer of the model that is tuned: name it with --model");
  const std::optional<ChatTemplate> chat = load_chat_template(arguments);
  std::filesystem::create_directories(arguments.directory);
  std::string kind = "bytes";
  const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(arguments, *sample_bytes, kind);
  cli::ProgressLine line("tokenize", arguments.quiet);
  const TokenizeResult result = tokenize({arguments.files, arguments.directory, arguments.validation,
                                          arguments.text_key, arguments.sft, chat ? &*chat : nullptr},
                                         *tokenizer, [&line](int64_t done, int64_t total) {
                                           line.at(static_cast<double>(done), static_cast<double>(total));
                                         });
  const auto tokens = static_cast<double>(result.train_tokens + result.validation_tokens);
  std::cout << fmt::format("vocabulary  {} ({})\n", tokenizer->vocabulary(), kind)
            << fmt::format("text        {} bytes, {:.2f} bytes per token\n", result.text_bytes,
                           static_cast<double>(result.text_bytes) / tokens)
            << fmt::format("train       {} tokens, {}/train.bin\n", result.train_tokens, arguments.directory);
  if (arguments.validation > 0)
    std::cout << fmt::format("validation  {} tokens, {}/validation.bin\n", result.validation_tokens,
                             arguments.directory);
  std::cout << fmt::format(
      "in the job spec: model: {{vocabulary: {}, ...}}, {}data: {{train: {}/train.bin{}}}\n",
      tokenizer->vocabulary(), arguments.sft ? "training: {task: sft, ...}, " : "", arguments.directory,
      arguments.validation > 0 ? fmt::format(", validation: {}/validation.bin", arguments.directory) : "");
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Converts text files to token files in Megatron's format: train.bin and validation.bin, each with "
      "its .idx",
      "sailor tokenize"};
  app.add_option(
         "TEXT", arguments.files,
         "UTF-8 text files, one document each; JSONL files (*.jsonl, *.ndjson), one document per line; "
         "Parquet files, one document per row; or directories in MosaicML's format (index.json), one "
         "document per sample")
      ->required();
  app.add_option("-o,--directory", arguments.directory, "output directory; created if missing")->required();
  auto* vocabulary = app.add_option("--vocabulary", arguments.vocabulary,
                                    "size of the SentencePiece vocabulary to learn (default: 32000)")
                         ->check(cli::within(300, 65536));
  auto* model =
      app.add_option("--model", arguments.model,
                     "use this SentencePiece model or Hugging Face tokenizer.json instead of learning one");
  app.add_option("--end-of-document", arguments.end_of_document,
                 "token of the tokenizer.json after every document (default: eos_token of the "
                 "tokenizer_config.json next to it, if any)");
  app.add_option("--text-key,--column", arguments.text_key,
                 "key of the text in the lines of JSONL files, or its column (default: text)");
  app.add_flag("--sft", arguments.sft,
               "JSONL or Parquet files of examples, {\"prompt\": ..., \"completion\": ...} or {\"messages\": "
               "[...]}, for "
               "training.task: sft");
  app.add_option(
      "--chat-template", arguments.chat_template,
      "Jinja file with the template for messages (default: chat_template.jinja or tokenizer_config.json "
      "next to the tokenizer.json)");
  app.add_option("--answers", arguments.answers,
                 "answers of a conversation to train on: all messages of the assistant, or the last one "
                 "(default: all)")
      ->check(CLI::IsMember({"all", "last"}));
  app.add_flag("--bytes", arguments.bytes, "one token per byte, no vocabulary")
      ->excludes(vocabulary)
      ->excludes(model);
  model->excludes(vocabulary);
  app.add_option("--validation", arguments.validation,
                 "fraction at the end of the text for validation (default: 0.05)")
      ->check(cli::within(0.0, 0.9));
  app.add_option("--sample", arguments.sample,
                 "maximum text to learn the vocabulary from; more needs more memory (default: 32MiB)");
  app.add_flag("-q,--quiet", arguments.quiet, "no progress on stderr");
  return cli::run_program(app, argc, argv, [&] { return run(arguments); });
}
