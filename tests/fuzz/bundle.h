// Several files as one input, and a directory to put them in.
//
//     === job.yaml
//     model: ...
//     === profiles/a.json
//     {...}
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sailor::fuzz {

// The files of an input by name; the last of several with one name. Text before the first name line is
// ignored.
std::map<std::string, std::string> split_bundle(const std::string& input);

// A directory in memory for this process. Has the files of `names` that a bundle has, and no others.
class Directory {
 public:
  explicit Directory(std::vector<std::string> names);
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  void fill(const std::map<std::string, std::string>& bundle) const;
  std::string path(const std::string& name) const { return root_ + "/" + name; }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
  std::vector<std::string> names_;
};

}  // namespace sailor::fuzz
