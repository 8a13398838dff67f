#include "spank_plugin/slurm/submit_process.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <getopt.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

extern "C" {
struct option* slurm_option_table_create(void* options, char** short_options) __attribute__((weak));
void slurm_option_table_destroy(struct option* table) __attribute__((weak));
char* slurm_option_get(void* options, const char* name) __attribute__((weak));
bool slurm_option_isset(void* options, const char* name) __attribute__((weak));
}

namespace sailor {
namespace {

// The program's global `slurm_opt_t opt`; nullptr when this build does not export it.
void* options_object() {
  return dlsym(RTLD_DEFAULT, "opt");
}

// getopt's state is global and Slurm's own parser uses it after us.
class SavedGetopt {
 public:
  SavedGetopt() : index_(optind), errors_(opterr) {
    optind = 0;
    opterr = 0;
  }
  ~SavedGetopt() {
    optind = index_;
    opterr = errors_;
  }
  SavedGetopt(const SavedGetopt&) = delete;
  SavedGetopt& operator=(const SavedGetopt&) = delete;

 private:
  int index_;
  int errors_;
};

// Of a short option; empty if there is none.
std::string long_name(const option* table, int short_name) {
  for (; table->name != nullptr; ++table) {
    if (table->val == short_name && table->flag == nullptr) return table->name;
  }
  return "";
}

// Copies everything that is left on descriptor 0 into memory and makes that descriptor 0. Nothing is lost
// when memory runs out before the first byte; later failures leave sbatch a truncated pipe, so they end the
// submission.
void move_stdin_to_memory() {
  int memory = memfd_create("sailor-script", 0);
  if (memory < 0) return;
  char buffer[65536];
  while (true) {
    ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd ready{STDIN_FILENO, POLLIN, 0};
      poll(&ready, 1, -1);
      continue;
    }
    for (ssize_t done = 0; count > 0 && done < count;) {
      ssize_t written = write(memory, buffer + done, static_cast<size_t>(count - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0)
        count = -1;
      else
        done += written;
    }
    if (count < 0) {
      fprintf(stderr, "sailor: cannot read the batch script from standard input: %s\n", strerror(errno));
      _exit(1);
    }
  }
  lseek(memory, 0, SEEK_SET);
  dup2(memory, STDIN_FILENO);
  close(memory);
}

}  // namespace

const char* to_string(SubmitProgram program) {
  switch (program) {
    case SubmitProgram::salloc:
      return "salloc";
    case SubmitProgram::srun:
      return "srun";
    default:
      return "sbatch";
  }
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  if (!file) throw std::runtime_error("cannot read /proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(content, word, '\0');) words.push_back(word);
  if (words.empty()) throw std::runtime_error("/proc/self/cmdline is empty");
  return words;
}

std::optional<ParsedCommand> parse_command(const std::vector<std::string>& argv) {
  void* options = options_object();
  if (options == nullptr || slurm_option_table_create == nullptr || slurm_option_table_destroy == nullptr)
    return std::nullopt;
  char* short_options = nullptr;
  std::unique_ptr<option, void (*)(option*)> table(slurm_option_table_create(options, &short_options),
                                                   slurm_option_table_destroy);
  if (!table) return std::nullopt;

  ParsedCommand parsed;
  std::vector<std::string> copies = argv;
  std::vector<char*> words;
  std::vector<size_t> positions;
  bool after_script = false;
  for (size_t i = 0; i < argv.size(); ++i) {
    if (argv[i] == ":") {
      parsed.has_components = true;
      continue;
    }
    words.push_back(copies[i].data());
    positions.push_back(i);
  }
  words.push_back(nullptr);
  int count = static_cast<int>(words.size()) - 1;
  SavedGetopt saved;
  while (!after_script) {
    int index = -1;
    int found = getopt_long(count, words.data(), short_options, table.get(), &index);
    const std::string name = index >= 0 ? table.get()[index].name : long_name(table.get(), found);
    if (found != -1 && !name.empty()) parsed.options.push_back({name, optarg != nullptr ? optarg : ""});
    if (found == -1)
      after_script = true;
    else if (found == '?' || found == 'h' || found == 'V' || name == "help" || name == "usage" ||
             name == "version" || name == "autocomplete")
      parsed.submits = false;
    else if (name == "wrap")
      parsed.wrap = true;
  }
  if (optind < count) {
    parsed.script_index = positions[static_cast<size_t>(optind)];
    // A `:` among the script's own arguments is none of our business.
    auto script = argv.begin() + static_cast<long>(*parsed.script_index);
    parsed.has_components = std::find(argv.begin(), script, ":") != script;
  }
  return parsed;
}

std::optional<std::string> option_value(const char* name) {
  void* options = options_object();
  if (options == nullptr || slurm_option_isset == nullptr || !slurm_option_isset(options, name))
    return std::nullopt;
  // Owned by the caller, but allocated with Slurm's private allocator: left to the end of this short-lived
  // process.
  const char* value = slurm_option_get == nullptr ? nullptr : slurm_option_get(options, name);
  return value == nullptr ? "" : value;
}

void keep_script_on_stdin() {
  if (lseek(STDIN_FILENO, 0, SEEK_CUR) >= 0 || errno != ESPIPE || isatty(STDIN_FILENO)) return;
  std::optional<ParsedCommand> command = parse_command(command_line());
  if (!command || !command->submits || command->script_index || command->wrap) return;
  move_stdin_to_memory();
}

void run_again(const std::vector<std::string>& argv) {
  std::vector<std::string> copies = argv;
  std::vector<char*> words;
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  fflush(nullptr);
  execv("/proc/self/exe", words.data());
  throw std::runtime_error(fmt::format("cannot start {}: {}", argv.front(), strerror(errno)));
}

}  // namespace sailor
