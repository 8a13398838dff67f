#include "spank_plugin/job_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "spank_plugin/batch_script.h"

namespace sailor {
namespace {

constexpr char kNotASpec[] =
    "not a job spec (its first line would be \"#!/usr/bin/env -S sailor run\"); name the job spec with "
    "--sailor-job=FILE";

constexpr char kScriptIsGone[] =
    "sbatch had read the script from a pipe when it came to the --sailor-* options in it; give one of them "
    "on the command line, or the "
    "script as a file";

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

void read_batch_script(const ParsedCommand& command, const SubmitOptions& options, long stdin_offset,
                       const std::string& spec_path, Submission& submission) {
  std::string script;
  std::string name = command.wrap ? "--wrap" : "standard input";
  std::string path;
  if (command.script_index) {
    name = submission.argv[*command.script_index];
    path = find_script(name);
    script = read_text_file(path);
  } else if (!command.wrap) {
    if (stdin_offset < 0) throw InputError(kScriptIsGone);
    script = read_descriptor(STDIN_FILENO, stdin_offset);
  }
  refuse_components(script, name);
  if (!options.job_file.empty()) return;
  if (!is_job_spec(script)) throw InputError({name}, kNotASpec);
  submission.job_path = spec_path.empty() ? path : spec_path;
  submission.job = parse_job_spec(script, spec_path.empty() ? name : spec_path);
}

void read_command(SubmitProgram program, const SubmitOptions& options, Submission& submission) {
  std::vector<std::string> words;
  if (submission.script_index) {
    words.assign(submission.argv.begin() + static_cast<long>(*submission.script_index),
                 submission.argv.end());
  }
  std::optional<std::string> spec = job_spec_of_command(words);
  if (spec && program == SubmitProgram::srun) {
    throw InputError(fmt::format(
        "srun starts its command once per GPU; run {} with `salloc --sailor-... {}`, or submit it "
        "with sbatch",
        *spec, fmt::join(words, " ")));
  }
  if (!options.job_file.empty()) return;
  if (!spec) {
    throw InputError(
        fmt::format("{}: no job spec to plan for; name it with --sailor-job=FILE", to_string(program)));
  }
  submission.job_path = absolute(*spec);
  submission.job = load_job_spec(submission.job_path);
}

}  // namespace

Submission read_submission(SubmitProgram program, const SubmitOptions& options, long stdin_offset,
                           const std::string& spec_path) {
  Submission submission;
  submission.argv = command_line();
  std::optional<ParsedCommand> command = parse_command(submission.argv);
  if (!command) {
    throw std::runtime_error(
        fmt::format("this build of {} does not export its option table; planned submissions need it",
                    to_string(program)));
  }
  if (command->has_components) throw InputError("the planner chooses the components of the job; remove ':'");
  submission.script_index = command->script_index;
  submission.options = std::move(command->options);
  if (program == SubmitProgram::sbatch) {
    read_batch_script(*command, options, stdin_offset, spec_path, submission);
  } else {
    read_command(program, options, submission);
  }
  if (!options.job_file.empty()) {
    submission.job = load_job_spec(options.job_file);
    submission.job_path = absolute(options.job_file);
  }
  return submission;
}

}  // namespace sailor
