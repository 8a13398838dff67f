// Values in the paper (the columns of the data pack's paper_numbers.csv), compared with ours. Pure except for
// reading the file.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/evaluation/result_table.h"

namespace sailor::bench {

struct PublishedNumber {
  std::string where;     // "figure 7"
  std::string quantity;  // in words; may contain planners and clusters
  std::string value, unit, note;

  // The numbers in `value` if it is a list ("1.9 / 2.03 / 1.15") or a range ("1.08-1.81").
  std::vector<double> values() const;
};
// Empty if the file does not exist; throws InputError.
std::vector<PublishedNumber> load_published_numbers(const std::string& path);

// Those of `names` that occur in the text, in the order of the text.
std::vector<std::string> names_in(const std::string& text, const std::set<std::string>& names);
// Does the text contain the model, in full or by the beginning of its name ("NAME-350M", "NAME" for
// NAME-350)?
bool mentions(const std::string& text, const std::string& model);
// "A 5, B < 1, C hours": every part's first word with the rest.
std::vector<std::pair<std::string, std::string>> named_values(const std::string& text);

// A table of values in the paper with ours.
class PublishedTable {
 public:
  PublishedTable(std::string name, std::string caption);

  struct Ours {
    std::string scenario;
    double value;
    std::optional<double> published_again = {};  // the published planner's, from a new run
  };
  // `what` is the paper's own quantity. Reached: a ratio that is at least as large (`larger_is_better`), or
  // seconds or per cent at most as large, to half a per cent. Without values of ours, `without` has the
  // reason.
  void add(const std::string& what, double published, const std::string& unit, const std::vector<Ours>& ours,
           bool larger_is_better, const std::string& without = "not among the selected scenarios");
  // Shows ours, if any, without counting them, for the reason `why`.
  void add_uncounted(const std::string& what, double published, const std::string& unit,
                     const std::vector<Ours>& ours, const std::string& why);
  // For quantities without numbers to compare.
  void add(const std::string& what, const std::string& published, const std::string& ours,
           const std::string& standing);

  const ResultTable& table() const { return table_; }
  int reached() const { return reached_; }    // by all of our figures
  int partly() const { return partly_; }      // by some
  int compared() const { return compared_; }  // values of the paper with one of ours

 private:
  ResultTable table_;
  int reached_ = 0, partly_ = 0, compared_ = 0;
};

}  // namespace sailor::bench
