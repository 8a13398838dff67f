#include "spank_plugin/planned_command.h"

#include <charconv>

namespace sailor {

std::vector<std::string> planned_command(const std::vector<std::string>& argv,
                                         std::optional<size_t> script_index,
                                         const std::vector<std::vector<std::string>>& components,
                                         const std::vector<std::string>& extra,
                                         const std::vector<std::string>& repeated) {
  size_t insert_at = script_index.value_or(argv.size());
  if (script_index && insert_at > 1 && argv[insert_at - 1] == "--") --insert_at;
  std::vector<std::string> command(argv.begin(), argv.begin() + static_cast<long>(insert_at));
  for (size_t i = 0; i < components.size(); ++i) {
    if (i > 0) {
      command.emplace_back(":");
      command.insert(command.end(), repeated.begin(), repeated.end());
    }
    command.insert(command.end(), components[i].begin(), components[i].end());
    if (i == 0) command.insert(command.end(), extra.begin(), extra.end());
  }
  command.insert(command.end(), argv.begin() + static_cast<long>(insert_at), argv.end());
  return command;
}

std::optional<uint32_t> submitted_job(const std::string& line) {
  constexpr char kSentence[] = "Submitted batch job ";
  const size_t begin = line.rfind(kSentence, 0) == 0 ? sizeof kSentence - 1 : 0;
  uint32_t job = 0;
  const auto [end, error] = std::from_chars(line.data() + begin, line.data() + line.size(), job);
  const bool number = error == std::errc() && job != 0;
  const bool ends = end != line.data() + line.size() && (*end == '\n' || *end == ' ' || *end == ';');
  return number && ends ? std::optional<uint32_t>(job) : std::nullopt;
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr char kPlain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=./,:+@%";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace sailor
