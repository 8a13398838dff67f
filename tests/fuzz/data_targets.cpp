// Targets of fuzz_data: models and data that users bring.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "planner/spec/error.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/text_file.h"
#include "planner/spec/transformer_shape.h"
#include "tests/fuzz/bundle.h"
#include "tests/fuzz/targets.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/token_data.h"
#include "trainer/data/tokenize/chat_template.h"
#include "trainer/data/tokenize/huggingface/tokenizer_json.h"
#include "trainer/data/tokenize/text_reader.h"

namespace sailor::fuzz {
namespace {

constexpr int kSequence = 7, kVocabulary = 50000;

// Every sequence of the data, as trainers read it.
void read_all(const JobSpec& job) {
  const TokenData data = TokenData::open(job);
  data.describe();
  for (int64_t window = 0; window < data.num_windows(); ++window) {
    const std::vector<int64_t> tokens = data.tokens({0, window});
    if (tokens.size() != kSequence + 1) broken("a sequence of another length");
    if (std::any_of(tokens.begin(), tokens.end(), [](int64_t t) { return t < 0 || t >= kVocabulary; }))
      broken("a token outside the vocabulary was accepted");
    const SequenceLayout layout = data.layout({0, window});
    if (std::accumulate(layout.documents.begin(), layout.documents.end(), int64_t{0}) != kSequence)
      broken("documents do not fill their sequence");
    int64_t before = 0;
    for (const auto& [first, end] : layout.counted) {
      if (first < before || end <= first || end > kSequence)
        broken("targets that count are not in the sequence");
      before = end;
    }
  }
}

JobSpec job_of(const std::string& train, const std::string& format) {
  JobSpec job;
  job.file = train;
  job.model.sequence = kSequence;
  job.model.vocabulary = kVocabulary;
  job.training.global_batch = 2;
  job.data.train = {{train}};
  job.data.format = format;
  return job;
}

// The same with all settings that read more of the files. The first error of each ends it alone.
void read_with_all_settings(JobSpec job) {
  for (const bool mask : {false, true}) {
    for (const Task task : {Task::pretraining, Task::sft}) {
      job.data.document_mask = mask;
      job.training.task = task;
      try {
        read_all(job);
      } catch (const InputError&) {
        if (mask && task == Task::sft) throw;
      }
    }
  }
}

// The last file of a bundle is binary as it is; the others end with the line end before the next name.
void token_file(const std::string& input) {
  static const Directory directory({"t.idx", "t.bin"});
  directory.fill(split_bundle(input));
  for (const char* format : {"auto", "nanogpt", "uint32", "llmc", "bytes", "mosaicml", "megatron"}) {
    try {
      read_with_all_settings(job_of(directory.path("t.bin"), format));
    } catch (const InputError&) {
      if (std::string(format) == "megatron") throw;
    }
  }
}

void read_text(const std::vector<std::string>& files, const TextOptions& options) {
  TextReader reader(files, options);
  int64_t position = 0, end = 0;
  for (TextChunk chunk; reader.next(chunk);) {
    if (chunk.text.empty() || chunk.text.size() > options.chunk_bytes) broken("a chunk of a wrong size");
    if (chunk.position < position || chunk.end_position < end || chunk.end_position > reader.total_bytes())
      broken("positions do not ascend");
    if (chunk.prompt_bytes > chunk.text.size()) broken("a prompt is longer than its example");
    position = chunk.position;
    end = chunk.end_position;
  }
}

void mds(const std::string& input) {
  static const Directory directory({"index.json", "shard.00000.mds"});
  directory.fill(split_bundle(input));
  const std::string& root = directory.root();
  for (const char* column : {"", "text"}) {
    JobSpec job = job_of(root, "mosaicml");
    job.data.column = column;
    try {
      read_with_all_settings(job);
    } catch (const InputError&) {
    }
  }
  try {
    read_text({root}, {.chunk_bytes = 16});
  } catch (const InputError&) {
  }
  read_text({root}, {.examples = true});
}

void jsonl(const std::string& input) {
  static const Directory directory({"t.jsonl"});
  directory.fill({{"t.jsonl", input}});
  const std::vector<std::string> files = {directory.path("t.jsonl")};
  try {
    read_text(files, {});
    read_text(files, {.chunk_bytes = 16, .split_at = 40});
  } catch (const InputError&) {
  }
  read_text(files, {.examples = true});
}

void text(const std::string& input) {
  static const Directory directory({"t.txt", "u.txt"});
  directory.fill({{"t.txt", input}, {"u.txt", input}});
  for (const std::size_t bytes : {std::size_t{16}, TextOptions::kWholeDocuments})
    read_text({directory.path("t.txt"), directory.path("u.txt")}, {.chunk_bytes = bytes, .split_at = 30});
}

void tokenizer_json(const std::string& input) {
  static const Directory directory({"tokenizer_config.json", "tokenizer.json", "text"});
  const auto bundle = split_bundle(input);
  directory.fill(bundle);
  const auto tokenizer = load_tokenizer_json(directory.path("tokenizer.json"));
  const auto text = bundle.find("text");
  std::vector<int> tokens;
  tokenizer->encode(text == bundle.end() ? "A text: naïve 12345 帆船" : text->second, tokens);
  for (const int token : tokens) {
    if (token < 0 || token >= tokenizer->vocabulary()) broken("a token outside the vocabulary");
  }
  tokenizer->decode(tokens);
}

void chat_template(const std::string& input) {
  static const Directory directory({"template", "record"});
  const auto bundle = split_bundle(input);
  directory.fill(bundle);
  const auto record = bundle.find("record");
  for (const bool last : {false, true}) {
    const auto chat = ChatTemplate::load("", {.file = directory.path("template"), .last_answer_only = last});
    const ConversationText made =
        chat->render(record == bundle.end() ? R"({"messages": [{"role": "user", "content": "a question"},
                                                  {"role": "assistant", "content": "its answer"}]})"
                                            : record->second,
                     {"record", 1});
    std::size_t before = 0;
    for (const auto& [begin, end] : made.answers) {
      if (begin < before || end <= begin || end > made.text.size()) broken("an answer is not in the text");
      before = end;
    }
  }
}

void model_config(const std::string& input) {
  require_text(input, "config.json");
  const ModelSpec read = parse_model_config(input, "config.json");
  shape_of(read).parameters();
  const std::string written = to_model_config(read, "float32");
  if (to_model_config(parse_model_config(written, "written.json"), "float32") != written)
    broken("a model changes when it is written and read");
}

void safetensors(const std::string& input) {
  static const Directory directory({"f.safetensors"});
  directory.fill({{"f.safetensors", input}});
  const SafetensorsFile file(directory.path("f.safetensors"));
  int64_t bytes = 0;
  for (const StoredTensor& tensor : file.tensors()) {
    std::string data(static_cast<size_t>(tensor.bytes), '\0');
    file.read(tensor, 0, tensor.bytes, data.data());
    bytes += tensor.bytes;
  }
  if (bytes >= static_cast<int64_t>(input.size())) broken("tensors have more bytes than their file");
}

}  // namespace

const std::map<std::string, Target>& targets() {
  static const std::map<std::string, Target> all = {{"model_config", model_config},
                                                    {"safetensors", safetensors},
                                                    {"token_file", token_file},
                                                    {"mds", mds},
                                                    {"jsonl", jsonl},
                                                    {"text", text},
                                                    {"tokenizer_json", tokenizer_json},
                                                    {"chat_template", chat_template}};
  return all;
}

}  // namespace sailor::fuzz
