// sailor-sample: continues sequences of tokens with a model, for `sailor generate`, which has the text. Lines
// of the file of prompts are tokens, separated by spaces. Lines of the output are `SAMPLE TOKEN`, as they are
// drawn, and `SAMPLE end`; samples are numbered in the order of prompts, and within one of repetitions.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "planner/cli/program.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/precision.h"
#include "trainer/checkpoint/stored_model.h"
#include "trainer/checkpoint/trained_model.h"
#include "trainer/model/element_types.h"
#include "trainer/model/generator.h"

namespace {

using namespace sailor;

struct Arguments {
  std::string source, base, prompts, precision = "fp32";
  SamplingOptions sampling;
  int64_t tokens = 0;
  int samples = 1;
  std::vector<int64_t> end_with;
};

// A model directory, or a checkpoint.
class Source {
 public:
  Source(const std::string& path, const std::string& base) {
    if (std::filesystem::exists(path + "/config.json")) {
      model_ = read_model_config(path);
      weights_ = std::make_unique<StoredModel>(model_);
      return;
    }
    reader_ = open_newest(path, [](const std::string& line) { std::cerr << "sailor: " << line << '\n'; });
    auto trained = std::make_unique<TrainedModel>(*reader_, base);
    model_ = trained->model();
    weights_ = std::move(trained);
  }
  const ModelSpec& model() const { return model_; }
  const WeightSource& weights() const { return *weights_; }

 private:
  std::unique_ptr<CheckpointReader> reader_;
  ModelSpec model_;
  std::unique_ptr<WeightSource> weights_;
};

std::vector<std::vector<int64_t>> read_prompts(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw InputError({path, 0}, "cannot be read");
  std::vector<std::vector<int64_t>> prompts;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::vector<int64_t>& prompt = prompts.emplace_back();
    for (int64_t token = 0; words >> token;) prompt.push_back(token);
    if (!words.eof()) throw InputError({path, static_cast<int>(prompts.size())}, "must have numbers only");
  }
  return prompts;
}

int run(const Arguments& arguments) {
  const Source source(arguments.source, arguments.base);
  Generator generator(source.model(), scalar_type(parse_precision(arguments.precision, "--precision")),
                      source.weights());
  const GenerationLimits limits{arguments.tokens, {arguments.end_with.begin(), arguments.end_with.end()}};
  SamplingOptions sampling = arguments.sampling;
  int sample = 0;
  for (const std::vector<int64_t>& prompt : read_prompts(arguments.prompts)) {
    for (int i = 0; i < arguments.samples; ++i, ++sample, ++sampling.seed) {
      generator.generate(prompt, sampling, limits, [&](int64_t token) {
        std::cout << sample << ' ' << token << '\n' << std::flush;
      });
      std::cout << sample << " end\n" << std::flush;
    }
  }
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Continues sequences of tokens", "sailor-sample"};
  app.add_option("MODEL", arguments.source)->required();
  app.add_option("--base", arguments.base);
  app.add_option("--prompts", arguments.prompts)->required();
  app.add_option("--precision", arguments.precision);
  app.add_option("--temperature", arguments.sampling.temperature);
  app.add_option("--top-k", arguments.sampling.top_k);
  app.add_option("--top-p", arguments.sampling.top_p);
  app.add_option("--seed", arguments.sampling.seed);
  app.add_option("--tokens", arguments.tokens);
  app.add_option("--samples", arguments.samples);
  app.add_option("--end-with", arguments.end_with);
  return cli::run_program(app, argc, argv, [&] { return run(arguments); });
}
